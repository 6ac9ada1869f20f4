"""`verl`: prompts with their reward's inputs for RL, conversations for its multi-turn SFT.

Its rules: `RLHFDataset` reads parquet with `datasets` and wants `prompt`, `data_source`, `extra_info` and
`reward_model.ground_truth`, which reward functions get. `MultiTurnSFTDataset` reads parquet with pandas and wants
`messages` as nested columns; it trains every assistant message but those with `trainable` false.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks.columns import Col
from curatec.runtime.targets.target import Conversation, Function, Sink, Target, Values, as_texts, binary, fault

ABOUT = (
    "rl: `data_source` is the domain, else the source; `ability` is `agent`; `ground_truth` is the gold of the run as "
    "text, empty where there is none; `extra_info` holds what else a reward reads, and the tools shown. "
    "sft: `trainable` is false for an assistant message that is context only (a version of verl that does not know it "
    "would train it); `enable_thinking` says whether reasoning is shown. Messages are nested columns, so that members "
    "a message lacks are null, and arguments of calls are JSON text: the chat template must take both. `tools` is JSON "
    "text: verl hands it to the template as it is, so a data set class of your own must decode it (`data.custom_cls`). "
    "Refused: arguments that are not an object, loss weights other than 0 and 1."
)
COLUMNS: dict[Sink, tuple[Col, ...]] = {
    "sft": (
        Col("messages", "chat", "the conversation; an assistant message with `trainable` false is context only"),
        Col("tools", "text", "schemas of the tools shown, a JSON list as text; null where none are known"),
        Col("enable_thinking", "flag", "whether reasoning is shown"),
    ),
    "rl": (
        Col("data_source", "text", "what a reward function is chosen by"),
        Col("prompt", "objects", "the messages that a rollout starts from"),
        Col("ability", "text", "kind of the task"),
        Col("reward_model", "json", "style, and the ground truth as text"),
        Col("extra_info", "json", "what else a reward or a tool needs"),
    ),
}
_EXTRA = ("index", "split", "id", "task", "task_id", "domain", "gold_answers", "state_digest", "reward")
_EXTRA_JSON = ("reset", "meta")  # JSON texts


def write(sink: Sink, row: Conversation) -> Values | str:
    refused = fault(sink, row.messages) or binary(row.weights)
    if refused is not None:
        return refused
    return _prompt(row) if sink == "rl" else _chat(row)


def _chat(row: Conversation) -> Values:
    return {
        "messages": [_message(message, weight) for message, weight in row.trained],
        "tools": as_texts(row.tools),
        "enable_thinking": any(message.reasoning for message in row.messages),
    }


def _message(message: m.Message, weight: float) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content or ""}
    if message.reasoning:
        shown["reasoning_content"] = message.reasoning
    if message.calls:
        shown["tool_calls"] = [{"id": c.id, "type": "function", "function": _function(c)} for c in message.calls]
    if message.role == "tool":
        shown |= {"tool_call_id": message.call_id, "name": message.name}
    if message.role == "assistant" and not weight:
        shown["trainable"] = False
    return shown


def _function(call: m.Call) -> dict[str, str]:
    """Name and arguments, as text."""
    function = msgspec.json.decode(call.function, type=Function)
    return {"name": function.name, "arguments": bytes(function.arguments).decode()}


def _prompt(row: Conversation) -> Values:
    about = row.about
    gold = about.get("gold")
    extra = {name: about[name] for name in _EXTRA if about.get(name) is not None}
    extra |= {name: orjson.Fragment(about[name]) for name in _EXTRA_JSON if about.get(name)}
    for name, texts in (("gold_calls", about.get("gold_calls")), ("tools", row.tools)):
        if texts:
            extra[name] = [orjson.Fragment(text) for text in texts]
    return {
        "data_source": about.get("domain") or about.get("source") or "unknown",
        "prompt": [m.json_of(message, "trl") for message in row.messages],
        "ability": "agent",
        "reward_model": orjson.dumps({"style": "rule", "ground_truth": gold if gold is not None else ""}).decode(),
        "extra_info": orjson.dumps(extra).decode(),
    }


VERL = Target("verl", "trl", ABOUT, COLUMNS, write)
