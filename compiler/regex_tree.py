"""The tree of the regex subset: plain sets of code points, places, and how they are put together.

Nothing is left in it of `.`, `\\w`, `[^a]` and `(?i)`, which engines could read differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LAST: Final = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RegexProblem:
    """One construct outside the subset: its place [start, end) in code points, its name, what to write instead."""

    start: int
    end: int
    kind: str
    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One code point out of a set: sorted ranges with both ends in that neither overlap nor touch."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place: start, end, line_start, line_end or word."""

    place: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """The items one after the other; no items is the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first branch that matches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group."""

    body: Node


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times (None: without end), as many as possible unless `lazy`."""

    body: Node
    low: int
    high: int | None
    lazy: bool


Node = Chars | Anchor | Sequence | Choice | Group | Repeat


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern of the subset: its source, its tree, and the number of its capturing groups."""

    pattern: str
    tree: Node
    group_count: int


def matches_empty(node: Node) -> bool:
    """Whether a part can match without taking a character."""
    if isinstance(node, Chars):
        return False
    if isinstance(node, Anchor):
        return True
    if isinstance(node, Sequence):
        return all(map(matches_empty, node.items))
    if isinstance(node, Choice):
        return any(map(matches_empty, node.branches))
    return matches_empty(node.body) or (isinstance(node, Repeat) and node.low == 0)


def size(node: Node) -> int:
    """About how many states an engine builds: each repetition is a copy, a set beyond ASCII is several byte ranges."""
    if isinstance(node, Chars):
        return 1 if not node.ranges or node.ranges[-1][1] < 128 else 4 + len(node.ranges)
    if isinstance(node, Anchor):
        return 1
    if isinstance(node, Sequence):
        return sum(map(size, node.items))
    if isinstance(node, Choice):
        return sum(map(size, node.branches)) + len(node.branches)
    if isinstance(node, Group):
        return size(node.body) + 2
    return max(node.high or node.low + 1, 1) * (size(node.body) + 1)


def copies(node: Node) -> int:
    """The largest product of nested counts, which RE2 limits to 1,000 as it does each of them."""
    if isinstance(node, Repeat):
        return max(node.high or node.low, 1) * copies(node.body)
    if isinstance(node, Group):
        return copies(node.body)
    if isinstance(node, Sequence | Choice):
        return max(map(copies, node.items if isinstance(node, Sequence) else node.branches), default=1)
    return 1


# --- sets of code points --------------------------------------------------------------------------------------------


def union(ranges: list[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    gaps, begin = [], 0
    for low, high in ranges:
        if low > begin:
            gaps.append((begin, low - 1))
        begin = high + 1
    return tuple(gaps) if begin > LAST else (*gaps, (begin, LAST))


def fold(ranges: Ranges) -> Ranges:
    """With the other case of each ASCII letter: no Unicode folding, where a `k` would match U+212A."""
    extra = []
    for first, last, shift in ((65, 90, 32), (97, 122, -32)):
        for low, high in ranges:
            if low <= last and high >= first:
                extra.append((max(low, first) + shift, min(high, last) + shift))
    return union([*ranges, *extra])
