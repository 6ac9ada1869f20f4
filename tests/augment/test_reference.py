"""Rows that steps make are what the reference makes, however the corpus is cut; and what must always hold of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.passes import optimise
from curatec.runtime.execute import Executed
from tests.augment.corpora import corpora
from tests.reference import made, rebind, view
from tests.semantics.corpora import Finished
from tests.semantics.test_strategies import COUNT, by_reference, check_rows, engine, order_plays_no_part, plan_of, told
from tests.semantics.tools import quick, turns_now

pytestmark = pytest.mark.usefixtures("parts")
REGISTERED = (made, rebind, view)  # importing them is what makes the reference know them

REBIND = (
    'augment rebind(entities: ["user_id", "order_id"], copies: 2)',
    'augment rebind(entities: ["order_id"])',
)
COPIES = (
    *REBIND,
    "augment distractors(n: 1, copies: 2)",
    "augment distractors(n: 2, pool: source, copies: 1)",
    "augment recover(max_gap: 1)",
    "augment recover(max_gap: 3)",
)
EDITS = (
    'turns set content = concat(content, " 8765") where role == "user"',
    "turns drop where reasoning is not null repair",
    "tools keep where used",
    "keep where turn_count > 2",
    "sample 60% seed 4",
)
DECOMPOSE = (
    'decompose at role == "assistant"',
    "decompose at calls is not empty context { system, task, last 1 results }",
    'decompose at calls is not empty or content is not null context { task, last 0 results, elide "…" }',
    "decompose at true context { system, task, last 2 results, all calls }",
)


@st.composite
def strategies(draw: st.DrawFn) -> str:
    """A split perhaps, whose side is trained perhaps; then copies and edits, and decisions at the end of one sink."""
    body = [draw(st.sampled_from(["", "split by task { train 50% validation 50% } seed 3"]))]
    body.append(draw(st.sampled_from(["", "", "view agent", "view user"])))
    shared = draw(st.lists(st.sampled_from([*COPIES, *EDITS]), max_size=2))
    own = draw(st.lists(st.sampled_from([*COPIES, *COPIES, *EDITS]), max_size=2))
    own += draw(st.lists(st.sampled_from(DECOMPOSE), max_size=1))
    body += [f"s{i}: {step}" for i, step in enumerate(shared)]
    body += ["emit sft {", *(f"a{i}: {step}" for i, step in enumerate(own)), "}"]
    sources = 'source first { path "first.jsonl" }\nsource second { path "second.jsonl" }\n'
    return f"curate 1\n{sources}strategy s {{\n  from first, second\n  {chr(10).join(filter(None, body))}\n}}\n"


@quick(0.5)
@given(corpora(), strategies(), st.sampled_from([1, 2, 100]))
def test_made_rows_are_those_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], text: str, per_part: int
) -> None:
    folder = tmp_path_factory.mktemp("made")
    plan = optimise(plan_of(text, folder))
    done, expected = engine(plan, sources, folder, per_part), by_reference(plan, sources)
    if isinstance(done, str) or isinstance(expected, str):
        assert done == expected, text
        return
    for state, rows in ((done.shared, expected.shared), *((done.ends[n], rows) for n, rows in expected.ends.items())):
        check_rows(state, rows, [], text)
        now = turns_now(state)
        about = {name: (digest, key) for name, digest, key in state.rows.select("id", "digest", "toolset").iter_rows()}
        for row in rows:
            weights = [turn["loss_weight"] for turn in row["turns"]]
            assert [turn["loss_weight"] for turn in now[row["id"]]] == weights, text
            digest, shown = about[row["id"]]
            assert digest == row["digest"], text
            assert (None if shown is None else state.toolsets[shown]) == row["tools_json"], text
        wide = done.loaded.wide(state, state.rows).to_dicts() if rows else []
        records = {r["id"]: {n: r[n] for n in ("gold_json", "meta_json")} for r in wide}
        assert records == {row["id"]: row["record"] for row in rows}, text
    assert told(done.ledger.table().iter_rows(named=True)) == told(expected.log.entries), text
    counts = [{name: getattr(count, name) for name in COUNT} for count in done.ledger.counts]
    assert counts == [{name: count[name] for name in COUNT} for count in expected.log.counts], text
    whole(done)


def whole(done: Executed) -> None:
    """Ids are unique, every made row has its lineage, every failure is counted, no copy is validated."""
    ledger = done.ledger.table()
    lineage = {out: (by, operator) for f in done.ledger.lineage for out, by, operator, _ in f.iter_rows()}
    seen = set(done.start.rows["id"])
    for state in (done.shared, *done.ends.values()):
        rows = state.rows
        assert rows["id"].is_unique().all()
        for row in rows.select("id", "origin", *(["split"] if "split" in rows.columns else [])).to_dicts():
            at, operators = row["id"], []
            while at not in seen:
                at, operator = lineage[at]
                operators.append(operator)
            assert at == row["origin"]
            assert row.get("split") != "validation" or set(operators) <= {"decompose"}
    for count in done.ledger.counts:
        own = ledger.filter((ledger["step"] == count.step) & ledger["turn"].is_null())
        found = dict(own.group_by("action").len().iter_rows())
        assert found.get("created", 0) == count.created
        assert found.get("replaced", 0) == count.replaced
        assert found.get("dropped", 0) == count.dropped
        assert own.filter(own["action"] == "rejected")["n"].sum() == count.failed


@quick(0.2)
@given(corpora(), strategies(), st.randoms(use_true_random=False))
def test_parts_and_row_order_play_no_part(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], text: str, random: Any
) -> None:
    order_plays_no_part(tmp_path_factory.mktemp("parts"), sources, text, random)
