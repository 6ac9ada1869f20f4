"""Which code points of a rendered conversation are trained.

Of an assistant message that is trained: what the model would write, from the end of its header (what the generation
prompt gives) through the token that ends its turn; the line break behind it is not the model's. With
`except reasoning` the reasoning goes, with its tags and the white space behind it; so does an empty block of reasoning
that only the template wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from curatec.runtime.conversation.spans import Trained
from curatec.runtime.rendering.leaves import GENERATION, Leaf, Place, Seen
from curatec.runtime.rendering.shape import Header, Shape


class Refused(Exception):
    """The row is refused for this reason; without one, what is trained of it cannot be told apart for certain."""

    def __init__(self, reason: str = "template_unclear") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Turn:
    """An assistant message in the text: `head` is where what the model writes or is given begins, `start` and `end`
    are the region; `leaves` are its texts, in the order of the text."""

    head: int
    start: int
    end: int
    leaves: tuple[tuple[Place, Leaf], ...]


def trained_places(
    messages: Sequence[dict[str, Any]],
    marks: Sequence[Trained],
    leaves: Sequence[Leaf],
    seen: Seen,
    shape: Shape,
    *,
    except_reasoning: bool,
) -> list[Place]:
    """The places that are trained, in order and apart from each other. Raises Refused."""
    wanted = [i for i, mark in enumerate(marks) if mark.weight]
    if not wanted:
        return []
    located = _Located(messages, leaves, seen, shape)
    found: list[Place] = []
    for i in wanted:
        turn = located.turn(i)
        if found and turn.start < found[-1].end:
            raise Refused
        leave_out = except_reasoning or not marks[i].whole
        cuts = _thoughts(seen.text, turn, shape.tags) if leave_out else []
        found += _without(Place(turn.start, turn.end), cuts)
    return found


class _Located:
    """Leaves by where they stand in the text."""

    def __init__(self, messages: Sequence[dict[str, Any]], leaves: Sequence[Leaf], seen: Seen, shape: Shape) -> None:
        self.messages, self.seen, self.shape = messages, seen, shape
        placed = [(place, leaves[n]) for n, spots in seen.places.items() if n != GENERATION for place in spots if place]
        self.placed = sorted(placed, key=lambda pair: pair[0])
        self.of: dict[int, list[int]] = {}
        for at, (_, leaf) in enumerate(self.placed):
            self.of.setdefault(leaf.message, []).append(at)
        self.repeated = {leaves[n].message for n, spots in seen.places.items() if n != GENERATION and len(spots) > 1}
        self.generated = self._generated()

    def _generated(self) -> dict[int, Place]:
        """Assistant message → what the template itself calls generated, where it says so of each of them."""
        spots = [place for place in self.seen.places.get(GENERATION, []) if place]
        assistants = [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]
        return dict(zip(assistants, spots, strict=True)) if len(spots) == len(assistants) else {}

    def turn(self, i: int) -> Turn:
        where = self.of.get(i)
        if not where or i in self.repeated or where != list(range(where[0], where[-1] + 1)):
            raise Refused
        before = self.placed[where[0] - 1][0].end if where[0] else 0
        after = self.placed[where[-1] + 1][0].start if where[-1] + 1 < len(self.placed) else len(self.seen.text)
        leaves = tuple(self.placed[at] for at in where)
        first, last = leaves[0][0].start, leaves[-1][0].end
        head, start = self._start(i, before, first)
        return Turn(head, start, self._end(i, last, after), leaves)

    def _start(self, i: int, before: int, first: int) -> tuple[int, int]:
        headed = self._headed(i, before, first)
        if (spot := self.generated.get(i)) is None:
            if headed is None:
                raise Refused
            return headed
        if spot.end < first:
            raise Refused
        # Some templates mark the header as well.
        start = spot.start if headed is None else max(spot.start, headed[0])
        if not before <= start <= first:
            raise Refused
        return start, start

    def _headed(self, i: int, before: int, first: int) -> tuple[int, int] | None:
        """Where the header ends, and where what it gives of the reasoning ends."""
        header = self._header(i)
        gap = self.seen.text[before:first]
        if header is None or gap.count(header.text) != 1 + self._silent_before(i):
            return None
        head = before + gap.rfind(header.text) + len(header.text)
        given = header.given if self.seen.text.startswith(header.given, head) else ""
        return (head, head + len(given)) if head + len(given) <= first else None

    def _header(self, i: int) -> Header | None:
        role = self.messages[i - 1]["role"] if i else ""
        return self.shape.headers.get(role) or self.shape.headers.get("user")

    def _silent_before(self, i: int) -> int:
        """Assistant messages right before that show no text, whose headers stand in the same gap."""
        count = 0
        for j in range(i - 1, -1, -1):
            if j in self.of:
                break
            count += self.messages[j]["role"] == "assistant"
        return count

    def _end(self, i: int, last: int, after: int) -> int:
        end = self.shape.ends.get("tool_calls" in self.messages[i])
        if end is None:
            raise Refused
        at = self.seen.text.find(end, last, after)
        if at < 0:
            raise Refused
        return at + len(end)


# ---- reasoning ----


def _thoughts(text: str, turn: Turn, tags: Sequence[tuple[str, str]]) -> list[Place]:
    """Where reasoning stands in a turn, its tags and the white space behind it included."""
    opens = tuple(opening for opening, _ in tags)
    closes = tuple(closing for _, closing in tags)
    cuts = [_around(text, turn, place, leaf, opens, closes) for place, leaf in turn.leaves if leaf.thought]
    # An empty block; what the prompt gives may have opened it.
    bare = re.compile(rf"\s*(?:{_any(closes)})\s*").match(text, turn.head, turn.leaves[0][0].start)
    cuts += [Place(*bare.span())] if bare else []
    empty = re.compile(rf"(?:{_any(opens)})\s*(?:{_any(closes)})\s*")
    # A reply that was cut right behind a tag: nothing but reasoning is opened by one.
    cut = re.compile(rf"(?:{_any(opens)})\s*(?:(?:{_any(closes)})\s*)?")
    for start, end, thought in _gaps(turn):
        cuts += [Place(*match.span()) for match in (empty if thought else cut).finditer(text, start, end)]
    return sorted(cuts)


def _around(text: str, turn: Turn, place: Place, leaf: Leaf, opens: Sequence[str], closes: Sequence[str]) -> Place:
    start = turn.head + len(text[turn.head : place.start].rstrip())
    opening = next((tag for tag in opens if text.endswith(tag, turn.head, start)), None)
    end = _skip(text, place.end, turn.end)
    closing = next((tag for tag in closes if text.startswith(tag, end)), None)
    if closing is None:
        # A reply that was cut inside its reasoning, kept as it is.
        if leaf.part != "content":
            raise Refused
        return Place(start - len(opening or ""), end)
    return Place(start - len(opening or ""), _skip(text, end + len(closing), turn.end))


def _skip(text: str, at: int, end: int) -> int:
    """The first code point from `at` that is no white space."""
    while at < end and text[at].isspace():
        at += 1
    return at


def _any(tags: Sequence[str]) -> str:
    return "|".join(map(re.escape, tags))


def _gaps(turn: Turn) -> Iterator[tuple[int, int, bool]]:
    """What the template wrote between the texts of a turn, and whether the text behind is reasoning."""
    at = turn.head
    for place, leaf in turn.leaves:
        yield at, place.start, leaf.thought
        at = place.end
    yield at, turn.end, False


def _without(whole: Place, cuts: Sequence[Place]) -> list[Place]:
    left: list[Place] = []
    at = whole.start
    for start, end in cuts:
        if start > at:
            left.append(Place(at, start))
        at = max(at, end)
    return [*left, Place(at, whole.end)] if at < whole.end else left
