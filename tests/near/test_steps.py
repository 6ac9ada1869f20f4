"""`dedup near` and `split … near`: rows and ledger are the reference's, which compares all pairs in plain Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler import plan
from curatec.compiler.core import Core, Order
from curatec.runtime.execute import until_edit
from tests.reference.digest import finished
from tests.semantics.corpora import Finished, runs
from tests.semantics.test_strategies import COUNT, by_reference, check_rows, engine, plan_of, published, told
from tests.semantics.tools import core, quick

pytestmark = pytest.mark.usefixtures("parts")

THRESHOLDS = st.sampled_from([0.2, 0.5, 0.75, 0.8, 1.0])
SHARES = (("train", 0.5), ("validation", 0.5))
SPEC = """curate 1
source first { path "first.jsonl" }
source second { path "second.jsonl" }
strategy s {
  from first, second
  once: dedup exact on task best by reward desc
  emit sft { near: keep where true loss on assistant }
}
"""


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, Finished]:
    """Runs that say a few words out of three."""
    words = st.lists(st.sampled_from(["a", "B", "c", "\n"]), max_size=9)
    found: dict[str, Finished] = {"first": [], "second": []}
    for run in draw(st.lists(runs(), max_size=12)):
        for turn in run.turns:
            if turn.content is not None:
                turn.content = " ".join(draw(words))
        source = draw(st.sampled_from(["first", "first", "second"]))
        found[source].append(finished(run, set()))
    return found


def with_operation(operation: plan.Operation, folder: Path) -> plan.Plan:
    made = plan_of(SPEC, folder)
    return replace(made, shared=(replace(made.shared[0], operation=operation),))


@st.composite
def dedups(draw: st.DrawFn) -> plan.DedupNear:
    on = core(draw(st.sampled_from(["text", "task_text", "final_answer", "concat(domain, task_text)", "task"])))
    over = draw(st.sampled_from([(), (), ("task",), ("model", "trial"), ("tool_names",), ("task_text",)]))
    orders = [("reward", True), ("turn_count", False), ("started_at", False), ("tokens", True)]
    best = draw(st.lists(st.sampled_from(orders), max_size=2, unique=True))
    return plan.DedupNear(
        on, draw(THRESHOLDS), tuple(map(core, over)), tuple(Order(core(name), down) for name, down in best)
    )


@st.composite
def splits(draw: st.DrawFn) -> plan.Split:
    by = core(draw(st.sampled_from(["task", "task", "domain", "session_id"])))
    near = core(draw(st.sampled_from(["task_text", "text"])))
    return plan.Split(by, SHARES, draw(st.integers(0, 3)), near, draw(THRESHOLDS))


def same(made: plan.Plan, sources: dict[str, Finished], folder: Path, per_part: int) -> None:
    done, expected = engine(made, sources, folder, per_part), by_reference(made, sources)
    if isinstance(done, str) or isinstance(expected, str):
        assert done == expected
        return
    check_rows(done.shared, expected.shared, [], "")
    assert told(done.ledger.table().iter_rows(named=True)) == told(expected.log.entries)
    counts = [{name: getattr(count, name) for name in COUNT} for count in done.ledger.counts]
    assert counts == [{name: count[name] for name in COUNT} for count in expected.log.counts]


@quick(0.3)
@given(corpora(), dedups(), st.sampled_from([1, 2, 100]))
def test_dedup_near_is_the_reference(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], operation: plan.DedupNear, per_part: int
) -> None:
    folder = tmp_path_factory.mktemp("dedup")
    same(with_operation(operation, folder), sources, folder, per_part)


@quick(0.3)
@given(corpora(), splits(), st.sampled_from([1, 2, 100]))
def test_split_near_is_the_reference(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], operation: plan.Split, per_part: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    same(with_operation(operation, folder), sources, folder, per_part)


@quick(0.2)
@given(corpora(), st.one_of(dedups(), splits()), st.randoms(use_true_random=False))
def test_parts_and_row_order_play_no_part(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], operation: plan.Operation, random: Any
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    made = with_operation(operation, folder)
    mixed = {name: random.sample(found, len(found)) for name, found in sources.items()}
    (folder / "mixed").mkdir()
    found = [engine(made, sources, folder, per_part) for per_part in (100, 1)]
    found.append(engine(made, mixed, folder / "mixed", 3))
    if any(isinstance(done, str) for done in found):
        assert len(set(map(str, found))) == 1
        return
    first, *others = [published(done) for done in found if not isinstance(done, str)]
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    "operation",
    [
        plan.DedupNear(core("text"), 0.5, (core("task"),), (Order(core("tokens"), True),)),
        plan.Split(core("task"), SHARES, 1, core("text"), 0.5),
    ],
)
def test_long_texts_are_not_measured_ahead(operation: plan.Operation, tmp_path: Path) -> None:
    [step] = with_operation(operation, tmp_path).shared
    asked: list[Core] = until_edit([step])
    assert core("text") not in asked
    assert core("task") in asked
