"""RL prompts and memory rows."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from ruamel.yaml import YAML

from .conftest import TOOLS, Make, calls, result, run, says, system, user

pytestmark = pytest.mark.usefixtures("parts")

LONG = run(
    "1",
    system(),
    says("Hello, how can I help?"),
    user("Find 7"),
    calls(("c", "find", {"id": 7})),
    result("c", "Paris"),
    says("Paris"),
    says("Anything else?"),
    user("No"),
    tools=TOOLS,
    gold=[{"name": "find", "arguments": {"id": 7}}],
    reward=1.0,
    note={"b": 1, "a": 2.50},
)


@pytest.mark.parametrize(("pick", "roles"), [("first", "sau"), ("last", "sauat")])
def test_the_prompt_ends_before_the_turn_that_is_asked_for(made: Make, pick: str, roles: str) -> None:
    got = made([LONG], f"emit rl {{ prompt until {pick} assistant }}")
    assert "".join(m["role"][0] for m in got.rows("rl")[0]["prompt"]) == roles


def test_a_row_has_what_a_reward_needs(made: Make) -> None:
    got = made([LONG], "emit rl { reward 0.8 * state_match + 0.2 * call_format group 4 }")
    row = got.rows("rl")[0]
    assert orjson.loads(row["gold"]) == LONG["gold"]
    assert orjson.loads(row["meta"]) == {"note": LONG["note"]}
    assert row["reward"] == [{"name": "state_match", "weight": 0.8}, {"name": "call_format", "weight": 0.2}]
    assert (row["task"], row["task_id"], row["domain"]) == ("runs/1", "1", "runs")
    settings = YAML(typ="safe").load((got.out / "rl" / "trainer.yaml").read_text())
    assert settings["args"]["num_generations"] == 4
    assert settings["reward"] == {"state_match": 0.8, "call_format": 0.2}


def test_without_a_prompt_a_row_is_dropped(made: Make) -> None:
    records = [
        run("empty"),
        run("silent", system(), user("a")),
        run("unasked", system(), says("b")),
        run("good", user("a"), says("b")),
        run("broken", user("a"), calls(("c", "f", "[1]")), result("c"), says("b")),
    ]
    got = made(records, "emit rl { prompt until last assistant }")
    assert got.written["rl"].dropped == {"no_prompt": 3}
    assert got.written["rl"].rejected == {"arguments_not_an_object": 1}
    got.conserved("rl")


def test_memory_takes_training_tasks_only(made: Make) -> None:
    records: list[dict[str, Any]] = [run(str(i), user(f"task {i}"), says(f"answer {i}")) for i in range(20)]
    records += [run("20", says("no question")), run("21", user("no answer"), says(" "))]
    got = made(
        records,
        """split by task { train 60% validation 40% } seed 1
           emit memory { key task_text value final_answer retrieve bm25 top 5 }""",
    )
    rows = got.rows("memory", "memory")
    written = got.written["memory"]
    split = dict(got.executed.shared.rows.select("task", "split").iter_rows())
    assert {split[row["task"]] for row in rows} == {"train"}
    assert written.dropped["validation_task"] == sum(part == "validation" for part in split.values())
    assert {row["key"].replace("task", "answer") for row in rows} == {row["value"] for row in rows}
    assert not (got.out / "memory" / "validation.parquet").exists()
    settings = YAML(typ="safe").load((got.out / "memory" / "trainer.yaml").read_text())
    assert settings["retrieve"] == {"method": "bm25", "top": 5}
    got.conserved("memory")


def test_memory_needs_key_and_value(made: Make) -> None:
    records = [
        run("1", says("no question")),
        run("2", user("no answer"), says(" ")),
        run("3", user("a"), says("b")),
        run("4", user("\n"), says("b")),
    ]
    got = made(records, "emit memory { key task_text value final_answer }")
    assert got.written["memory"].dropped == {"null_key": 2, "null_value": 1}
    assert [row["n_tokens"] for row in got.rows("memory", "memory")] == [2]


def test_memory_of_made_rows_names_the_run_they_come_from(made: Make) -> None:
    got = made(
        [run("1", user("a"), says("b"), says("c"))], "decompose at true emit memory { key id value final_answer }"
    )
    [run_id] = got.executed.start.rows["id"]
    rows = got.rows("memory", "memory")
    assert {row["value"]: row["parents"] for row in rows} == {"b": [run_id], "c": [run_id]}
    assert {row["example_id"] for row in rows} == {f"{run_id}#d1", f"{run_id}#d2"}
    got.conserved("memory")
