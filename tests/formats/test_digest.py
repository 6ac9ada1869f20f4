"""The digest of a trajectory: the columnar one equals a plain one, and nothing of a record can hide from it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.runtime.formats.model import Call, Part, RewardPart, Run, Turn
from curatec.runtime.formats.rows import Gathered
from tests.reference.digest import digest_of

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
MAYBE = st.none() | TEXTS
NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)
LONG = st.none() | st.integers(-(2**63) + 1, 2**63 - 1)
TIMES = st.none() | st.integers(-(2**50), 2**50)
FLOATS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5)
FLAGS = st.none() | st.booleans()
CALLS = st.builds(
    Call,
    id=MAYBE,
    name=MAYBE,
    args_json=MAYBE,
    args_raw=MAYBE,
    args_state=st.sampled_from(["json", "repaired", "invalid", "none"]),
    requestor=st.sampled_from(["agent", "user"]),
    result_turn=NUMBERS,
)
PARTS = st.builds(Part, kind=TEXTS, text=MAYBE, media_type=MAYBE, ref=MAYBE)
TURNS = st.builds(
    Turn,
    role=st.sampled_from(["system", "user", "assistant", "tool", "event"]),
    content=MAYBE,
    content_kind=st.sampled_from(["text", "parts", "null", "absent"]),
    actor=MAYBE,
    parts=st.none() | st.lists(PARTS, max_size=2),
    reasoning=MAYBE,
    calls=st.lists(CALLS, max_size=3),
    tool_call_id=MAYBE,
    tool_name=MAYBE,
    call_turn=NUMBERS,
    call_index=NUMBERS,
    is_error=FLAGS,
    ts=TIMES,
    model=MAYBE,
    prompt_tokens=LONG,
    completion_tokens=LONG,
    reward=FLOATS,
    loss_weight=st.floats(0, 1, width=32),
    copied_context=st.booleans(),
    extra_json=MAYBE,
)
RUNS = st.builds(
    Run,
    format=TEXTS,
    turns=st.lists(TURNS, max_size=4),
    record_id=MAYBE,
    task_id=MAYBE,
    domain=MAYBE,
    trial=NUMBERS,
    session_id=MAYBE,
    parent_id=MAYBE,
    depth=st.integers(0, 9),
    agent=MAYBE,
    model=MAYBE,
    license=MAYBE,
    tools_json=MAYBE,
    reward=FLOATS,
    reward_parts=st.lists(st.builds(RewardPart, name=TEXTS, value=FLOATS), max_size=2),
    success=FLAGS,
    outcome=TEXTS,
    error=MAYBE,
    gold_json=MAYBE,
    started_at=TIMES,
    duration=FLOATS,
    cost=FLOATS,
    prompt_tokens=LONG,
    completion_tokens=LONG,
    defects=st.lists(TEXTS, max_size=3),
    meta_json=TEXTS,
)


def digests(*runs: Run) -> list[str]:
    rows = Gathered()
    for line, run in enumerate(runs):
        rows.add(run, 3, line)
    found: list[str] = rows.rows().runs["digest"].to_list()
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(RUNS, max_size=4))
def test_the_digest_equals_a_plain_one_whatever_stands_beside_the_run(runs: list[Run]) -> None:
    assert digests(*runs) == [digest_of(run) for run in runs]


def a_run() -> Run:
    calls = [Call("c", "f", '{"a":1}', result_turn=1), Call("d", "g", "{}")]
    turns = [Turn("assistant", "ab", "text", "agent", calls=calls), Turn("tool", "cd", "text", parts=[Part("text")])]
    return Run("openai", turns, "r", "t", reward=1.0, reward_parts=[RewardPart("x", 0.5)], defects=["nan", "no"])


def test_the_digest_is_the_same_for_ever() -> None:
    """Ids of published data hang on it: another value here means that all of them change."""
    assert digests(Run("openai", []), a_run()) == [
        "cc0c3ca3bedef0091b381aa8b3f10c4b",
        "ebb054bf4f98f39f73be6e6e0bf6c69e",
    ]


def put(holder: object, **values: object) -> None:
    for name, value in values.items():
        setattr(holder, name, value)


CHANGES: dict[str, Callable[[Run], object]] = {
    "a fact": lambda run: setattr(run, "domain", ""),
    "facts change places": lambda run: put(run, record_id="t", task_id="r"),
    "a letter moves to the next turn": lambda run: (put(run.turns[0], content="a"), put(run.turns[1], content="bcd")),
    "a text in another column": lambda run: put(run.turns[0], content=None, reasoning="ab"),
    "a call moves to the next turn": lambda run: run.turns[1].calls.append(run.turns[0].calls.pop()),
    "no parts at all": lambda run: setattr(run.turns[1], "parts", None),
    "an empty part": lambda run: run.turns[1].parts.append(Part("")),  # type: ignore[union-attr]
    "the names of two defects run together": lambda run: setattr(run, "defects", ["nann", "o"]),
    "a link": lambda run: setattr(run.turns[0].calls[0], "result_turn", None),
    "a reward that is null": lambda run: setattr(run.reward_parts[0], "value", None),
    "a flag": lambda run: setattr(run.turns[0], "copied_context", True),
    "other tools": lambda run: setattr(run, "tools_json", "[]"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_shows(change: str) -> None:
    changed = deepcopy(a_run())
    CHANGES[change](changed)
    assert digests(changed) != digests(a_run())


def test_zero_has_one_sign() -> None:
    assert digests(Run("x", [], reward=-0.0)) == digests(Run("x", [], reward=0.0)) != digests(Run("x", [], reward=None))
