"""`llamafactory`: messages of LLaMA-Factory v1, each a list of `type` and `value` parts with a `loss_weight`.

Its rules: roles are system, user, assistant and tool; parts of an assistant are `reasoning`, `text` and `tool_call` (a
call as JSON), all others have `text` alone; results stand as one tool message each. Weights may be any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks.columns import Col
from curatec.runtime.targets.target import Conversation, Pair, Sink, Target, Values, as_texts, fault

ABOUT = (
    "Parts of an assistant message stand in the order reasoning, text, calls. `loss_weight` is the weight of each "
    "message, 0 for all but the assistant's; in a preference row every assistant message of a continuation has 1. Ids "
    "of calls are lost: results follow in the order of the calls. Tools are a JSON list as text."
)
_TOOLS = Col("tools", "text", "schemas of the tools shown, a JSON list as text; null where none are known")
COLUMNS: dict[Sink, tuple[Col, ...]] = {
    "sft": (Col("messages", "parts", "the conversation, its contents as parts, with loss weights"), _TOOLS),
    "preference": (
        Col("chosen_messages", "parts", "the conversation with the better continuation"),
        Col("rejected_messages", "parts", "the conversation with the worse continuation"),
        _TOOLS,
    ),
}


def write(sink: Sink, row: Conversation) -> Values | str:
    refused = fault(sink, row.messages)
    if refused is not None:
        return refused
    shown = [_message(message, weight) for message, weight in row.trained]
    return {"messages": shown, "tools": as_texts(row.tools)}


def pair(row: Pair) -> Values | str:
    held: Values = {"tools": as_texts(row.tools)}
    for name, side in (("chosen", row.chosen), ("rejected", row.rejected)):
        refused = fault("preference", [*row.prompt, *side])
        if refused is not None:
            return refused
        held[f"{name}_messages"] = [*_context(row.prompt), *(_message(said, 1.0) for said in side)]
    return held


def _context(messages: Sequence[m.Message]) -> list[dict[str, Any]]:
    return [_message(message, 0.0) for message in messages]


def _message(message: m.Message, weight: float) -> dict[str, Any]:
    parts = [("reasoning", message.reasoning)] if message.reasoning else []
    if message.content or not (message.calls or parts):
        parts.append(("text", message.content or ""))
    parts += [("tool_call", call.function) for call in message.calls]
    return {
        "role": message.role,
        "content": [{"type": kind, "value": value} for kind, value in parts],
        "loss_weight": float(weight) if message.role == "assistant" else 0.0,
    }


LLAMAFACTORY = Target("llamafactory", "trl", ABOUT, COLUMNS, write, pair, fractional=True)
