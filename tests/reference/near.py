"""Likeness of texts by its definition, over plain Python sets, and components by comparing all pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def shingles(text: str | None) -> frozenset[tuple[str, ...]]:
    """Three words in a row, in lower case; a text of fewer words is one, a text of none has none."""
    lowered = "".join(char.lower() for char in text or "")
    words = re.findall(r"[^ \t\n\v\f\r]+", lowered)
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))) if words else frozenset()


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def near_pairs(
    texts: Sequence[str | None], threshold: float, keys: Sequence[object] | None = None
) -> set[tuple[int, int]]:
    """Positions of all pairs that reach the threshold within equal keys; a null key is like no other."""
    sets = [shingles(text) for text in texts]
    keys = keys if keys is not None else [0] * len(texts)
    return {
        (b, a)
        for a in range(len(texts))
        for b in range(a)
        if keys[a] is not None and keys[a] == keys[b] and jaccard(sets[a], sets[b]) >= threshold
    }


def components(height: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The lowest position of each one's component."""
    names = list(range(height))
    for a, b in pairs:
        low, high = sorted((names[a], names[b]))
        names = [low if name == high else name for name in names]
    return names
