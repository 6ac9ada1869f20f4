"""Rows of other formats as messages, for a reader: what each says, and whether the format trains it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

Message = dict[str, Any]
Shown = tuple[Message, bool]  # a message as chat formats have it, and whether all of it is trained


def messages(format_: str | None, values: Mapping[str, Any]) -> list[Shown] | None:
    """The conversation of an sft row; None for the formats whose messages are shown as they are."""
    read = _FORMS.get(format_ or "")
    return None if read is None else list(read(values))


def tool_names(values: Mapping[str, Any]) -> list[str]:
    """Names of the tools that a row shows, wherever its format has them."""
    tools = values.get("tools")
    if isinstance(values.get("agent"), dict):
        tools = values["agent"].get("tool_definitions")
    if isinstance(tools, str):
        tools = orjson.loads(tools)
    found = [tool.get("function", tool) if isinstance(tool, dict) else {} for tool in tools or ()]
    return [str(function.get("name", "?")) for function in found]


def _sharegpt(values: Mapping[str, Any]) -> Iterator[Shown]:
    """The loader trains every entry of the assistant."""
    if values["system"] is not None:
        yield {"role": "system", "content": values["system"]}, False
    for entry in values["conversations"]:
        yield {"role": entry["from"], "content": entry["value"]}, entry["from"] in ("gpt", "function_call")


def _llamafactory(values: Mapping[str, Any]) -> Iterator[Shown]:
    for message in values["messages"]:
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


def _verl(values: Mapping[str, Any]) -> Iterator[Shown]:
    for message in values["messages"]:
        yield message, message["role"] == "assistant" and message["trainable"] is not False


def _atif(values: Mapping[str, Any]) -> Iterator[Shown]:
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


_FORMS: dict[str, Callable[[Mapping[str, Any]], Iterator[Shown]]] = {
    "sharegpt": _sharegpt,
    "llamafactory": _llamafactory,
    "verl": _verl,
    "atif": _atif,
}
