"""The texts of a conversation, marked so that they are found again in what a template makes of them.

A leaf is a text that a template copies and does not write: a message's content (parted at its `<think>` blocks), its
reasoning, the name of a call and each text in its arguments. Marks are private-use characters that the conversation
does not hold. They stand inside the leaf's outer white space, so that trimming does what it did before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from curatec.runtime.conversation import thinking
from curatec.runtime.conversation.messages import Message, json_of
from curatec.runtime.conversation.spans import Part

_THINK, _UNTHINK = "<think>", "</think>"
_PRIVATE = range(0xF0000, 0x10FFFE)
_MARK = re.compile("[\U000f0000-\U0010fffd]")
_ESCAPED = re.compile(r"\\u(d[bB][89a-fA-F][0-9a-fA-F])\\u(d[c-fC-F][0-9a-fA-F]{2})")
GENERATION = -1  # the number of the marks around what a template calls generated


class Leaf(NamedTuple):
    """One text: of which message and part, and which code points [start, end) of it. Of a call it is the whole call."""

    message: int
    part: Part
    call: int | None
    start: int
    end: int
    text: str
    thought: bool = False  # reasoning, its own or in a block of the content


class Place(NamedTuple):
    """Code points [start, end) of the rendered text."""

    start: int
    end: int


@dataclass(slots=True)
class Marked:
    """A conversation as a template sees it, with marks: `marks` has two characters for each leaf."""

    messages: list[dict[str, Any]]
    leaves: list[Leaf]
    marks: str
    generation: tuple[str, str]


@dataclass(slots=True)
class Seen:
    """Where a template put the leaves: `text` without marks, the places of each leaf, and of what it calls generated.
    A leaf that was cut or torn has the place `None`."""

    text: str
    places: dict[int, list[Place | None]] = field(default_factory=dict)


def shown(message: Message) -> dict[str, Any]:
    """The message as a template sees it: no key is null, and `thinking` is another name for its reasoning."""
    whole = json.loads(json_of(message, "trl"))
    seen = {key: value for key, value in whole.items() if value is not None}
    if message.reasoning is not None:
        seen["thinking"] = message.reasoning
    return seen


def mark(messages: Sequence[dict[str, Any]], marked: Callable[[str], bool]) -> Marked:
    """Marks around the leaves of the messages whose role `marked` picks."""
    free = _free(json.dumps(messages, ensure_ascii=False))
    generation = (next(free), next(free))
    walk = _Walk(free)
    made = [walk.message(i, m) if marked(m["role"]) else m for i, m in enumerate(messages)]
    return Marked(made, walk.leaves, "".join(walk.marks), generation)


def _free(text: str) -> Iterator[str]:
    """Private-use characters that a text does not hold."""
    used = set(_MARK.findall(text))
    return (c for c in map(chr, _PRIVATE) if c not in used)


@dataclass(slots=True)
class _Walk:
    free: Iterator[str]
    leaves: list[Leaf] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    def message(self, i: int, message: dict[str, Any]) -> dict[str, Any]:
        made = dict(message)
        if message["role"] == "assistant":
            made["content"] = self._content(i, message["content"])
            if (reasoning := message.get("reasoning_content")) is not None:
                whole = Leaf(i, "reasoning", None, 0, len(reasoning), reasoning, thought=True)
                made["reasoning_content"] = made["thinking"] = self._wrapped(whole)
            if "tool_calls" in message:
                made["tool_calls"] = [self._call(i, k, call) for k, call in enumerate(message["tool_calls"])]
        else:
            content = message["content"]
            made["content"] = self._wrapped(Leaf(i, "content", None, 0, len(content), content))
        return made

    def _content(self, i: int, content: str) -> str:
        """Tags stay outside the marks: templates look for them."""
        pieces: list[str] = []
        at = 0
        for start, end, thought in _pieces(content):
            pieces += (
                content[at:start],
                self._wrapped(Leaf(i, "content", None, start, end, content[start:end], thought)),
            )
            at = end
        return "".join([*pieces, content[at:]])

    def _call(self, i: int, k: int, call: dict[str, Any]) -> dict[str, Any]:
        function = call["function"]

        def walk(value: Any) -> Any:
            if isinstance(value, str):
                return self._wrapped(Leaf(i, "call", k, 0, 0, value))
            if isinstance(value, list):
                return [walk(one) for one in value]
            if isinstance(value, dict):
                return {key: walk(one) for key, one in value.items()}
            return value

        return call | {"function": {key: walk(value) for key, value in function.items()}}

    def _wrapped(self, leaf: Leaf) -> str:
        core = leaf.text.strip()
        if not core:
            return leaf.text
        opens, closes = next(self.free), next(self.free)
        self.leaves.append(leaf._replace(text=core))
        self.marks += (opens, closes)
        before, behind = leaf.text.split(core, 1) if core != leaf.text else ("", "")
        return f"{before}{opens}{core}{closes}{behind}"


def _pieces(content: str) -> Iterator[tuple[int, int, bool]]:
    """The content between tags as (start, end, whether it is reasoning)."""
    at = 0
    for start, end in thinking.blocks(content):
        if at < start:
            yield at, start, False
        inner = start + len(_THINK) if content.startswith(_THINK, start) else start
        close = content.find(_UNTHINK, inner, end)
        yield inner, end if close < 0 else close, True
        at = end
    if at < len(content):
        yield at, len(content), False


def find(rendered: str, marked: Marked) -> Seen:
    """Takes the marks out of a rendered text and says where they stood."""
    numbers = {c: (i // 2, i % 2) for i, c in enumerate(marked.marks)}
    numbers |= {c: (GENERATION, i) for i, c in enumerate(marked.generation)}
    if "\\ud" in rendered:
        rendered = _ESCAPED.sub(lambda pair: _unescaped(pair, numbers), rendered)
    seen = Seen("")
    pieces: list[str] = []
    opened: dict[int, int] = {}
    at = length = 0
    for match in _MARK.finditer(rendered):
        if match.group() not in numbers:
            continue
        pieces.append(rendered[at : match.start()])
        length += len(pieces[-1])
        at = match.end()
        number, closes = numbers[match.group()]
        if not closes:
            opened[number] = length
        else:
            start = opened.pop(number, None)
            seen.places.setdefault(number, []).append(None if start is None else Place(start, length))
    for number in opened:
        seen.places.setdefault(number, []).append(None)
    seen.text = "".join([*pieces, rendered[at:]])
    return seen


def _unescaped(pair: re.Match[str], numbers: dict[str, tuple[int, int]]) -> str:
    """JSON that is all ASCII writes a mark as two escapes."""
    high, low = int(pair[1], 16), int(pair[2], 16)
    character = chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    return character if character in numbers else pair[0]


def forms(text: str) -> Iterator[str]:
    """How a template may show a text: as it is, or as the inside of a JSON text."""
    yield text
    for ascii_only in (False, True):
        yield json.dumps(text, ensure_ascii=ascii_only)[1:-1]
