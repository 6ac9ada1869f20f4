"""What a template writes around messages, learnt from a few small conversations.

- What stands between a message and the model's answer, which is what `add_generation_prompt` writes; of a template that
  writes nothing there, it is the end of the message before (`[/INST]`).
- What ends a turn: the last special token that stands behind a message wherever it stands; without special tokens all
  that is written behind a last message but white space.
- What stands around reasoning.

A row is never read by its shape alone: each of its texts has been found first, and the shape must fit between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from curatec.runtime.rendering.leaves import find, mark
from curatec.runtime.rendering.template import Template, TemplateRaised

THINK = ("<think>", "</think>")


@dataclass(frozen=True, slots=True)
class Header:
    """What stands right before an answer. `given` is the part of it that opens the reasoning already."""

    text: str
    given: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """`headers` by the role of the message before ("" at the beginning); `ends` by whether the message has calls;
    `tags` are the pairs that may stand around reasoning."""

    headers: dict[str, Header] = field(default_factory=dict)
    ends: dict[bool, str] = field(default_factory=dict)
    tags: tuple[tuple[str, str], ...] = (THINK,)


_SYSTEM = {"role": "system", "content": "Be brief."}
_USER = {"role": "user", "content": "How warm is it?"}
_ANSWER = {"role": "assistant", "content": "It is mild."}
_THOUGHT = _ANSWER | {"reasoning_content": "Twelve degrees.", "thinking": "Twelve degrees."}
_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "look", "arguments": {"place": "roof"}}}
    ],
}
_RESULT = {"role": "tool", "content": "twelve", "tool_call_id": "call00001", "name": "look"}
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look somewhere.",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
        },
    }
]


def shape_of(template: Template, special: re.Pattern[str] | None) -> Shape:
    """`special` matches the tokenizer's special tokens; None where it has none."""
    before: dict[str, list[dict[str, Any]]] = {
        "": [],
        "system": [_SYSTEM],
        "user": [_USER],
        "assistant": [_USER, _ANSWER],
        "tool": [_USER, _CALL, _RESULT],
    }
    headers = {role: found for role, asked in before.items() if (found := _header(template, asked, special))}
    turns = ((False, _ANSWER, _USER), (True, _CALL, _RESULT))
    ends = {calls: _end(template, turn, after, special) for calls, turn, after in turns}
    known = {calls: end for calls, end in ends.items() if end is not None}
    return Shape(headers, known, tuple(dict.fromkeys((THINK, *_tags(template, headers.get("user"))))))


def _behind(template: Template, messages: list[dict[str, Any]], nth: int = -1, *, prompt: bool = False) -> str | None:
    """What is written between the nth text of a conversation and the next one, or the end; None where the template
    refuses or hides it."""
    marked = mark(messages, lambda role: True)
    at = nth % len(marked.leaves)
    for tools in (_TOOLS, None):
        try:
            seen = find(template(marked.messages, tools, prompt=prompt), marked)
        except TemplateRaised:
            continue
        last, after = seen.places.get(at, [None])[-1], seen.places.get(at + 1, [None])[-1]
        if last is not None:
            return seen.text[last.end : after.start if after else len(seen.text)]
    return None


def _header(template: Template, messages: list[dict[str, Any]], special: re.Pattern[str] | None) -> Header | None:
    if not messages:
        return _asked(template, [])
    asked = _asked(template, messages)
    if asked is not None and asked.text:
        return asked
    tail = _behind(template, messages, prompt=True)
    if tail is None:
        return None
    tail = tail[_last(special, tail)[0] :]
    return Header(tail) if tail.strip() else None


def _asked(template: Template, messages: list[dict[str, Any]]) -> Header | None:
    """What `add_generation_prompt` adds."""
    for tools in (None, _TOOLS):
        try:
            plain, asked = template(messages, tools), template(messages, tools, prompt=True)
        except TemplateRaised:
            continue
        if asked.startswith(plain) and len(asked) > len(plain):
            added = asked[len(plain) :]
            at = added.find(THINK[0])
            return Header(added) if at < 0 else Header(added[:at], added[at:])
    return None


def _end(
    template: Template, turn: dict[str, Any], after: dict[str, Any], special: re.Pattern[str] | None
) -> str | None:
    tail = _behind(template, [_USER, turn])
    if tail is None:
        return None
    amid = _behind(template, [_USER, turn, after], nth=-2)
    # What only the end of a conversation has does not end a turn.
    common = tail if amid is None else _common(tail, amid)
    for text in (common, tail):
        start, end = _last(special, text)
        if end:
            return text[start:end]
    # Without special tokens the rest of a call's JSON cannot be told from what ends the turn.
    return None if "tool_calls" in turn else tail.strip()


def _common(one: str, other: str) -> str:
    """How two texts begin alike."""
    length = min(len(one), len(other))
    return one[: next((i for i in range(length) if one[i] != other[i]), length)]


def _last(special: re.Pattern[str] | None, text: str) -> tuple[int, int]:
    """Where the last special token stands; (0, 0) without one."""
    found: Iterable[re.Match[str]] = special.finditer(text) if special else ()
    return max((match.span() for match in found), default=(0, 0))


def _tags(template: Template, header: Header | None) -> Sequence[tuple[str, str]]:
    """The pair that the template itself writes around reasoning."""
    marked = mark([_USER, _THOUGHT], lambda role: role == "assistant")
    try:
        seen = find(template(marked.messages, None), marked)
    except TemplateRaised:
        return ()
    # The marked texts of an answer are its content and its reasoning, in this order.
    content, thought = (seen.places.get(i, [None])[0] for i in (0, 1))
    if content is None or thought is None or header is None or thought.end > content.start:
        return ()
    at = seen.text.rfind(header.text, 0, thought.start)
    opens = seen.text[at + len(header.text) : thought.start].strip() if at >= 0 else ""
    # A header between reasoning and answer is written by the model.
    closes = seen.text[thought.end : content.start].split(header.text)[0].strip()
    return ((opens, closes),) if opens and closes else ()
