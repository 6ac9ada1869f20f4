"""Sinks in the forms of other targets; the forms themselves are tried in tests/targets."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from .conftest import TOOLS, Make, Record, calls, result, run, says, system, user


def attempt(task: str, answer: str, good: bool, **more: Any) -> Record:
    opening = [system(), user(f"Find {task}"), calls(("a", "find", {"id": 7})), result("a", "Paris")]
    gold = [{"name": "find", "arguments": {"id": 7}}]
    return run(task, *opening, says(answer), tools=TOOLS, success=good, gold=gold, **more)


PAIRS = [attempt("1", "Paris", True), attempt("1", "Rome", False), attempt("2", "Bonn", True)]
PAIR = "pair within task from first difference chosen where success rejected where not success"


def test_verl_prompts_hold_what_a_reward_reads(made: Make) -> None:
    got = made(PAIRS[:1], "emit rl { reward call_match format verl }")
    [row] = got.rows("rl")
    assert row["data_source"] == "runs"
    assert [m["role"] for m in row["prompt"]] == ["system", "user"]
    assert orjson.loads(row["reward_model"]["ground_truth"]) == [{"name": "find", "arguments": {"id": 7}}]
    assert row["extra_info"]["gold_calls"] == [{"name": "find", "arguments": {"id": 7}}]
    assert row["extra_info"]["reward"] == [{"name": "call_match", "weight": 1.0}]
    assert "gold_calls" not in row  # the format has its own place for it
    got.conserved("rl")


@pytest.mark.parametrize("format_", ["sharegpt", "llamafactory"])
def test_pairs_in_other_forms(made: Make, format_: str) -> None:
    got = made(PAIRS, f"emit preference {{ {PAIR} format {format_} }}")
    [row] = got.rows("preference")
    sides = ("chosen", "rejected") if format_ == "sharegpt" else ("chosen_messages", "rejected_messages")
    texts = orjson.dumps([row[name] for name in sides]).decode()
    assert texts.index("Paris") < texts.index("Rome")
    assert pq.read_table(got.out / "preference" / "train.parquet").num_rows == 1
    got.conserved("preference")


def test_what_a_form_cannot_say_is_rejected(made: Make) -> None:
    beside = [{**record, "messages": [*record["messages"][:-1], says("Wait"), says("so")]} for record in PAIRS[:1]]
    got = made([*beside, PAIRS[2]], "emit sft { format sharegpt }")
    assert list(got.reasons("sft").values()) == ["role_order"]
    assert len(got.rows("sft")) == 1
    got.conserved("sft")


def test_a_part_of_a_message_needs_a_mask_over_texts(made: Make) -> None:
    thinking = run("t", user("a"), says("b", reasoning_content="why"), success=True)
    for format_ in ("llamafactory", "verl", "atif", "sharegpt"):
        got = made([thinking], f"emit sft {{ loss on assistant except reasoning format {format_} }}", name=format_)
        assert list(got.reasons("sft").values()) == ["mask_not_expressible"]
    got = made([thinking], "emit sft { loss on assistant except reasoning reasoning strip format atif }", name="strip")
    assert len(got.rows("sft")) == 1


def test_lines_of_a_strict_form_hold_nothing_else(made: Make) -> None:
    got = made(PAIRS[:1], "emit sft { format atif }")
    [row] = got.rows("sft")
    assert set(row) == {"schema_version", "session_id", "trajectory_id", "agent", "steps", "extra"}
    assert got.texts("sft")[0]["example_id"] == row["session_id"]
