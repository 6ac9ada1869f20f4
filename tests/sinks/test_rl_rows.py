"""Groups, resets and a reward's inputs in the rows of `emit rl`; rows that no verifier can judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from curatec.runtime.conversation.messages import Message
from curatec.runtime.data_lints import data_lints
from curatec.runtime.sinks.rl import prompt_of

from .conftest import TOOLS, Made, Make, calls, result, run, says, system, user

CALL = {"name": "find", "arguments": {"id": 7}}


def asked(task: str, text: str = "Find 7", answer: str = "Paris", id_: str = "c", **facts: Any) -> dict[str, Any]:
    opening = [system(), user(text), calls((id_, "find", {"id": 7})), result(id_, "Paris")]
    return run(task, *opening, says(answer), **facts)


def emitted(
    made: Make, records: list[dict[str, Any]], reward: str = "reward", prompt: str = "last", **more: Any
) -> Made:
    return made(records, f"emit rl {{ prompt until {prompt} assistant reward {reward} }}", **more)


def test_rows_carry_calls_answers_and_resets_as_objects(made: Make) -> None:
    gold = {"actions": [{"name": "find", "kwargs": {"id": 7}}], "outputs": ["Paris"]}
    record = asked("1", gold=gold, success=True, trial=3, initial_state={"orders": []}, state_digest="abc")
    got = emitted(made, [record, asked("1", "Find 8", success=False)])
    row = next(row for row in got.rows("rl") if row["gold"])
    assert row["gold_calls"] == [CALL]
    assert row["gold_answers"] == ["Paris"]
    assert row["state_digest"] == "abc"
    assert (row["attempts"], row["pass_rate"]) == (2, 0.5)
    assert row["reset"] == {
        "domain": "runs", "task_id": "1", "trial": 3, "format": "openai", "initial_state": {"orders": []},
    }  # fmt: skip
    other = next(row for row in got.rows("rl") if not row["gold"])
    assert (other["gold_calls"], other["gold_answers"], other["state_digest"]) == (None, None, None)


REFERENCES: dict[str, dict[str, Any]] = {
    "calls": {"gold": [CALL]},
    "answer": {"gold": "Paris"},
    "state": {"state_digest": "abc"},
    "tools": {"tools": TOOLS},
    "nothing": {},
}


@pytest.mark.parametrize(
    ("reward", "kept", "reason"),
    [
        ("state_match", {"calls", "state"}, "no_state"),
        ("call_match", {"calls"}, "no_gold_calls"),
        ("answer_match", {"answer"}, "no_gold_answer"),
        ("no_hallucinated_tool", {"tools"}, "no_tools"),
        ("call_format + reward", set(REFERENCES), None),
    ],
)
def test_rows_that_no_rollout_could_be_judged_on_are_dropped(
    made: Make, reward: str, kept: set[str], reason: str | None
) -> None:
    got = emitted(made, [asked(name, **facts) for name, facts in REFERENCES.items()], f"0.5 * ({reward})")
    assert {row["task_id"] for row in got.rows("rl")} == kept
    lost = len(REFERENCES) - len(kept)
    assert got.written["rl"].dropped == ({reason: lost} if reason else {})
    got.conserved("rl")


def test_rows_of_one_prompt_are_one_group_and_are_told(made: Make) -> None:
    records = [
        asked("1", id_="a", trial=0),
        asked("1", id_="b", trial=1),  # the same prompt under another id of the call
        asked("1", tools=TOOLS),
        asked("1", "Find 8"),
        asked("2"),
    ]
    got = emitted(made, records)
    groups = [row["group"] for row in got.rows("rl")]
    assert len(set(groups)) == len(records) - 1
    by_trial = {row["reset"].get("trial"): row["group"] for row in got.rows("rl")}
    assert by_trial[0] == by_trial[1]
    assert all(group.startswith(f"{row['task']}#") for group, row in zip(groups, got.rows("rl"), strict=True))
    [note] = got.written["rl"].notes
    assert note.startswith("1 row starts from a prompt that another row of the task has")
    assert emitted(made, records[1:], name="b").written["rl"].notes == ()


def test_numbers_that_loaders_cannot_read_are_refused(made: Make) -> None:
    large = json.dumps(asked("1", gold=[{"name": "f", "arguments": {"x": 2**64}}]))
    got = emitted(made, [large, asked("2", gold=[CALL])])
    assert got.written["rl"].rejected == {"number_too_large": 1}


def test_settings_say_how_columns_reach_a_reward(made: Make) -> None:
    got = made(
        [asked("1", gold=[CALL])], "emit rl { reward 0.8 * state_match + 0.2 * call_format group 6 format openai }"
    )
    text = (got.out / "rl" / "trainer.yaml").read_text()
    told = YAML(typ="safe").load(text)
    assert told["inputs"] == {"state_match": ["state_digest", "gold_calls"], "call_format": []}
    assert told["args"]["num_generations"] == 6
    assert set(told["columns"]) == set(got.rows("rl")[0])
    assert "no_state" in text
    assert "reset(**row)" in text


def test_rows_of_decompose_name_the_run_they_come_from(made: Make) -> None:
    got = made([asked("1")], "decompose at true emit rl { prompt until last assistant }")
    rows = got.rows("rl")
    assert [len(row["prompt"]) for row in rows] == [2, 4]
    assert {tuple(row["parents"]) for row in rows} == {(rows[0]["example_id"].partition("#")[0],)}


ROLES = st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), max_size=8)


@given(ROLES, st.sampled_from(["first", "last"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_prompt_ends_with_a_question_or_a_result(roles: list[str], pick: str) -> None:
    """By the text of the rule: an assistant's turn after a user's, right behind a user's or a tool's."""
    messages = [Message(i, i, role, "x") for i, role in enumerate(roles)]
    ends = [
        roles[:i]
        for i, role in enumerate(roles)
        if role == "assistant" and "user" in roles[:i] and roles[i - 1] in ("user", "tool")
    ]
    wanted = [] if not ends else ends[0] if pick == "first" else ends[-1]
    assert [message.role for message in prompt_of(messages, pick)] == wanted


@pytest.mark.parametrize(("judged", "warned"), [(4, True), (5, False)])
def test_a_fifth_without_what_the_reward_reads_is_warned_about(made: Make, judged: int, warned: bool) -> None:
    records = [asked(f"{i}", gold=[CALL]) for i in range(judged)] + [asked("bare")]
    got = emitted(made, records, "call_match")
    codes = [lint.message for lint in data_lints(got.executed, got.written, []) if lint.code == "C0637"]
    assert codes == (["1 of 5 rows of `rl` lack what its reward reads (no_gold_calls 1)"] if warned else [])
