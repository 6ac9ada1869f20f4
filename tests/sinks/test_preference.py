"""Preference pairs: which runs meet, what they share, who is left out and why."""

from __future__ import annotations

from typing import Any

import pytest

from curatec.runtime.sinks.preference import pair_id

from .conftest import TOOLS, Made, Make, calls, result, run, says, system, user

pytestmark = pytest.mark.usefixtures("parts")

PAIR = "pair within task {} chosen where success rejected where not success {}"


def body(clauses: str = "", start: str = "from first difference") -> str:
    return f"emit preference {{ {PAIR.format(start, clauses)} }}"


def attempt(good: bool, *tail: dict[str, Any], task: str = "1", id_: str = "c", **facts: Any) -> dict[str, Any]:
    """A run that opens as all others do, under call ids of its own."""
    opening = [system(), user("Find 7"), calls((id_, "find", {"id": 7})), result(id_, "Paris")]
    return run(task, *opening, *tail, success=good, reward=float(good), **facts)


def contents(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


def test_sides_share_all_up_to_the_first_difference(made: Make) -> None:
    records = [
        attempt(True, says("Paris"), user("ok")),
        attempt(False, says("Rome"), user("no"), says("sorry"), id_="d"),
    ]
    got = made(records, body())
    [row] = got.rows("preference")
    assert [m["role"] for m in row["prompt"]] == ["system", "user", "assistant", "tool"]
    assert contents(row["chosen"]) == ["Paris"]
    assert contents(row["rejected"]) == ["Rome", "no", "sorry"]
    assert row["example_id"] == pair_id(*row["parents"])
    assert len(row["example_id"]) == len("pair-") + 16
    assert got.written["preference"].created == 1
    assert got.written["preference"].replaced == 2
    lineage = got.written["preference"].lineage
    assert lineage.rows() == [(row["example_id"], parent, "pair", i) for i, parent in enumerate(row["parents"])]
    got.conserved("preference")


def test_without_the_clause_the_prompt_ends_at_the_first_reply(made: Make) -> None:
    [row] = made([attempt(True, says("Paris")), attempt(False, says("Rome"))], body(start="")).rows("preference")
    assert [m["role"] for m in row["prompt"]] == ["system", "user"]
    assert [m["role"] for m in row["chosen"]] == ["assistant", "tool", "assistant"]


def reasons(got: Made) -> set[str]:
    got.conserved("preference")
    return set(got.reasons("preference").values())


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        ("no_pair", attempt(False, says("Rome"), task="2")),
        ("tools_differ", attempt(False, says("Rome"), tools=TOOLS)),
        ("prompts_differ", run("1", system(), user("Find 8"), says("Rome"), success=False)),
        ("prompts_differ", attempt(False, says("Paris"), user("Really?"), says("Rome"))),
        ("no_difference", attempt(False, says("Paris"))),
        ("no_text", attempt(False, says(" \n"))),
        ("margin", attempt(False, says("Rome")) | {"reward": 0.9}),
        ("length_ratio", attempt(False, says("Rome, Rome, Rome"))),
    ],
)
def test_why_there_is_no_pair(made: Make, reason: str, other: dict[str, Any]) -> None:
    clauses = "margin reward >= 0.5 length ratio <= 2"
    got = made([attempt(True, says("Paris")), other], body(clauses))
    assert got.rows("preference") == []
    assert reasons(got) == {reason}


def test_the_difference_must_be_the_assistants(made: Make) -> None:
    good, bad = attempt(True, says("Paris"), user("a"), says("x")), attempt(False, says("Paris"), user("b"), says("y"))
    assert reasons(made([good, bad], body())) == {"prompts_differ"}


def test_a_continuation_starts_with_the_first_of_several_assistant_messages(made: Make) -> None:
    good, bad = attempt(True, says("Well"), says("Paris")), attempt(False, says("Well"), says("Rome"))
    [row] = made([good, bad], body()).rows("preference")
    assert row["prompt"][-1]["role"] == "tool"
    assert contents(row["chosen"]) == ["Well", "Paris"]


def test_which_call_a_result_answers_counts(made: Make) -> None:
    asked = [user("Both"), calls(("a", "f", {}), ("b", "f", {}))]
    good = run("1", *asked, result("a"), result("b"), says("x"), success=True)
    bad = run("1", *asked, result("b"), result("a"), says("y"), success=False)
    assert reasons(made([good, bad], body())) == {"prompts_differ"}


def test_a_length_ratio_may_be_reached(made: Make) -> None:
    records = [attempt(True, says("Rome")), attempt(False, says("Warszawa"))]
    assert len(made(records, body("length ratio <= 2")).rows("preference")) == 1
    assert reasons(made(records, body("length ratio <= 1.9"), name="b")) == {"length_ratio"}


def test_neither_side_and_rejected(made: Make) -> None:
    records = [
        attempt(True, says("Paris")),
        attempt(False, says("Rome")),
        attempt(False, says("x")) | {"success": None},
        attempt(False, calls(("q", "f", "{}")), says("y")),
    ]
    got = made(records, body())
    assert got.written["preference"].dropped == {"neither_side": 1}
    assert got.written["preference"].rejected == {"unanswered_call": 1}
    got.conserved("preference")


def test_a_run_never_meets_itself(made: Make) -> None:
    clauses = "chosen where reward >= 0 rejected where reward >= 0"
    records = [attempt(True, says(text)) for text in ("a", "b")]
    got = made(records, f"emit preference {{ pair within task {clauses} }}")
    assert sorted(tuple(contents(r["chosen"][-1:]) + contents(r["rejected"][-1:])) for r in got.rows("preference")) == [
        ("a", "b"),
        ("b", "a"),
    ]
    alone = made(records[:1], f"emit preference {{ pair within task {clauses} }}", name="b")
    assert reasons(alone) == {"no_pair"}


def test_rows_of_one_run_never_pair(made: Make) -> None:
    """Neither decisions of a run with each other, nor a run with its copies; with those of another run they do."""
    sides = "chosen where turn_count == 4 rejected where turn_count == 2"
    statement = f"decompose at true emit preference {{ pair within task {sides} }}"
    good, bad = attempt(True, says("Paris")), attempt(False, says("Rome"))
    alone = made([good], statement)
    assert alone.rows("preference") == []
    assert reasons(alone) == {"no_pair"}
    both = made([good, bad], statement, name="b")
    for row in both.rows("preference"):
        assert row["parents"][0] != row["parents"][1]
        assert not any("#" in parent for parent in row["parents"])
    assert len(both.rows("preference")) == 2
    assert {("#" in id_) for id_ in both.written["preference"].lineage["in"]} == {True}


def test_a_side_must_say_or_call_something_behind_the_prompt(made: Make) -> None:
    told = attempt(True, says(" "), user("Well?"), says("Paris"))
    mute, calling = attempt(False, says(None)), attempt(False, calls(("q", "find", {"id": 8})))
    got = made([told, mute, calling], body())
    [row] = got.rows("preference")
    assert row["rejected"][-1]["tool_calls"][0]["function"]["arguments"] == {"id": 8}
    assert set(got.reasons("preference").values()) == {"no_text"}


def test_what_a_trainer_is_shown_alike_is_alike(made: Make) -> None:
    """Null content is empty content, and objects have no spaces between their tokens; texts have."""

    def opened(good: bool, arguments: str, content: str | None, answer: str) -> dict[str, Any]:
        asked = [user("Find"), calls((answer, "find", arguments), text=content), result(answer)]
        return run("1", *asked, says(answer), success=good)

    records = [opened(True, '{"id": 7}', None, "Paris"), opened(False, '{"id":7}', "", "Rome")]
    [row] = made(records, body()).rows("preference")
    assert [m["role"] for m in row["prompt"]] == ["user", "assistant", "tool"]
    same = [opened(True, '{"id": 7}', None, "Paris"), opened(False, '{"id":7}', "", "Paris")]
    assert reasons(made(same, body(), name="b")) == {"no_difference"}
    texts = f"emit preference {{ {PAIR.format('from first difference', '')} format openai }}"
    [row] = made(records, texts, name="c").rows("preference")
    assert [m["role"] for m in row["prompt"]] == ["user"]


@pytest.mark.parametrize(
    ("chosen", "rejected", "pairs"),
    [(0.3, 0.1, 1), (0.3, 0.11, 0), (1.1, 0.9, 1), (0.1, 0.3, 0), (None, 0.1, 0), (1e300, -1e300, 1)],
)
def test_a_margin_is_between_decimals(made: Make, chosen: float | None, rejected: float, pairs: int) -> None:
    good, bad = attempt(True, says("Paris")), attempt(False, says("Rome"))
    got = made([good | {"reward": chosen}, bad | {"reward": rejected}], body("margin reward >= 0.2"))
    rows = got.rows("preference")
    assert len(rows) == pairs
    if rows and chosen == 0.3:
        assert rows[0]["margin"] == 0.2
    if not rows:
        assert reasons(got) == {"margin"}


def test_max_takes_the_largest_margin(made: Make) -> None:
    records = [attempt(True, says("good"))] + [
        attempt(False, says(f"bad {r}")) | {"reward": r} for r in (0.5, 0.1, 0.3)
    ]
    got = made(records, body("margin reward >= 0.2 max 2 per task"))
    assert {r["rejected"][0]["content"] for r in got.rows("preference")} == {"bad 0.1", "bad 0.3"}
    assert reasons(got) == {"over_max"}


def test_max_takes_the_longest_prefix_without_a_margin(made: Make) -> None:
    late = attempt(False, says("Paris"), user("Sure?"), says("no"))
    records = [attempt(True, says("Paris"), user("Sure?"), says("yes")), late, attempt(False, says("Rome"))]
    [row] = made(records, body("max 1 per task")).rows("preference")
    assert contents(row["rejected"]) == ["no"]


def test_licenses_and_tokens(made: Make) -> None:
    records = [attempt(True, says("Paris"), license="MIT"), attempt(False, says("Rome"), license="Apache-2.0")]
    got = made(records, body())
    [row] = got.rows("preference")
    assert row["license"] == "MIT AND Apache-2.0"
    assert row["n_trained"] == 2 + 1
    assert (row["n_chosen"] - row["n_rejected"], row["n_tokens"]) == (1, row["n_chosen"] + 1)
    assert row["margin"] is None
    assert got.written["preference"].trained_tokens == 3
