"""Which pairs there are, by a second implementation that compares all runs with all others."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference.preference import Rule, pairs_of

from .conftest import TOOLS, Make, calls, result, run, says, system, user

pytestmark = pytest.mark.usefixtures("parts")
NUMBERS = count()


Step = tuple[str, str | None]
STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(["Paris", "Rome is it", "Paris", "Rome is it", "", None, " "])),
    st.tuples(st.just("call"), st.sampled_from(['{"id": 7}', '{"id":7}', '{"id": 8}'])),
    st.tuples(st.just("ask"), st.sampled_from(["Sure?", "bye"])),
)


@st.composite
def conversations(draw: st.DrawFn, trunk: list[Step]) -> list[dict[str, Any]]:
    """What the trunk begins with, then something of its own; ids of calls are never those of another run."""
    taken = draw(st.sampled_from([0, len(trunk), len(trunk), max(len(trunk) - 1, 0)]))
    own = draw(st.lists(STEPS, min_size=1, max_size=3))
    base, unanswered = draw(st.integers(0, 99)), draw(st.integers(0, 9)) == 9
    messages = [system(), user("Find 8" if draw(st.integers(0, 9)) == 9 else "Find 7")]
    for n, (kind, text) in enumerate([*trunk[:taken], *own]):
        if kind == "call":
            messages.append(calls((f"{base}-{n}", "find", text)))
            messages += [] if unanswered else [result(f"{base}-{n}", "Paris")]
        else:
            messages.append(says(text) if kind == "say" else user(str(text)))
    return messages


@st.composite
def corpora(draw: st.DrawFn) -> list[dict[str, Any]]:
    trunk = draw(st.lists(STEPS, max_size=3))
    records = []
    for _ in range(draw(st.integers(6, 12))):
        facts = {
            "success": draw(st.sampled_from([True, True, True, False, False, False, None])),
            "reward": draw(st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0, None])),
            "agent": draw(st.sampled_from(["x", "x", "x", "y", None])),
        }
        if draw(st.integers(0, 9)) == 9:
            facts["tools"] = TOOLS
        records.append(run(draw(st.sampled_from(["1", "1", "1", "2"])), *draw(conversations(trunk)), **facts))
    return [*records, *BYSTANDERS]


# A task for each part of the split; on no side.
BYSTANDERS = [run(task, user("x"), success=None, reward=None, agent=None) for task in ("1", "2")]


KEYS = {"task": lambda r: r["task_id"], "source": lambda r: "runs", "agent": lambda r: r["agent"]}
SIDES = {
    ("success", "not success"): (
        lambda r: r["success"],
        lambda r: None if r["success"] is None else not r["success"],
    ),
    ("reward >= 0.3", "reward < 0.7"): (
        lambda r: None if r["reward"] is None else r["reward"] >= 0.3,
        lambda r: None if r["reward"] is None else r["reward"] < 0.7,
    ),
}


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, Rule]:
    """A `pair` statement as text, and as data."""
    within, (words, sides) = draw(st.sampled_from(sorted(KEYS))), draw(st.sampled_from(sorted(SIDES.items())))
    difference = draw(st.booleans())
    text = f"pair within {within}{' from first difference' if difference else ''}"
    text += f" chosen where {words[0]} rejected where {words[1]}"
    margin = draw(st.sampled_from([None, None, None, "0.2", "0"]))
    ratio = draw(st.sampled_from([None, None, None, "1.5", "3"]))
    most, per = draw(st.sampled_from([None, 1, 2])), draw(st.sampled_from(sorted(KEYS)))
    text += f" margin reward >= {margin}" if margin else ""
    text += f" max {most} per {per}" if most else ""
    text += f" length ratio <= {ratio}" if ratio else ""
    return text, Rule(
        KEYS[within], *sides, difference,
        (lambda r: r["reward"], Fraction(margin)) if margin else None,
        Fraction(ratio) if ratio else None,
        (most, KEYS[per]) if most else None,
    )  # fmt: skip


def check(made: Make, records: list[dict[str, Any]], statement: str, rule: Rule) -> None:
    records = [record | {"id": f"r{i}"} for i, record in enumerate(records)]
    split = "split by task { train 50% validation 50% } seed 2"
    got = made(records, f"{split} emit preference {{ {statement} }}", name=f"n{next(NUMBERS)}")
    shared = got.executed.shared.rows
    names = dict(shared.select("id", "record_id").iter_rows())
    by_id = {id_: records[int(name[1:])] for id_, name in names.items()}
    pairs, why = pairs_of(by_id, dict(shared.select("id", "split").iter_rows()), rule)
    made_rows = [row for part in ("train", "validation") for row in _rows(got, part)]
    assert {tuple(row["parents"]) for row in made_rows} == pairs
    assert len(made_rows) == len(pairs)
    assert got.reasons("preference") == why
    got.conserved("preference")
    for row in made_rows:
        shares_its_prompt(row, [by_id[id_]["messages"] for id_ in row["parents"]])


def _rows(got: Any, part: str) -> list[dict[str, Any]]:
    return got.rows("preference", part) if (got.out / "preference" / f"{part}.jsonl").exists() else []


def shares_its_prompt(row: dict[str, Any], sources: list[list[dict[str, Any]]]) -> None:
    """The prompt is what both runs begin with, byte for byte but for ids of calls and spaces in arguments; what follows
    are the runs' own messages, up to the last of the assistant."""
    cut = len(row["prompt"])
    assert row["prompt"][-1]["role"] in ("user", "tool")
    for side, messages in zip(("chosen", "rejected"), sources, strict=True):
        shown = [*row["prompt"], *row[side]]
        assert row[side][0]["role"] == row[side][-1]["role"] == "assistant"
        assert [said(m) for m in shown] == [said(m) for m in messages[: len(shown)]]
        assert all(m["role"] != "assistant" for m in messages[len(shown) :])
        assert messages[cut]["role"] == "assistant"


def said(message: dict[str, Any]) -> Any:
    made = [(c["function"]["name"], arguments(c)) for c in message.get("tool_calls", ())]
    return message["role"], message["content"] or "", made


def arguments(call: dict[str, Any]) -> Any:
    given = call["function"]["arguments"]
    return json.loads(given) if isinstance(given, str) else given


SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@given(corpora(), rules())
@settings(SETTINGS, max_examples=25)
def test_pairs_and_reasons_are_those_of_the_rules(
    made: Make, records: list[dict[str, Any]], stated: tuple[str, Rule]
) -> None:
    check(made, records, *stated)


@pytest.mark.slow
@given(corpora(), rules())
@settings(SETTINGS, max_examples=400)
def test_pairs_and_reasons_are_those_of_the_rules_at_length(
    made: Make, records: list[dict[str, Any]], stated: tuple[str, Rule]
) -> None:
    check(made, records, *stated)
