"""What each target writes for known rows, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from curatec.runtime import targets
from curatec.runtime.conversation.messages import Call, Message
from curatec.runtime.targets import REASONS, TARGETS, target
from tests.targets.rules import RULES, verl_prompt

TOOL = '{"type":"function","function":{"name":"look","parameters":{"b":1,"a":2}}}'


def message(role: str, content: str | None = None, reasoning: str | None = None, **given: Any) -> Message:
    return Message(0, 0, role, content, reasoning, **given)


def calling(*ids: str, content: str | None = None, reasoning: str | None = None, form: str = "trl") -> Message:
    arguments: Any = {"n": 1.50, "z": None}
    written = json.dumps(arguments) if form == "openai" else arguments
    calls = tuple(Call(id_, json.dumps({"name": "look", "arguments": written}), 1) for id_ in ids)
    return message("assistant", content, reasoning, calls=calls)


def result(id_: str | None, content: str = "ok") -> Message:
    return message("tool", content, call_id=id_, name="look")


USER, DONE = message("user", "go"), message("assistant", "done")


def row(name: str, *shown: Message, weights: list[float] | None = None, sink: Any = "sft", **about: Any) -> Any:
    """Values with JSON texts decoded, or the reason."""
    given = weights if weights is not None else [float(m.role == "assistant") for m in shown]
    made = targets.row(target(name), sink, shown, [TOOL], given, about)
    return made if isinstance(made, str) else decoded(name, sink, made)


def decoded(name: str, sink: Any, made: dict[str, Any]) -> dict[str, Any]:
    kinds = {c.name: c.kind for c in targets.columns(target(name), sink)}
    assert made.keys() == kinds.keys()
    found = dict(made)
    for column, kind in kinds.items():
        if kind == "json" and made[column] is not None:
            found[column] = json.loads(made[column])
        elif kind == "objects" and made[column] is not None:
            found[column] = [json.loads(text) for text in made[column]]
    return found


def test_sharegpt_lays_out_parallel_calls() -> None:
    made = row("sharegpt", message("system", "s"), USER, message("user", "now"), calling("a", "b", reasoning="why"),
        result("a", "1"), result("b", "2"), DONE, message("user", "bye"))  # fmt: skip
    call = '{"name": "look", "arguments": {"n": 1.5, "z": null}}'
    assert made == {
        "conversations": [
            {"from": "human", "value": "go\n\nnow"},
            {"from": "function_call", "value": f"<think>\nwhy\n</think>\n\n[{call},{call}]"},
            {"from": "observation", "value": '["1","2"]'},
            {"from": "gpt", "value": "done"},
        ],
        "system": "s",
        "tools": '[{"name":"look","parameters":{"b":1,"a":2}}]',
    }
    RULES["sharegpt"](made)


def test_llamafactory_says_weights_and_parts() -> None:
    made = row(
        "llamafactory", USER, calling("a", content="so", reasoning="why"), result("a"), DONE, weights=[0, 0.5, 0, 1]
    )
    assert made["messages"] == [
        {"role": "user", "content": [{"type": "text", "value": "go"}], "loss_weight": 0.0},
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "value": "why"},
                {"type": "text", "value": "so"},
                {"type": "tool_call", "value": '{"name": "look", "arguments": {"n": 1.5, "z": null}}'},
            ],
            "loss_weight": 0.5,
        },
        {"role": "tool", "content": [{"type": "text", "value": "ok"}], "loss_weight": 0.0},
        {"role": "assistant", "content": [{"type": "text", "value": "done"}], "loss_weight": 1.0},
    ]
    assert json.loads(made["tools"]) == [json.loads(TOOL)]


def test_atif_puts_results_into_the_step_of_their_calls() -> None:
    made = row("atif", message("system", "s"), USER, calling("a", "b", reasoning="why"), result("b"), result("a", "no"),
        DONE, weights=[0, 0, 0, 0, 0, 1], id="e", model="m", reward=1.0, success=None)  # fmt: skip
    call = {"function_name": "look", "arguments": {"n": 1.5, "z": None}}
    assert made == {
        "schema_version": "ATIF-v1.7",
        "session_id": "e",
        "trajectory_id": "e",
        "agent": {"name": "unknown", "version": "unknown", "model_name": "m", "tool_definitions": [json.loads(TOOL)]},
        "steps": [
            {"step_id": 1, "source": "system", "message": "s"},
            {"step_id": 2, "source": "user", "message": "go"},
            {
                "step_id": 3, "source": "agent", "message": "", "reasoning_content": "why", "is_copied_context": True,
                "tool_calls": [{"tool_call_id": "a", **call}, {"tool_call_id": "b", **call}],
                "observation": {"results": [
                    {"source_call_id": "b", "content": "ok"}, {"source_call_id": "a", "content": "no"}]},
            },
            {"step_id": 4, "source": "agent", "message": "done"},
        ],
        "extra": {"reward": 1.0},
    }  # fmt: skip
    RULES["atif"](made)


def test_atif_takes_calls_without_results() -> None:
    made = row("atif", USER, calling("a"), message("user", "well?"), message("system", "hm"))
    assert [step["source"] for step in made["steps"]] == ["user", "agent", "user", "system"]
    RULES["atif"](made)


def test_verl_masks_and_writes_arguments_as_text() -> None:
    made = row("verl", USER, calling("a", reasoning="why"), result("a"), DONE, weights=[0, 0, 0, 1])
    assert made["messages"][1] == {
        "role": "assistant", "content": "", "reasoning_content": "why", "trainable": False,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n": 1.5, "z": null}'}}],
    }  # fmt: skip
    assert made["messages"][2] == {"role": "tool", "content": "ok", "tool_call_id": "a", "name": "look"}
    assert made["enable_thinking"] is True
    RULES["verl"](made)


def test_verl_gives_rewards_their_inputs() -> None:
    about = {
        "domain": "shop", "source": "runs", "split": "train", "gold": '{"a":1}', "meta": '{"k":[1]}',
        "reset": '{"s":0}', "gold_calls": ['{"name":"look","arguments":{}}'],
        "reward": [{"name": "call_format", "weight": 1.0}],
    }  # fmt: skip
    made = row("verl", USER, sink="rl", **about)
    assert made == {
        "data_source": "shop",
        "prompt": [{"role": "user", "content": "go"}],
        "ability": "agent",
        "reward_model": {"style": "rule", "ground_truth": '{"a":1}'},
        "extra_info": {
            "split": "train", "domain": "shop", "tools": [json.loads(TOOL)], "meta": {"k": [1]}, "reset": {"s": 0},
            "gold_calls": [{"name": "look", "arguments": {}}], "reward": [{"name": "call_format", "weight": 1.0}],
        },
    }  # fmt: skip
    verl_prompt(made)
    assert row("verl", USER, sink="rl", source="runs")["reward_model"]["ground_truth"] == ""


@pytest.mark.parametrize("name", ["trl", "openai"])
def test_chat_masks_what_is_not_trained(name: str) -> None:
    made = row(name, USER, DONE, USER, DONE, weights=[0, 0, 0, 1])
    assert [m.get("weight") for m in made["messages"]] == [None, 0, None, None]
    assert row(name, USER, sink="rl")["prompt"] == [{"role": "user", "content": "go"}]


PROMPTED = {"trl": "prompt", "openai": "prompt", "sharegpt": "conversations"}


@pytest.mark.parametrize("name", [name for name, one in TARGETS.items() if one.pair])
def test_pairs(name: str) -> None:
    made = targets.pair(target(name), [USER], [DONE], [message("assistant", "no")], None)
    assert isinstance(made, dict)
    found = decoded(name, "preference", made)
    if name == "llamafactory":
        assert [m["loss_weight"] for m in found["chosen_messages"]] == [0.0, 1.0]
        assert found["rejected_messages"][1]["content"] == [{"type": "text", "value": "no"}]
    elif name == "sharegpt":
        assert found["chosen"] == {"from": "gpt", "value": "done"}
        assert found["conversations"] == [{"from": "human", "value": "go"}]
    else:
        assert found["rejected"] == [{"role": "assistant", "content": "no"}]


def test_sharegpt_pairs_are_single_answers() -> None:
    long = [calling("a"), result("a"), DONE]
    assert targets.pair(target("sharegpt"), [USER], long, [DONE], None) == "long_continuation"
    assert targets.pair(target("sharegpt"), [USER, DONE], [DONE], [DONE], None) == "role_order"
    assert isinstance(targets.pair(target("llamafactory"), [USER], long, [DONE], None), dict)


@pytest.mark.parametrize(
    ("name", "shown", "reason"),
    [
        ("sharegpt", [USER, calling("a", content="so"), result("a"), DONE], "text_beside_calls"),
        ("sharegpt", [USER, DONE, DONE], "role_order"),
        ("sharegpt", [DONE, USER, DONE], "role_order"),
        ("sharegpt", [USER], "no_assistant"),
        ("sharegpt", [USER, message("assistant", "x", "a</think>b")], "reasoning_holds_tag"),
        ("atif", [USER, calling("a"), USER, result("a")], "late_result"),
        ("atif", [USER, result("a")], "result_without_call"),
        ("atif", [USER, message("assistant", "x", problem="arguments_not_an_object")], "arguments_not_an_object"),
        *((name, [USER, calling("a"), USER, DONE], "unanswered_call") for name in TARGETS if name != "atif"),
        *((name, [USER, DONE, message("system", "s")], "system_not_first") for name in TARGETS if name != "atif"),
        *((name, [], "no_turns") for name in TARGETS),
    ],
)
def test_refusals(name: str, shown: list[Message], reason: str) -> None:
    assert row(name, *shown) == reason
    assert reason in REASONS


@pytest.mark.parametrize(
    ("name", "weight", "reason"),
    [
        ("sharegpt", 0.0, "mask_not_expressible"),
        ("sharegpt", 0.5, "mask_not_expressible"),
        *((name, 0.5, "weight_not_zero_or_one") for name in ("trl", "openai", "verl", "atif")),
    ],
)
def test_weights_that_a_target_cannot_say(name: str, weight: float, reason: str) -> None:
    assert row(name, USER, DONE, USER, DONE, weights=[0, weight, 0, 1]) == reason


def test_blank_text_beside_calls_is_no_text() -> None:
    made = row("sharegpt", USER, calling("a", content="\n "), result("a"), DONE)
    assert made["conversations"][1]["from"] == "function_call"


def test_every_target_is_documented() -> None:
    for name, one in TARGETS.items():
        assert one.name == name
        assert len(one.about) > 40
        assert one.sinks
        assert ("preference" in one.sinks) == (one.pair is not None)
    with pytest.raises(KeyError):
        target("axolotl")
    with pytest.raises(KeyError):
        targets.pair(target("atif"), [USER], [DONE], [DONE], None)
