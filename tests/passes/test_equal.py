"""A strategy runs alike with each pass, with all and with none: rows, turns, ledger and counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler import plan
from curatec.compiler.passes import PASSES, optimise
from curatec.compiler.types import Type
from curatec.runtime.execute import Executed, sorted_rows
from tests.semantics.corpora import Finished, corpora
from tests.semantics.generate import FAMILIES, Place, Steps, strategies
from tests.semantics.test_strategies import engine, plan_of, strip
from tests.semantics.tools import quick, turns_now

pytestmark = pytest.mark.usefixtures("parts")
Pass = Callable[[plan.Plan], plan.Plan]
ALL: tuple[Pass, ...] = (*PASSES, optimise)
PLACES = ("part", "row", "home_part", "home_row")


@st.composite
def filtering(draw: st.DrawFn) -> str:
    """A strategy of filters put together from terms of every cost, with what they are to leave alone between them."""
    shared = Steps(draw)
    lines = []
    for i in range(draw(st.integers(1, 3))):
        terms = [term(shared.place()) for _ in range(draw(st.integers(2, 4)))]
        joined = f" {draw(st.sampled_from(['and', 'or']))} ".join(terms)
        negated = draw(st.sampled_from(["", "", "not "]))
        lines.append(f"f{i}: {draw(st.sampled_from(['keep', 'drop']))} where {negated}({joined})")
        lines += shared.steps(f"s{i}_", 1)
    if draw(st.booleans()):
        lines += ["d: derive said = lower(text)", "e: dedup exact on said, success", f"g: {grouped(shared.place())}"]
    sources = 'source first { path "first.jsonl" }\nsource second { path "second.jsonl" }\n'
    body = "\n  ".join(lines)
    return f"curate 1\n{sources}{FAMILIES}strategy s {{\n  from first, second\n  {body}\n  emit sft {{ }}\n}}\n"


def grouped(place: Place) -> str:
    """One more step that groups by the derived text, or one that reads it."""
    return place.pick(
        "derive n = mean(reward) over (said)", "limit 1 per said order by reward", 'drop where said ~ r"a"'
    )


def term(place: Place) -> str:
    facts = ("success", "reward > 0", "trial is null", 'outcome == "crash"', "cost > 0.2")
    narrow = ("turn_count > 1", 'any(turns where role == "tool")', "error_count == 0")
    wide = ('text ~ r"a"', "any(calls where is_error)", "tokens > 1")
    return place.pick(place.pick(*facts), place.pick(*narrow), place.pick(*wide), place.of(Type.BOOL))


@quick(0.5)
@given(corpora(), st.one_of(strategies(), filtering(), filtering()), st.sampled_from([1, 2, 100]))
def test_each_pass_all_and_none(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], text: str, per_part: int
) -> None:
    folder = tmp_path_factory.mktemp("passes")
    made = plan_of(text, folder)
    runs = {"none": made, **{rewrite.__name__: rewrite(made) for rewrite in ALL}}
    hashed = {name for run in runs.values() for name in hashed_columns(made, run)}
    found = {name: outcome(engine(run, sources, folder, per_part), hashed) for name, run in runs.items()}
    for name, outcome_ in found.items():
        assert outcome_ == found["none"], (name, text)


def hashed_columns(made: plan.Plan, run: plan.Plan) -> set[str]:
    """Derived texts that the pass keeps as a hash."""
    pairs = zip(made.steps(), run.steps(), strict=True)
    return {
        old.operation.name
        for (_, old), (_, new) in pairs
        if isinstance(old.operation, plan.Derive) and old.operation != new.operation
    }


def outcome(done: Executed | str, hashed: set[str]) -> Any:
    """Everything that is published. What a long key is called in the ledger is left open, what it groups is not."""
    if isinstance(done, str):
        return done
    rows = {}
    for name, state in {"shared": done.shared, **done.ends}.items():
        columns = [c for c in state.rows.columns if ":" not in c and c not in PLACES and c not in hashed]
        rows[name] = [sorted_rows(state).select(sorted(columns)).to_dicts(), strip(turns_now(state))]
    names: dict[Any, int] = {}
    ledger = done.ledger.table().to_dicts()
    for entry in ledger:
        if entry["action"] == "dropped" and entry["key"] is not None:
            entry["key"] = names.setdefault((entry["sink"], entry["step"], entry["key"]), len(names))
    return [rows, ledger, done.ledger.counts]


def test_stages_read_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that a fact settles are not looked up in turns."""
    from curatec.runtime.state import State
    from tests.semantics.tools import SAID, USER, Bench, record

    looked: list[int] = []
    batches = State.map_batches

    def counted(state: State, *given: Any) -> Any:
        looked.append(state.rows.height)
        return batches(state, *given)

    monkeypatch.setattr(State, "map_batches", counted)
    records = [record(USER, SAID, id=str(i), reward=float(i % 3)) for i in range(9)]
    bench = Bench(tmp_path)
    body = 'a: keep where text ~ r"done" and reward >= 1\n  b: keep where count(calls) == 0'
    assert sorted(bench.kept(body, records)) == ["1", "2", "4", "5", "7", "8"]
    assert looked[-2:] == [6, 6]
