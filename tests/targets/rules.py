"""What the loaders of targets demand of a row, written down from their own sources, apart from what we write.

LLaMA-Factory: `data/converter.py` (`SharegptDatasetConverter`, which skips a row that breaks its rules),
`data/formatter.py` (`FunctionFormatter`), `v1/plugins/.../templates/qwen3.py`. verl: `utils/dataset/rl_dataset.py` and
`multiturn_sft_dataset.py`.
"""

from __future__ import annotations

import json
import re
from typing import Any

_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)


def _tools(text: str | None) -> None:
    assert text is None or all(isinstance(tool, dict) for tool in json.loads(text))


def _call(value: Any) -> None:
    assert isinstance(value["name"], str)
    assert isinstance(value["arguments"], dict)


def sharegpt(row: dict[str, Any]) -> None:
    """Sides take turns, the user's first; an even number of entries; calls are JSON behind their reasoning."""
    sides = (("human", "observation"), ("gpt", "function_call"))
    for number, entry in enumerate(row["conversations"]):
        assert set(entry) == {"from", "value"}
        assert entry["from"] in sides[number % 2]
        assert isinstance(entry["value"], str)
        if entry["from"] == "function_call":
            found = json.loads(_THOUGHT.sub("", entry["value"], count=1))
            for call in found if isinstance(found, list) else [found]:
                _call(call)
    assert len(row["conversations"]) % 2 == 0
    assert isinstance(row["system"], str | None)
    _tools(row.get("tools"))
    for tool in json.loads(row.get("tools") or "[]"):
        assert "name" in tool or tool.get("type") != "function"


def llamafactory(row: dict[str, Any]) -> None:
    """Parts are texts, an assistant's also reasoning and calls; every message has its weight."""
    allowed = {"assistant": {"text", "reasoning", "tool_call"}}
    for message in row["messages"]:
        assert message["role"] in ("system", "user", "assistant", "tool")
        assert isinstance(message["loss_weight"], float | int)
        assert message["content"]
        for part in message["content"]:
            assert part["type"] in allowed.get(message["role"], {"text"})
            assert isinstance(part["value"], str)
            if part["type"] == "tool_call":
                _call(json.loads(part["value"]))
    _tools(row.get("tools"))


def verl(row: dict[str, Any]) -> None:
    """Nested messages of one shape; arguments are text."""
    for message in row["messages"]:
        assert isinstance(message["content"], str)
        assert message.get("trainable") in (None, False)
        for call in message.get("tool_calls") or []:
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    _tools(row.get("tools"))


def verl_prompt(row: dict[str, Any]) -> None:
    """What a reward function is called with."""
    assert isinstance(row["data_source"], str)
    assert isinstance(row["reward_model"]["ground_truth"], str)
    assert isinstance(row["extra_info"], dict)
    assert row["prompt"][-1]["role"] in ("user", "tool")


def chat(row: dict[str, Any]) -> None:
    """OpenAI's order: each result answers a call of the assistant message before it, and every call is answered."""
    waiting: set[str] = set()
    for message in row["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = {call["id"] for call in message.get("tool_calls", ())}


def atif(row: dict[str, Any]) -> None:
    """The models of the package `atif` forbid what they do not know."""
    from atif import Trajectory

    Trajectory.model_validate(row)


RULES = {"sharegpt": sharegpt, "llamafactory": llamafactory, "verl": verl, "openai": chat, "trl": chat, "atif": atif}
