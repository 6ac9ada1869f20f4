"""Lints by brute force: what they say can never happen happens on no row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.check.lints import BOUNDS, loss_is_null, never_true
from curatec.compiler.types import Level
from tests.reference.corpus import rows_at_from
from tests.reference.interpreter import Interpreter, Spot, spots
from tests.semantics.corpora import Finished, corpora, listed
from tests.semantics.generate import expressions
from tests.semantics.tools import core, quick

NUMBERS = ("turn_count", "reward", "trial", "pass_rate", "duration", "first(calls).args.x", "count(turns)", "cost")
BOUND = st.tuples(
    st.sampled_from(NUMBERS),
    st.sampled_from(["<", "<=", ">", ">=", "=="]),
    st.sampled_from(["(-1)", "0", "0.5", "1", "1.5", "2", "9_007_199_254_740_993"]),
)
WORDS = ['task_id == "a"', 'task_id in {"b", "c"}', 'model == "m"', "not success", "agent is null", "false"]


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """Bounds, their mirror images and words, joined; some with an arbitrary part beside them."""
    part = BOUND.map(" ".join) | BOUND.map(lambda b: " ".join(reversed(b))) | st.sampled_from(WORDS)
    parts = draw(st.lists(part, min_size=1, max_size=3))
    joined = draw(st.sampled_from([" and ", " and ", " or "])).join(f"({part})" for part in parts)
    return joined if draw(st.booleans()) else f"({joined}) and ({draw(expressions(depth=1))}) is not null"


@quick(4)
@given(corpora(), conditions())
def test_what_can_never_be_true_is_never_true(sources: dict[str, Finished], text: str) -> None:
    made = core(text)
    told = Interpreter(rows_at_from(listed(sources)))
    if never_true(made):
        assert not any(told.holds(made, Spot(row)) for row in told.rows), text


@quick()
@given(corpora())
def test_no_value_leaves_its_bounds(sources: dict[str, Finished]) -> None:
    rows = rows_at_from(listed(sources))
    told = Interpreter(rows)
    for name, (low, high) in BOUNDS.items():
        level = Level.TURN if name == "index" else Level.TRAJECTORY
        for row in rows:
            values = [told.value(core(name, level), spot) for spot in spots(row, level)]
            assert all(low <= v <= high for v in values if v is not None), name


NEVER = (
    "turn_count > 5 and turn_count < 6",
    "reward > 1 and 1 > reward",
    "pass_rate > 1",
    "turn_count == 1.5",
    "false or false",
    'task == "a" and task in {"b", "c"}',
    "count(turns) < 0",
)
SOME = (
    "reward > 1 and 2 > reward",
    "trial > 1 and trial < 3",
    "duration < 0",
    "depth < 0",
    "first(calls).args.x < 0",
    "reward < 0",
    "trial > 9_007_199_254_740_992 and trial <= 9_007_199_254_740_993",
    "turn_count == 1 or turn_count > 5 and turn_count < 5",
)


@pytest.mark.parametrize("text", NEVER)
def test_never_true_finds(text: str) -> None:
    assert never_true(core(text))


@pytest.mark.parametrize("text", SOME)
def test_never_true_keeps_quiet(text: str) -> None:
    assert not never_true(core(text))


LOSSES = {
    "is_error": True,
    "not is_error": True,
    "is_error == true": True,
    'tool_name == "x"': True,
    'lower(tool_name) ~ r"x"': True,
    "length(tool_name) > 2 and is_error": True,
    "is_error or tool_name is null": False,
    "is_error and index > 0": False,
    "next.is_error": False,
    "coalesce(is_error, false)": False,
    "none(calls where is_error)": False,
    'role == "assistant"': False,
}


@quick(0.3)
@given(corpora())
def test_a_loss_that_is_null_is_null_on_every_assistant_turn(sources: dict[str, Finished]) -> None:
    told = Interpreter(rows_at_from(listed(sources)))
    said = [s for row in told.rows for s in spots(row, Level.TURN) if s.here["role"] == "assistant"]
    for text, null in LOSSES.items():
        made = core(text, Level.TURN)
        assert loss_is_null(made) == null, text
        assert not null or all(told.value(made, spot) is None for spot in said), text


@quick()
@given(corpora(), expressions(Level.TURN, depth=2))
def test_any_loss_that_is_null_is_null(sources: dict[str, Finished], text: str) -> None:
    made = core(text, Level.TURN)
    if loss_is_null(made):
        told = Interpreter(rows_at_from(listed(sources)))
        said = [s for row in told.rows for s in spots(row, Level.TURN) if s.here["role"] == "assistant"]
        assert all(told.value(made, spot) is None for spot in said), text
