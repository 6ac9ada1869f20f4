"""Likeness by the definition, over plain Python sets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from curatec.compiler.text import lower_py


def shingles(text: str | None) -> frozenset[tuple[str, ...]]:
    words = [word for word in re.split(r"[ \t\n\v\f\r]+", lower_py(text or "")) if word]
    if not words:
        return frozenset()
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def brute_components(
    texts: Sequence[str | None], threshold: float, groups: Sequence[object] | None = None
) -> list[int]:
    """The lowest row of each row's component, by comparing all pairs."""
    sets = [shingles(text) for text in texts]
    keys = groups if groups is not None else [0] * len(texts)
    names = list(range(len(texts)))
    for a in range(len(texts)):
        for b in range(a):
            if keys[a] is not None and keys[a] == keys[b] and jaccard(sets[a], sets[b]) >= threshold:
                low, high = sorted((names[a], names[b]))
                names = [low if name == high else name for name in names]
    return names
