"""Which text of a message is trained, to the code point."""

from __future__ import annotations

from typing import Literal, NamedTuple

from curatec.compiler import plan
from curatec.compiler.text import estimate_tokens_py
from curatec.runtime.conversation import thinking
from curatec.runtime.conversation.messages import Message

Part = Literal["content", "reasoning", "call"]


class Span(NamedTuple):
    """Code points [start, end) of a part's text. Of a call that is the JSON text of its `function` object."""

    part: Part
    call: int | None
    start: int
    end: int


class Trained(NamedTuple):
    """What is trained of one message. `whole`: nothing that it shows is left out. `tokens` are estimated."""

    weight: float
    spans: tuple[Span, ...] = ()
    whole: bool = False
    tokens: int = 0

    def masked(self) -> Trained:
        return Trained(0.0)


NOTHING = Trained(0.0)


def trained(message: Message, weight: float, loss: plan.Loss) -> Trained:
    """What a weight above 0 trains of an assistant message: all of it, or all but its reasoning."""
    if not weight:
        return NOTHING
    content = message.content or ""
    spans: list[Span] = []
    tokens = 0
    if message.reasoning and not loss.except_reasoning:
        spans.append(Span("reasoning", None, 0, len(message.reasoning)))
        tokens += estimate_tokens_py(message.reasoning)
    for start, end in thinking.outside(content) if loss.except_reasoning else _all(content):
        spans.append(Span("content", None, start, end))
        tokens += estimate_tokens_py(content[start:end])
    spans += [Span("call", k, 0, len(call.function)) for k, call in enumerate(message.calls)]
    tokens += sum(call.tokens for call in message.calls)
    if not spans:
        return NOTHING
    left_out = loss.except_reasoning and bool(message.reasoning or thinking.blocks(content))
    return Trained(weight, tuple(spans), not left_out, tokens)


def _all(text: str) -> list[tuple[int, int]]:
    return [(0, len(text))] if text else []
