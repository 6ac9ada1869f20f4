"""LLaMA-Factory v1: messages whose content is a list of `{"type", "value"}` parts, with a `loss_weight` a message.

Parts are `text`, `reasoning`, `tool_call` (its value is a call as JSON text) and media; `tools` is JSON text. One tool
message may hold the results of several calls as a JSON list: it stays one turn, with the defect `packed_results`.

A preference row (`chosen_messages`, `rejected_messages`) is one run: the chosen messages. The rejected ones stay in
meta under their own name. They were compared with the chosen ones, not judged, so no reward, success or outcome is made
up for either side, and nothing can train on the rejected side by accident.

The format has no call ids (results are linked by position) and no verdict.
"""

from __future__ import annotations

from .json_text import Json
from .messages import turns_of
from .model import ANYWHERE, Context, Match, Run, Sample, Turn, Unreadable
from .openai import take_facts
from .score import is_message_list, share
from .values import decode_text

_HOLDERS = ("messages", "chosen_messages")


class LlamaFactory:
    """The adapter; it has no state."""

    name = "llamafactory"
    version = 2
    containers = ANYWHERE
    elements: str | None = None
    call_ids = False

    def recognise(self, sample: Sample) -> Match:
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        holder = _holder(record)
        if holder is None:
            raise Unreadable("neither a `messages` nor a `chosen_messages` list")
        turns = turns_of(record[holder], context.notes)
        if any(map(_is_packed, turns, turns[1:])):
            context.notes.add("packed_results")
        run = Run(self.name, turns)
        take_facts(run, record, context.notes, frozenset({holder}))
        return [run]


def _is_packed(before: Turn, turn: Turn) -> bool:
    """True for a tool turn that holds as many results as the turn before it made calls, more than one."""
    if turn.role != "tool" or len(before.calls) < 2:
        return False
    value = decode_text(turn.content or "")[0]
    return isinstance(value, list) and len(value) == len(before.calls)


def _holder(record: Json) -> str | None:
    if not isinstance(record, dict):
        return None
    return next((key for key in _HOLDERS if isinstance(record.get(key), list)), None)


def _score(record: Json) -> tuple[float, str]:
    holder = _holder(record)
    if holder is None:
        return 0.0, "neither a `messages` nor a `chosen_messages` list"
    messages = record[holder]
    if not messages or not is_message_list(messages):
        return 0.0, f"`{holder}` holds entries without a `role`"
    contents = [message.get("content") for message in messages]
    valued = [
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, dict) and "type" in part and "value" in part for part in content)
        for content in contents
    ]
    if all(valued):
        return 1.0, "contents are lists of `type` and `value`"
    return (
        (0.6, "chosen and rejected messages")
        if holder != "messages"
        else (0.0, "contents are not `type`/`value` lists")
    )


LLAMAFACTORY = LlamaFactory()
