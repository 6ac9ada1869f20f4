"""Places of a text → tokens of it. A token is trained if all of its text is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from curatec.runtime.rendering.leaves import Place

IGNORED = -100  # what loss functions of trainers leave out


class Masked(NamedTuple):
    """`labels` has the id of each trained token and -100 elsewhere; `straddling` counts tokens across a border."""

    labels: list[int]
    straddling: int


def masked(
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    places: Sequence[Place],
    special: Mapping[int, str],
) -> Masked:
    """`offsets` are code points of `text`, one pair a token, in order. `special` gives special tokens' own text: one
    that swallowed white space beside it is judged by that text."""
    labels = [IGNORED] * len(ids)
    straddling = 0
    starts = [start for start, _ in offsets]
    for place in places:
        first, behind = bisect_left(starts, place.start), bisect_left(starts, place.end)
        labels[first:behind] = ids[first:behind]
        # Only the token before the first one and the last one can hold text of both sides.
        for at in {max(first - 1, 0), max(behind - 1, 0)} if ids else ():
            start, end = _own(text, offsets[at], special.get(ids[at]))
            if place.start <= start and end <= place.end:
                labels[at] = ids[at]
            elif start < place.end and end > place.start:
                labels[at] = IGNORED
                straddling += 1
    return Masked(labels, straddling)


def _own(text: str, offset: tuple[int, int], literal: str | None) -> tuple[int, int]:
    start, end = offset
    if literal is None or end - start == len(literal):
        return offset
    at = text.find(literal, start, end)
    return (at, at + len(literal)) if at >= 0 else offset
