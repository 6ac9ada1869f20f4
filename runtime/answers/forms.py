"""Rows of other formats as messages, for a reader: what each says, and whether the format trains it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

Message = dict[str, Any]
Shown = tuple[Message, bool]  # a message as chat formats have it, and whether all of it is trained
Conversations = Iterator[tuple[str | None, Iterator[Shown]]]


def conversations(format_: str | None, values: Mapping[str, Any]) -> list[tuple[str | None, list[Shown]]] | None:
    """The conversation of an sft row, or those of a preference row under their names; None for the formats whose
    messages are shown as they are."""
    read = _FORMS.get(format_ or "")
    return None if read is None else [(name, list(said)) for name, said in read(values)]


def tool_names(values: Mapping[str, Any]) -> list[str]:
    """Names of the tools that a row shows, wherever its format has them."""
    tools = values.get("tools")
    if isinstance(values.get("agent"), dict):
        tools = values["agent"].get("tool_definitions")
    if isinstance(tools, str):
        tools = orjson.loads(tools)
    found = [tool.get("function", tool) if isinstance(tool, dict) else {} for tool in tools or ()]
    return [str(function.get("name", "?")) for function in found]


def _sharegpt(values: Mapping[str, Any]) -> Conversations:
    """The loader trains every entry of the assistant; of a preference row the two answers."""
    sides = [name for name in ("chosen", "rejected") if name in values]
    system = [] if values["system"] is None else [{"from": "system", "value": values["system"]}]
    yield "prompt" if sides else None, _entries([*system, *values["conversations"]], trained=not sides)
    for side in sides:
        yield side, _entries([values[side]], trained=True)


def _entries(entries: Sequence[Mapping[str, Any]], *, trained: bool) -> Iterator[Shown]:
    for entry in entries:
        own = entry["from"] in ("gpt", "function_call")
        yield {"role": entry["from"], "content": entry["value"]}, trained and own


def _llamafactory(values: Mapping[str, Any]) -> Conversations:
    for name in ("messages", "chosen_messages", "rejected_messages"):
        if name in values:
            yield None if name == "messages" else name, _parts(values[name])


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[Shown]:
    for message in messages:
        parts: dict[str, list[str]] = {"reasoning": [], "text": [], "tool_call": []}
        for part in message["content"]:
            parts[part["type"]].append(part["value"])
        weight = message["loss_weight"]
        said = {
            "role": message["role"],
            "name": f"× {weight:g}" if weight not in (0, 1) else None,
            "reasoning_content": "\n".join(parts["reasoning"]),
            "content": "\n".join(parts["text"]),
            "tool_calls": [{"function": orjson.loads(call)} for call in parts["tool_call"]],
        }
        yield said, bool(weight)


def _verl(values: Mapping[str, Any]) -> Conversations:
    yield None, ((m, m["role"] == "assistant" and m["trainable"] is not False) for m in values["messages"])


def _atif(values: Mapping[str, Any]) -> Conversations:
    yield None, _steps(values)


def _steps(values: Mapping[str, Any]) -> Iterator[Shown]:
    for step in values["steps"]:
        own = step["source"] == "agent"
        calls = [
            {"function": {"name": call["function_name"], "arguments": call["arguments"]}}
            for call in step.get("tool_calls") or ()
        ]
        said = {
            "role": step["source"],
            "content": step["message"],
            "reasoning_content": step.get("reasoning_content"),
            "tool_calls": calls,
        }
        yield said, own and not step.get("is_copied_context")
        for result in (step.get("observation") or {}).get("results", ()):
            yield {"role": "result", "name": result.get("source_call_id"), "content": result["content"]}, False


_FORMS: dict[str, Callable[[Mapping[str, Any]], Conversations]] = {
    "sharegpt": _sharegpt,
    "llamafactory": _llamafactory,
    "verl": _verl,
    "atif": _atif,
}
