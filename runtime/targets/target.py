"""What a target is, and what all targets refuse alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks.columns import Col

Sink = Literal["sft", "rl", "preference"]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one row shows. `tools` are JSON texts of schemas; `weights` has a loss weight for each message.

    `about` is what else is known of the row; a target takes what it has a place for: `id source task domain task_id
    split gold meta reward success outcome model agent session_id index`, for rl also `reset gold_calls gold_answers
    state_digest` and `reward` as a list of verifiers; all optional. `gold meta reset` and entries of `gold_calls` are
    JSON texts.
    """

    messages: Sequence[m.Message]
    tools: Sequence[str] | None
    weights: Sequence[float]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def trained(self) -> list[tuple[m.Message, float]]:
        """Messages with their weights."""
        return list(zip(self.messages, self.weights, strict=True))


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt and two continuations, `chosen` the better one."""

    prompt: Sequence[m.Message]
    chosen: Sequence[m.Message]
    rejected: Sequence[m.Message]
    tools: Sequence[str] | None
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """How finished rows look in one target's form.

    `form` is how arguments of calls are written. `about` documents what is changed on the way and what is refused.
    `columns` are the target's own, by sink; a sink that is not among them cannot be written in this form. `write` and
    `pair` give the values of these columns, or a snake_case reason why the target cannot express the row.
    """

    name: str
    form: m.Form
    about: str
    columns: dict[Sink, tuple[Col, ...]]
    write: Callable[[Sink, Conversation], Values | str]
    pair: Callable[[Pair], Values | str] | None = None
    fractional: bool = False  # a loss weight may be any number from 0 on
    strict: bool = False  # no other members are allowed beside the target's own

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(self.columns)


class Function(msgspec.Struct):
    """A call as `Call.function` has it in the form `trl`; the source's text of its arguments is kept."""

    name: str
    arguments: msgspec.Raw


def fault(sink: Sink, messages: Sequence[m.Message]) -> str | None:
    """What every target that reads a chat refuses: nothing to show, and calls and results that do not fit."""
    return "no_turns" if not messages else m.fault_of(messages, may_end_on_call=sink != "rl")


def binary(weights: Sequence[float]) -> str | None:
    """What a target refuses that knows only masks."""
    return None if all(weight in (0, 1) for weight in weights) else "weight_not_zero_or_one"


def as_texts(tools: Sequence[str] | None) -> str | None:
    """Schemas as one JSON text; null for none."""
    return f"[{','.join(tools)}]" if tools else None


REASONS: dict[str, str] = {
    "no_turns": "the row has no messages",
    "no_assistant": "no assistant message is in the row",
    "role_order": "roles do not alternate as the target wants",
    "text_beside_calls": "an assistant message has both text and calls",
    "mask_not_expressible": "some assistant messages are context only, and the target trains all of them",
    "weight_not_zero_or_one": "a loss weight is neither 0 nor 1",
    "reasoning_holds_tag": "reasoning holds the tag that ends it in the target's form",
    "late_result": "a result comes after other messages than results",
    "long_continuation": "a continuation is more than one assistant message",
    "system_not_first": "a system message stands behind others",
    "result_without_call": "a result answers no call of the message before",
    "unanswered_call": "a call has no result although the row goes on",
    "parts_not_text": "a content part is not text",
    "call_without_name": "a call has no name",
    "call_outside_assistant": "another message than the assistant's makes a call",
    "arguments_not_an_object": "arguments of a call are not a JSON object",
    "number_too_large": "an integer has more than 64 bits",
    "nested_too_deeply": "a JSON value is nested too deeply for the target's loader",
}
"""Why a row is refused, in words."""
