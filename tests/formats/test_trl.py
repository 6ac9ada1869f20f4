"""TRL's columns as runs, and rows of `curatec` read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import USER, Read, assistant, call, lines, result

Reader = Callable[..., Read]
GOOD = {"role": "assistant", "content": "good"}
BAD = {"role": "assistant", "content": "bad"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def shown(run: dict[str, Any]) -> list[tuple[str, str | None, float]]:
    return [(turn["role"], turn["content"], turn["loss_weight"]) for turn in run["turns"]]


def test_tools_as_json_text_and_calls_without_ids(read: Reader) -> None:
    messages = [USER, assistant(call({"n": 1}, id=None)), {"role": "tool", "name": "look", "content": "ok"}]
    found = read([{"messages": messages, "tools": json.dumps([TOOL])}])
    assert found.run["format"] == "trl"
    assert json.loads(found.run["tools_json"]) == [TOOL]
    assert found.run["defects"] == ["ends_on_tool"]
    assert found.call["result_turn"] == 2


def test_plain_messages_stay_with_openai(read: Reader) -> None:
    found = read(lines({"messages": [USER, GOOD], "tools": [TOOL]}, {"messages": [USER, GOOD], "tools": None}))
    assert found.corpus.formats == {"openai": 2}
    assert read(lines({"messages": [USER, GOOD]}), format="trl", name="b.json").run["format"] == "trl"


@pytest.mark.parametrize(("prompt", "completion"), [("go", "good"), ([USER], [GOOD]), ([USER], "good"), ("go", [GOOD])])
def test_prompt_and_completion(read: Reader, prompt: Any, completion: Any) -> None:
    found = read([{"prompt": prompt, "completion": completion, "n": 3}])
    assert shown(found.run) == [("user", "go", 1.0), ("assistant", "good", 1.0)]
    assert (found.run["outcome"], found.run["reward"], found.run["meta_json"]) == ("unknown", None, '{"n":3}')


def test_a_prompt_is_never_trained(read: Reader) -> None:
    found = read([{"prompt": [USER, GOOD, USER], "completion": [BAD]}])
    assert [turn["loss_weight"] for turn in found.turns] == [1.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("label", [True, False])
def test_kto(read: Reader, label: bool) -> None:
    run = read([{"prompt": "go", "completion": "good", "label": label}]).run
    assert (run["success"], run["reward"]) == (label, float(label))
    assert run["outcome"] == ("success" if label else "failure")


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]},
        {"chosen": [USER, GOOD], "rejected": [USER, BAD]},
        {"prompt": "go", "chosen": [USER, GOOD], "rejected": [USER, BAD]},
        {"prompt": "go", "chosen": "good", "rejected": "bad"},
    ],
)
def test_a_preference_is_two_runs_of_one_task(read: Reader, row: Any) -> None:
    chosen, rejected = sorted(read([row]).runs, key=lambda run: -run["reward"])
    assert shown(chosen) == [("user", "go", 1.0), ("assistant", "good", 1.0)]
    assert shown(rejected) == [("user", "go", 1.0), ("assistant", "bad", 1.0)]
    assert (chosen["success"], chosen["reward"], chosen["outcome"]) == (True, 1.0, "success")
    assert (rejected["success"], rejected["reward"], rejected["outcome"]) == (False, 0.0, "failure")
    assert chosen["task_id"] == rejected["task_id"] is not None


def test_texts_share_their_beginning_as_the_prompt(read: Reader) -> None:
    chosen, rejected = read([{"chosen": "2 + 2 is 4", "rejected": "2 + 2 is 5"}]).runs
    assert [turn["content"] for run in (chosen, rejected) for turn in run["turns"]] == [
        "2 + 2 is ",
        "4",
        "2 + 2 is ",
        "5",
    ]


def test_other_prompts_are_other_tasks(read: Reader) -> None:
    rows = [{"prompt": text, "chosen": "a", "rejected": "b"} for text in ("one", "two")]
    assert len({run["task_id"] for run in read(rows).runs}) == 2
    named = [{**row, "task_id": "t"} for row in rows]
    assert {run["task_id"] for run in read(named, name="b.json").runs} == {"t"}


def test_a_prompt_alone_ends_where_a_rollout_begins(read: Reader) -> None:
    row = {"example_id": "e", "prompt": [USER], "task": "shop/7", "gold": '{"a":1}', "meta": '{"k":[1]}', "reward": [
        {"name": "exact", "weight": 1.0}]}  # fmt: skip
    run = read([row]).run
    assert (run["record_id"], run["domain"], run["task_id"], run["reward"]) == ("e", "shop", "7", None)
    assert (run["gold_json"], shown(run)) == ('{"a":1}', [("user", "go", 1.0)])
    assert json.loads(run["meta_json"]) == {"k": [1], "verifiers": [{"name": "exact", "weight": 1.0}]}


def test_rows_of_curatec_keep_their_mask(read: Reader) -> None:
    row = {
        "example_id": "e", "task": "shop/7", "messages": [USER, {**GOOD, "weight": 0}, USER, BAD], "tools": None,
        "turns": [0, 1, 2, 3], "weights": [0.0, 0.0, 0.0, 0.5], "trained": [], "prompt": [USER], "completion": [BAD],
    }  # fmt: skip
    found = read([row])
    assert found.run["format"] == "trl"
    assert [turn["loss_weight"] for turn in found.turns] == [1.0, 0.0, 1.0, 0.5]
    assert [turn["content"] for turn in found.turns] == ["go", "good", "go", "bad"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"prompt": 5, "completion": "x"}, "neither a list of messages nor a text"),
        ({"chosen": "x", "rejected": [USER]}, "neither two lists of messages nor two texts"),
        ({"completion": "x"}, "neither `messages`"),
        ({"prompt": [5]}, "message 1 is not an object"),
    ],
)
def test_what_does_not_fit_is_rejected(read: Reader, row: Any, reason: str) -> None:
    found = read(lines({"prompt": "go", "completion": "x"}, row), format="trl")
    assert [reject.line for reject in found.corpus.rejects] == [2]
    assert reason in found.corpus.rejects[0].reason


def test_results_are_linked_in_a_completion(read: Reader) -> None:
    found = read([{"prompt": "go", "completion": [assistant(call({})), result(), GOOD]}])
    assert found.call["result_turn"] == 2
