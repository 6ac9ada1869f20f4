"""Nothing of the language is missing on either engine, and the page about engines says what is so.

`UPDATE_DOCS=1 pytest tests/engines/test_coverage.py` writes the tables of the page anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from curatec.compiler import plan
from curatec.compiler.check.program import check
from curatec.compiler.content import TRAJECTORY_CONTENT
from curatec.compiler.core import Column, Core
from curatec.compiler.duckdb.content import CONTENT
from curatec.compiler.fields import FIELDS, NEIGHBOURS
from curatec.compiler.functions import FUNCTIONS
from curatec.compiler.load import load
from curatec.compiler.passes import optimise
from curatec.compiler.types import Level, Type
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime import corpus
from curatec.runtime.answers.lowered import work
from curatec.runtime.cache import Cache
from curatec.runtime.engines import refuse_missing
from curatec.runtime.inputs import read_inputs
from tests import every_step
from tests.engines import support
from tests.engines.tools import ENGINES, same, values
from tests.semantics.generate import Steps
from tests.semantics.tools import Bench

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
_TABLES = re.compile(r"(?<=<!-- tables -->\n).*(?=<!-- end -->)", re.DOTALL)


def test_every_function_is_on_both_engines() -> None:
    assert [name for name, entry in FUNCTIONS.items() if entry.polars is None or entry.duckdb is None] == []


def test_every_content_column_is_on_both_engines() -> None:
    assert CONTENT.keys() == TRAJECTORY_CONTENT.keys()


def test_every_step_is_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert support.STEPS.keys() == set(support.OPERATIONS)
    for operation, (_, own, shared) in support.STEPS.items():
        assert own or shared, operation  # an exception has a reason
        is_engines = work.dispatch(operation) is not work.dispatch(object)
        assert is_engines == bool(own), operation
    with capsys.disabled():
        print(f"\n{support.counted()}")


def test_every_step_is_compiled_on_both_engines(tmp_path: Path) -> None:
    """By `test_compiles` or, as random steps, by `test_strategies`."""
    whole = optimise(check(load(str(every_step.write(tmp_path)))).plan(None))
    compiled = {type(step.operation) for _, step in whole.steps()}
    drawn = Path(Steps.step.__code__.co_filename).read_text()
    for word, operation in (
        ("limit {place.pick('1', '2')} per each", plan.LimitEach),
        ("limit {place.pick('1', '2')} per {self.keys()}", plan.Limit),
        ("dedup exact", plan.Dedup),
        ("sample ", plan.Sample),
        ("sort by", plan.Sort),
        ("derive ", plan.Derive),
        ("tag failure", plan.Tag),
        ("turns cut", plan.TurnsCut),
        ("tools {tool.pick", plan.ToolsFilter),
        ("turns {turn.pick('keep', 'drop')}", plan.TurnsFilter),
    ):
        assert word in drawn
        compiled.add(operation)
    cookbook = "\n".join(p.read_text() for p in (Path(__file__).parents[2] / "specs" / "cookbook").glob("*.curate"))
    assert re.search(r"^\s*(\w+: )?view user", cookbook, re.MULTILINE)
    assert set(support.OPERATIONS) - compiled == {plan.View}


def fields() -> list[tuple[Core, Level]]:
    """Every field of every level, of the turn's neighbours too, and the outer fields of inner levels."""
    found: list[tuple[Core, Level]] = []
    for level, named in FIELDS.items():
        for field in named.values():
            if field.type in (Type.JSON, Type.COLLECTION) or field.kind == "later":
                continue
            found.append((Column(level, field.name, field.type), level))
            if level is Level.TURN:
                found += [(Column(level, field.name, field.type, via), level) for via in NEIGHBOURS]  # type: ignore[arg-type]
                found.append((Column(level, field.name, field.type), Level.CALL))
            if level is Level.TRAJECTORY:
                found += [(Column(level, field.name, field.type), inner) for inner in FIELDS if inner is not level]
    return found


def test_every_field_is_the_same_on_both_engines(tmp_path: Path) -> None:
    spec = every_step.write(tmp_path)
    (tmp_path / ".git").mkdir()
    whole = check(load(str(spec))).plan(None)
    inputs = read_inputs(whole.corpora, tmp_path, (), Cache(tmp_path / "cache"))
    asked = fields()
    polars, duckdb = (list(values(corpus.load(inputs, [], tmp_path, e).state, asked)) for e in ENGINES.values())
    for (core, level), ours, theirs in zip(asked, polars, duckdb, strict=True):
        assert len(ours), core
        assert same(ours, theirs), (core, level, ours, theirs)


def test_a_function_that_an_engine_lacks_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench.plan(bench.spec("short: keep where lower(task) == trim(task)"))
    refuse_missing(made, "duckdb")
    monkeypatch.setitem(FUNCTIONS, "trim", replace(FUNCTIONS["trim"], duckdb=None))
    refuse_missing(made, "polars")
    with pytest.raises(CuratecError) as raised:
        refuse_missing(made, "duckdb")
    [problem] = raised.value.diagnostics
    assert problem.code == "C0504"
    assert "`duckdb` has no `trim`" in problem.message
    assert problem.span is not None


def test_the_page_says_what_the_registry_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = _TABLES.sub(lambda _: support.page() + "\n", text)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8")
