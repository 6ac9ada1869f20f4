"""Targets: how a finished row looks in a form that a trainer or another tool reads.

One module a target; `TARGETS` names them all. A target gives the values of its own columns, or says why it cannot
express the row. What it changes on the way is in its `about`, and nothing else is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curatec.runtime.conversation.messages import Message
from curatec.runtime.sinks.columns import Col
from curatec.runtime.targets.atif import ATIF
from curatec.runtime.targets.chat import CHATS, OPENAI, TRL
from curatec.runtime.targets.llamafactory import LLAMAFACTORY
from curatec.runtime.targets.sharegpt import SHAREGPT
from curatec.runtime.targets.target import REASONS, Conversation, Pair, Sink, Target, Values
from curatec.runtime.targets.verl import VERL

__all__ = ["CHATS", "REASONS", "TARGETS", "Conversation", "Pair", "Sink", "Target", "columns", "pair", "row", "target"]

TARGETS: dict[str, Target] = {one.name: one for one in (TRL, OPENAI, SHAREGPT, LLAMAFACTORY, VERL, ATIF)}


def target(name: str) -> Target:
    """The target of that name. Raises KeyError."""
    return TARGETS[name]


def columns(target: Target, sink: Sink) -> tuple[Col, ...]:
    """The target's own columns for a sink. Raises KeyError for a sink that it has no form for."""
    return target.columns[sink]


def row(
    target: Target,
    sink: Sink,
    messages: Sequence[Message],
    tools: Sequence[str] | None,
    weights: Sequence[float],
    about: dict[str, Any] | None = None,
) -> Values | str:
    """Values for the columns of an sft or rl row, or the reason why the target refuses it.

    `messages` are made with the target's `form`; for rl they are the prompt. See `Conversation` for the rest.
    """
    return target.write(sink, Conversation(messages, tools, weights, about or {}))


def pair(
    target: Target,
    prompt: Sequence[Message],
    chosen: Sequence[Message],
    rejected: Sequence[Message],
    tools: Sequence[str] | None,
    about: dict[str, Any] | None = None,
) -> Values | str:
    """The same for a preference row. Raises KeyError for a target that has no form for one."""
    if target.pair is None:
        raise KeyError("preference")
    return target.pair(Pair(prompt, chosen, rejected, tools, about or {}))
