"""`trl` and `openai`: chat messages as JSON objects; they differ in how arguments of calls are written."""

from __future__ import annotations

from collections.abc import Sequence

from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks.columns import Col
from curatec.runtime.targets.target import Conversation, Pair, Sink, Target, Values, binary, fault

TOOLS = Col("tools", "objects", "schemas of the tools shown, null where none are known")
MESSAGES = Col("messages", "objects", "the conversation; an assistant message with `weight` 0 is context only")
_COLUMNS: dict[Sink, tuple[Col, ...]] = {
    "sft": (MESSAGES, TOOLS),
    "rl": (Col("prompt", "objects", "the messages that a rollout starts from"), TOOLS),
    "preference": (
        Col("prompt", "objects", "the messages that both sides share"),
        Col("chosen", "objects", "the better continuation"),
        Col("rejected", "objects", "the worse continuation"),
        TOOLS,
    ),
}


def _target(form: m.Form, about: str) -> Target:
    def write(sink: Sink, row: Conversation) -> Values | str:
        refused = fault(sink, row.messages) or binary(row.weights)
        if refused is not None:
            return refused
        held = "prompt" if sink == "rl" else "messages"
        masks = [sink == "sft" and message.role == "assistant" and not weight for message, weight in row.trained]
        shown = [m.json_of(message, form, masked=mask) for message, mask in zip(row.messages, masks, strict=True)]
        return {held: shown, "tools": _schemas(row.tools)}

    def pair(row: Pair) -> Values | str:
        for side in (row.chosen, row.rejected):
            refused = fault("preference", [*row.prompt, *side])
            if refused is not None:
                return refused
        sides = {"prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected}
        shown = {name: [m.json_of(message, form) for message in side] for name, side in sides.items()}
        return {**shown, "tools": _schemas(row.tools)}

    return Target(form, form, about, _COLUMNS, write, pair)


def _schemas(tools: Sequence[str] | None) -> list[str] | None:
    return list(tools) if tools else None


# Their rows hold the messages as they are, so a mask can speak of them, and other columns may stand beside them.
CHATS = ("trl", "openai")
TRL = _target(
    "trl",
    "Arguments of calls are objects. An assistant message that is not trained has `weight` 0.",
)
OPENAI = _target(
    "openai",
    "Arguments of calls are JSON text, as it was in the source. An assistant message that is not trained has "
    "`weight` 0; content beside calls may be null.",
)
