# make demo   install, compile the quickstart, show two answers
# make test   install with the training stack, then linters, types and every test
# make fast   the tests that need no training stack
# make dev    links for type checkers and editors
# make bench  the fixed job beside the same by hand; BENCH="--runs 10000 --pairs 3" makes it short

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test fast dev lint bench clean

$(VENV)/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/all: $(VENV)/core
	$(PIP) install -c constraints.txt -e '.[train,dev]'
	touch $@

demo: $(VENV)/core
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh specs/quickstart/demo.sh

dev: $(VENV)/all
	mkdir -p .links/curatec
	for room in dsl compiler runtime; do ln -sfn ../../$$room .links/curatec/$$room; done

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n 2 -m "slow or not slow"

fast: dev
	$(BIN)/pytest -n 2

bench: $(VENV)/all
	$(BIN)/python benchmarks/fixed_job.py $(BENCH)

clean:
	rm -rf $(VENV) .links out build *.egg-info
