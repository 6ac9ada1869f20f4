"""`augment recover`: which failed calls are put right, and what the row shows and trains."""

from __future__ import annotations

from typing import Any

import pytest

from tests.semantics.tools import Bench, Record, call, record, result, turns_now
from tests.sinks.conftest import Make, run, trained_texts, user
from tests.sinks.conftest import calls as made_calls
from tests.sinks.conftest import result as answer

USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "which one?"}


def bad(id: str) -> Record:
    return result("Error: no", id=id, is_error=True)


def good(id: str) -> Record:
    return result("fine", id=id, is_error=False)


def ends(bench: Bench, *messages: Record, gap: int = 2) -> list[int]:
    """The last turn of each row that is made, in their order."""
    done = bench.run(f"fix: augment recover(max_gap: {gap})", [record(USER, *messages)])
    made = sorted((id_, turns) for id_, turns in turns_now(done.shared).items() if "#" in id_)
    assert [id_.partition("#")[2] for id_, _ in made] == [f"afix.{k}" for k in range(len(made))]
    assert [c.failed for c in done.ledger.counts] == [0]
    return [turns[-1]["turn"] for _, turns in made]


CASES: dict[str, tuple[list[Record], list[int]]] = {
    "the next call": ([call("f", {"x": 1}), bad("1"), call("f", {"x": 2}, id="2"), good("2")], [3]),
    "no evidence of an error afterwards": (
        [call("f", {"x": 1}), bad("1"), call("f", {"x": 2}, id="2"), result("?", id="2")],
        [3],
    ),
    "an unknown first result": (
        [call("f", {"x": 1}), result("Error", id="1"), call("f", {"x": 2}, id="2"), good("2")],
        [],
    ),
    "another tool": ([call("f", {"x": 1}), bad("1"), call("g", {"x": 2}, id="2"), good("2")], []),
    "the same arguments, written otherwise": (
        [call("f", '{"x":1, "y":2}'), bad("1"), call("f", '{"y":2,"x":1}', id="2"), good("2")],
        [],
    ),
    "arguments that are mended": ([call("f", "{x"), bad("1"), call("f", "{}", id="2"), good("2")], [3]),
    "a call without a result": ([call("f", {"x": 1}), bad("1"), call("f", {"x": 2}, id="2")], []),
    "within the gap": (
        [call("f", {"x": 1}), bad("1"), SAID, USER, call("f", {"x": 2}, id="2"), good("2")],
        [5],
    ),
    "beyond the gap": (
        [call("f", {"x": 1}), bad("1"), SAID, USER, SAID, USER, call("f", {"x": 2}, id="2"), good("2")],
        [],
    ),
    "two failures, one correction": (
        [call("f", {"x": 1}), bad("1"), call("f", {"x": 2}, id="2"), bad("2"), call("f", {"x": 3}, id="3"), good("3")],
        [5],
    ),
    "two corrections": (
        [
            call("f", {"x": 1}), bad("1"), call("f", {"x": 2}, id="2"), good("2"),
            call("g", {"x": 1}, id="3"), bad("3"), call("g", {"x": 2}, id="4"), good("4"),
        ],
        [3, 7],
    ),
    "the first of those that would do": (
        [call("f", {"x": 1}), bad("1"), call("f", {"x": 2}, id="2"), good("2"), call("f", {"x": 3}, id="3"), good("3")],
        [3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_which_turn_puts_right(bench: Bench, case: str) -> None:
    messages, expected = CASES[case]
    assert ends(bench, *messages) == expected


def test_calls_side_by_side_are_no_correction(bench: Bench) -> None:
    two = call("f", {"x": 1})
    two["tool_calls"] += call("f", {"x": 2}, id="2")["tool_calls"]
    assert ends(bench, two, bad("1"), good("2")) == []
    assert ends(bench, two, bad("1"), good("2"), call("f", {"x": 3}, id="3"), good("3"), gap=1) == [4]


def test_only_the_correction_is_trained(made: Make) -> None:
    messages: tuple[Any, ...] = (
        user("hi"),
        made_calls(("1", "f", {"x": 1}), text="let me see"),
        answer("1", "Error: no"),
        made_calls(("2", "f", {"x": 2}), text="so then"),
        answer("2", "fine"),
    )
    body = "fix: augment recover(max_gap: 1) emit sft { loss on assistant }"
    done = made([run("a", *messages)], body, source='format openai error when content ~ r"^Error"')
    done.conserved("sft")
    assert done.written["sft"].rows == {"train": 2}
    row = next(r for r in done.texts("sft") if "#" in r["example_id"])
    assert row["example_id"] == f"{row['parents'][0]}#afix.0"
    assert row["turns"] == [0, 1, 2, 3]
    assert row["weights"] == [0.0, 0.0, 0.0, 1.0]
    assert [(at, part) for at, part, _ in trained_texts(row)] == [(3, "content"), (3, "call")]
