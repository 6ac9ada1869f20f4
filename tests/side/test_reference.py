"""Random strategies with side data: rows, columns and ledger are what plain search over plain dicts gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.passes import optimise
from curatec.compiler.plan import Plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.execute import Executed, execute
from curatec.runtime.side import read_side
from tests.reference import side as reference_side
from tests.reference import steps as reference
from tests.reference.corpus import rows_at_from
from tests.reference.digest import finished
from tests.semantics.corpora import Finished, listed, maybe, runs, write
from tests.semantics.test_strategies import check_rows, plan_of, told
from tests.semantics.tools import quick
from tests.side.test_leaks import said

pytestmark = pytest.mark.usefixtures("parts")
COLUMNS = {"flag": "bool", "score": "float", "n": "int", "label": "text"}
IDS = ("a", "b", "ä", "first/a", "d/b", "s1", "zz")
KEYS = ("task_id", "task", "session_id", "meta.user_id", "lower(model)")


@st.composite
def talking(draw: st.DrawFn) -> dict[str, Finished]:
    """Runs whose turns and arguments share a few words."""
    found: dict[str, Finished] = {"first": [], "second": []}
    for run in draw(st.lists(runs(), max_size=6)):
        for turn in run.turns:
            turn.content = draw(maybe(said(8)))
            turn.content_kind = "null" if turn.content is None else "text"
            turn.reasoning = draw(maybe(said(6))) if turn.role == "assistant" else None
            for call in turn.calls:
                if call.args_json is not None and draw(st.booleans()):
                    call.args_json = json.dumps({"x": draw(said(6)), "Book a flight to": [draw(said(3))]})
        found[draw(st.sampled_from(["first", "first", "second"]))].append(finished(run, set()))
    return found


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows with distinct keys and nulls."""
    kinds = {
        "flag": maybe(st.booleans()),
        "score": maybe(st.sampled_from([0.0, 0.5, -1.0, 2.5])),
        "n": maybe(st.integers(-2, 3)),
        "label": maybe(st.sampled_from(["a", "b", "search", ""])),
    }
    keys = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=4))
    return [{"key": key} | {name: draw(kind) for name, kind in kinds.items()} for key in keys]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Finished], list[reference_side.Item]]:
    """Runs, and a test set some of whose items some run holds, whole or in part."""
    sources = draw(talking())
    turns = [turn for finished in sources.values() for run, _ in finished for turn in run.turns]
    spoken = [text for turn in turns for text in (turn.content, turn.reasoning) if text]
    spoken += [json.loads(c.args_json)["x"] for turn in turns for c in turn.calls if "flight to" in str(c.args_json)]
    items: list[reference_side.Item] = []
    for number in range(draw(st.integers(1, 3))):
        text = draw(said(4)) if number else "東京 É"  # some item can be found
        if spoken and draw(st.booleans()):
            text = (
                draw(st.sampled_from(["", text]))
                + draw(st.sampled_from(spoken)).upper()
                + draw(st.sampled_from(["", " zz"]))
            )
        id_ = draw(maybe(st.sampled_from(IDS)))
        items.append((id_, draw(st.sampled_from([text, text, None])) if id_ is not None else text))
    return sources, items


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Steps of a strategy: columns are asked only after the join."""
    steps: list[str] = []
    joined = False
    for i, kind in enumerate(
        draw(st.lists(st.sampled_from(["join", "join", "asks", "listed", "turns"]), min_size=1, max_size=4))
    ):
        if kind == "join" and not joined:
            joined = True
            required = draw(st.sampled_from(["", "", " required"]))
            steps.append(f"j{i}: join t on {draw(st.sampled_from(KEYS))}{required}")
        elif kind == "asks" and joined:
            where = ("t.flag", "t.score > 0.1", "t.label is null", "t.n + 1 == 2", "t.label == task_id")
            steps.append(f"k{i}: {draw(st.sampled_from(['keep', 'drop']))} where {draw(st.sampled_from(where))}")
            steps.append(
                f"d{i}: derive v{i} = {draw(st.sampled_from(['t.n', 't.label', 'mean(t.score) over (t.flag)']))}"
            )
        elif kind == "listed":
            pairs = [("task", "key"), ("model", "label"), ("turn_count", "n"), ("reward", "score")]
            value, column = draw(st.sampled_from(pairs))
            negated = draw(st.sampled_from(["", "not "]))
            steps.append(f"i{i}: {draw(st.sampled_from(['keep', 'drop']))} where {value} {negated}in t.{column}")
        elif kind == "turns":
            steps.append(f"u{i}: turns drop where any(calls where name in t.label) or index in t.n repair")
    if draw(st.sampled_from([True, True, False])):
        because = draw(st.sampled_from(["", "", ' because "sealed"']))
        at = draw(st.integers(0, len(steps)))
        steps.insert(at, f"c: decontaminate against hidden ngram {draw(st.integers(3, 5))}{because}")
    return "\n  ".join(steps)


def spec(body: str) -> str:
    columns = "  ".join(f"{name}: {type_}" for name, type_ in COLUMNS.items())
    return f"""curate 1
source first {{ path "first.jsonl" }}
source second {{ path "second.jsonl" }}
table t {{ path "t.jsonl" key key columns {{ {columns} }} }}
test set hidden {{ path "hidden.jsonl" id id text text }}
strategy s {{
  from first, second
  {body}
  emit sft {{ loss on assistant }}
}}
"""


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")


def engine(made: Plan, sources: dict[str, Finished], folder: Path, per_part: int) -> Executed | str:
    (folder / "scratch").mkdir()
    try:
        side = read_side(made, folder, ())
        return execute(made, write(sources, folder, per_part), folder / "scratch", side=side)
    except CuratecError as error:
        return error.diagnostics[0].code


@quick(0.75)
@given(cases(), tables(), bodies(), st.booleans(), st.sampled_from([1, 2, 100]))
def test_execute_is_the_reference(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[dict[str, Finished], list[reference_side.Item]],
    table: list[dict[str, Any]],
    body: str,
    optimised: bool,
    per_part: int,
) -> None:
    folder = tmp_path_factory.mktemp("side")
    sources, items = case
    lines(folder / "t.jsonl", table)
    lines(folder / "hidden.jsonl", [{"id": id_, "text": text} for id_, text in items])
    text = spec(body)
    made = plan_of(text, folder)
    made = optimise(made) if optimised else made
    beside = reference_side.Beside({"t": {row["key"]: row for row in table}}, {"hidden": items})
    rows = reference_side.with_beside(rows_at_from(listed(sources)), beside)
    try:
        expected: reference.Done | str = reference.execute(made, rows)
    except reference.Failed as error:
        expected = str(error)
    done = engine(made, sources, folder, per_part)
    if isinstance(done, str) or isinstance(expected, str):
        assert done == expected, text
        return
    derived = [name for name, _ in made.derived]
    joined = [f"t.{name}" for name in COLUMNS] if "join t" in body else []
    check_rows(done.shared, expected.shared, [*derived, *joined], text)
    assert told(done.ledger.table().iter_rows(named=True)) == told(expected.log.entries), (text, items)
    counts = [(c.label, c.entered, c.left, c.unmatched) for c in done.ledger.counts if not c.again]
    assert counts == [(c["label"], c["entered"], c["left"], c.get("unmatched", 0)) for c in expected.log.counts], text
    assert sorted(done.held["sft"]) == sorted(row["id"] for row in expected.ends["sft"] if reference_side.held_out(row))
