"""Rows that are too long, `context` of a sink, and the reasoning that is shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.runtime.conversation.fit import cut_oldest, head_and_blocks, windows
from curatec.runtime.conversation.messages import Message

from .conftest import Make, calls, result, run, says, system, user

pytestmark = pytest.mark.usefixtures("parts")


def text(n: int) -> str:
    """A text of n estimated tokens."""
    return "abcd" * n


LONG = run(
    "long",
    system(text(10)),
    user(text(10)),
    says(text(20)),
    user(text(5)),
    calls(("1", "find", {}), text=text(29)),  # 29 + find 1 + {} 1
    result("1", text(30)),
    says(text(20)),
    user(text(5)),
    says(text(10)),
    success=True,
)


def shown(row: dict[str, Any]) -> list[tuple[str, int]]:
    return [(m["role"], turn) for m, turn in zip(row["messages"], row["turns"], strict=True)]


def test_drop(made: Make) -> None:
    got = made([LONG], "emit sft { fit 140 tokens else drop }")
    assert list(got.reasons("sft").values()) == ["over_length"]
    got.conserved("sft")
    assert [r["n_tokens"] for r in made([LONG], "emit sft { fit 141 tokens else drop }", name="b").rows("sft")] == [141]


def test_cut_oldest_exchange(made: Make) -> None:
    """141 tokens: without the first exchange 116, without the second as well 55, without the third 30."""
    for most, turns, tokens in (
        (141, [0, 1, 2, 3, 4, 5, 6, 7, 8], 141),
        (140, [0, 1, 4, 5, 6, 7, 8], 116),
        (115, [0, 1, 6, 7, 8], 55),
        (54, [0, 1, 8], 30),
    ):
        got = made([LONG], f"emit sft {{ fit {most} tokens else cut oldest exchange }}", name=str(most))
        [row] = got.rows("sft")
        assert (row["turns"], row["n_tokens"]) == (turns, tokens)
        left = 9 - len(turns)
        told = got.ledger("sft").filter(reason="cut_to_fit")
        assert told["n"].to_list() == ([left] if left else [])
        got.conserved("sft")
    got = made([LONG], "emit sft { fit 29 tokens else cut oldest exchange }")
    assert list(got.reasons("sft").values()) == ["over_length"]


def test_windows(made: Make) -> None:
    """A head of 20 tokens; exchanges of 25, 61, 25 and 10, of which the assistant says 20, 31, 20 and 10."""
    got = made([LONG], "emit sft { fit 60 tokens else window }")
    rows = got.rows("sft")
    assert [shown(row)[2:] for row in rows] == [
        [("assistant", 2)],
        [("assistant", 4)],  # what its call gives would not fit, and nothing behind needs it
        [("assistant", 6), ("user", 7), ("assistant", 8)],
    ]
    assert all(shown(row)[:2] == [("system", 0), ("user", 1)] for row in rows)
    assert [row["n_tokens"] for row in rows] == [40, 51, 55]
    weights = [w for w, m in zip(rows[2]["weights"], rows[2]["messages"], strict=True) if m["role"] == "assistant"]
    assert weights == [1, 1]
    told = got.ledger("sft")
    assert told.filter(action="replaced")["n"].to_list() == [3]
    assert told.filter(action="created")["traj_id"].to_list() == [row["example_id"] for row in rows]
    parent = rows[0]["parents"][0]
    assert [(row["example_id"], row["parents"]) for row in rows] == [(f"{parent}#w{i}", [parent]) for i in range(3)]
    written = got.written["sft"]
    assert (written.created, written.replaced, written.rows) == (3, 1, {"train": 3})
    assert written.lineage.rows() == [(row["example_id"], parent, "window", i) for i, row in enumerate(rows)]


def test_what_fits_into_no_window_is_told(made: Make) -> None:
    got = made([LONG], "emit sft { fit 50 tokens else window }")
    assert [shown(row)[-1] for row in got.rows("sft")] == [("assistant", 2), ("assistant", 6), ("assistant", 8)]
    assert got.ledger("sft").filter(reason="over_length")["n"].to_list() == [1]  # the call: 51
    got.conserved("sft")
    got = made([LONG], "emit sft { fit 29 tokens else window }", name="b")
    assert list(got.reasons("sft").values()) == ["over_length"]
    got.conserved("sft")


def test_a_greeting_is_trained_in_the_first_window(made: Make) -> None:
    turns = [m for _ in range(6) for m in (user(text(5)), says(text(5)))]
    rows = made([run("t", says(text(3)), *turns, success=True)], "emit sft { fit 30 tokens else window }").rows("sft")
    trained = [[t for t, w in zip(row["turns"], row["weights"], strict=True) if w] for row in rows]
    assert [t for own in trained for t in own] == [0, *range(2, 13, 2)]
    assert all(row["turns"][:2] == [0, 1] for row in rows)


def test_a_window_repeats_what_was_before_as_context(made: Make) -> None:
    turns = [m for i in range(12) for m in (user(text(5)), says(text(5)))]
    got = made([run("t", *turns, success=True)], "emit sft { fit 60 tokens else window }")
    rows = got.rows("sft")
    trained = [[t for t, w in zip(row["turns"], row["weights"], strict=True) if w] for row in rows]
    assert [t for own in trained for t in own] == list(range(1, 24, 2))
    assert all(row["n_tokens"] <= 60 for row in rows)
    context = [
        sum(m["role"] == "assistant" and not w for m, w in zip(r["messages"], r["weights"], strict=True)) for r in rows
    ]
    assert context[0] == 0
    assert all(context[1:])


# ---- properties of the two functions, whatever a row is like ----

CONVERSATIONS = st.lists(
    st.tuples(st.sampled_from("sutaaat"), st.integers(1, 9), st.booleans()), min_size=1, max_size=14
)
ROLES = {"s": "system", "u": "user", "t": "tool", "a": "assistant"}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(CONVERSATIONS, st.integers(1, 40))
def test_cuts_are_the_fewest(parts: list[tuple[str, int, bool]], most: int) -> None:
    messages, sizes = [Message(i, i, ROLES[r], "x") for i, (r, _, _) in enumerate(parts)], [n for _, n, _ in parts]

    def fits(positions: Any) -> bool:
        return sum(sizes[i] for i in positions) <= most

    head, blocks = head_and_blocks(messages)
    assert [*head, *(i for block in blocks for i in block)] == list(range(len(messages)))
    assert all(messages[block[0]].role == "assistant" for block in blocks)
    tries = [[*head, *(i for block in blocks[k:] for i in block)] for k in range(len(blocks))]
    assert cut_oldest(messages, fits) == next((found for found in tries if fits(found)), None)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(CONVERSATIONS, st.integers(1, 40))
def test_each_block_is_trained_in_one_window(parts: list[tuple[str, int, bool]], most: int) -> None:
    messages, sizes = [Message(i, i, ROLES[r], "x") for i, (r, _, _) in enumerate(parts)], [n for _, n, _ in parts]
    trained = [r == "a" and t for r, _, t in parts]

    def fits(positions: Any) -> bool:
        return sum(sizes[i] for i in positions) <= most

    head, blocks = head_and_blocks(messages)
    found = windows(messages, trained, fits)
    taught = [i for shown, start in found for i in shown if i >= start and trained[i]]
    fitting = [block[0] for block in blocks if fits([*head, block[0]]) and trained[block[0]]]
    assert taught == ([i for i in head if trained[i]] if found else []) + fitting
    for n, (shown, start) in enumerate(found):
        assert fits(shown)
        assert shown[: len(head)] == head[: len(shown)]
        rest = shown[len(head) :]
        assert rest == (list(range(rest[0], rest[-1] + 1)) if rest else [])
        assert trained[shown[-1]]
        assert start <= shown[-1]
        assert start == 0 or n


def test_looking_for_windows_is_cheap() -> None:
    """How often each message is looked at while a run is parted does not grow with the run."""
    looked = []
    for n in (400, 4000):
        messages = [Message(i, i, "assistant" if i % 2 else "user", "x") for i in range(n)]
        asked: list[int] = []

        def fits(positions: Any, asked: list[int] = asked) -> bool:
            asked.append(len(positions))
            return len(positions) <= 40

        windows(messages, [message.role == "assistant" for message in messages], fits)
        looked.append(sum(asked) / n)
    assert looked[1] < 1.25 * looked[0]  # borders weigh less in a longer run


# ---- context and reasoning ----

TALK = run(
    "talk",
    system("S"),
    user("do it"),
    calls(("1", "find", {"id": 1}), reasoning_content="why find"),
    result("1", "one"),
    calls(("2", "find", {"id": 2}), ("3", "find", {"id": 3}), text="both"),
    result("2", "two"),
    result("3", "three"),
    says("done", reasoning_content="all seen"),
    user("thanks"),
    success=True,
)


def contents(row: dict[str, Any]) -> list[str]:
    return [m["content"] or "/".join(c["function"]["name"] for c in m.get("tool_calls", ())) for m in row["messages"]]


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("system, task, last 9 results", ["S", "do it", "find", "one", "both", "two", "three", "done"]),
        ("task, last 2 results", ["do it", "both", "two", "three", "done"]),
        ("task, last 1 results", ["do it", "both", "three", "done"]),
        ("task", ["do it", "both", "done"]),
        ('system, task, last 1 results, elide "…"', ["S", "do it", "find", "…", "both", "…", "three", "done"]),
        ("system, task, all calls", ["S", "do it", "find", "[…]", "both", "[…]", "[…]", "done"]),
    ],
)
def test_context_of_a_sink(made: Make, context: str, expected: list[str]) -> None:
    got = made([TALK], f"emit sft {{ context {{ {context} }} }}")
    [row] = got.rows("sft")
    assert contents(row) == expected
    ids = [c["id"] for m in row["messages"] for c in m.get("tool_calls", ())]
    assert ids == [m["tool_call_id"] for m in row["messages"] if m["role"] == "tool"]
    got.conserved("sft")


@pytest.mark.parametrize(
    ("shown", "expected"), [("keep", ["why find", "all seen"]), ("last", ["all seen"]), ("strip", [])]
)
def test_reasoning_that_is_shown(made: Make, shown: str, expected: list[str]) -> None:
    [row] = made([TALK], f"emit sft {{ reasoning {shown} }}").rows("sft")
    assert [m["reasoning_content"] for m in row["messages"] if "reasoning_content" in m] == expected
    spans = [s for s in row["trained"] if s["part"] == "reasoning"]
    assert len(spans) == len(expected)


def test_a_turn_that_lost_calls_to_the_context_is_context(made: Make) -> None:
    """`both` made two calls: with one of them it is not what the run said."""
    for loss, weights in (("loss on assistant", [0, 1]), ("loss on assistant including edited", [1, 1])):
        got = made([TALK], f"emit sft {{ {loss} context {{ task, last 1 results }} }}", name=loss)
        [row] = got.rows("sft")
        assert contents(row) == ["do it", "both", "three", "done"]
        assert [row["weights"][1], row["weights"][3]] == weights
    [row] = made([TALK], 'emit sft { context { task, elide "…" } }').rows("sft")
    assert [w for w, m in zip(row["weights"], row["messages"], strict=True) if m["role"] == "assistant"] == [1, 1, 1]


def test_results_of_the_users_calls_are_none_of_the_last(made: Make) -> None:
    """In tau2 the user has tools too; the agent never sees what they give."""
    users = {"id": "u", "name": "look", "arguments": {}, "requestor": "user"}
    talk = [
        {"role": "user", "content": "do it"},
        {"role": "assistant", "tool_calls": [{"id": "1", "name": "find", "arguments": {}, "requestor": "assistant"}]},
        {"role": "tool", "id": "1", "content": "one", "requestor": "assistant"},
        {"role": "assistant", "content": "look at it"},
        {"role": "user", "content": None, "tool_calls": [users]},
        {"role": "tool", "id": "u", "content": "red", "requestor": "user"},
        {"role": "user", "content": "it is red"},
        {"role": "assistant", "content": "done"},
    ]
    record = {
        "tasks": [],
        "simulations": [{"task_id": "1", "trial": 0, "messages": talk, "reward_info": {"reward": 1.0}}],
    }
    expected = ["do it", "find", "one", "look at it", "it is red", "done"]
    for name, body in (
        ("sink", "emit sft { context { task, last 1 results } }"),
        ("decisions", 'd: decompose at content == "done" context { task, last 1 results } emit sft { }'),
    ):
        [row] = made([record], body, name=name, source="format tau2").rows("sft")
        assert contents(row) == expected
