"""Which texts of arguments are plain: a JSON object that reads as it stands, without any defect."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import polars as pl

from ..values import decode_text

_NESTED = 100  # brackets; the careful reader draws its line far deeper


def odd_ones(texts: Sequence[str], series: pl.Series) -> list[int]:
    """The places of the texts that are not plain; `series` holds the same texts."""
    # A colon follows each key, so an object has no more keys than its text has `":`, unless there is space between.
    # As many at the top as there are in all: each stands once. What may be otherwise is looked at one by one.
    flat = (pl.Series(_sizes(texts), dtype=pl.Int64) == series.str.count_matches('":', literal=True)) & (
        series.str.contains(r"^[ \t\r\n]*\{")
        & ~series.str.contains(r'"[ \t\r\n]+:')
        & (series.str.count_matches("[", literal=True) <= _NESTED)
    )
    return [place for place in (~flat).arg_true().to_list() if not _is_plain(texts[place])]


def _sizes(texts: Sequence[str]) -> list[int]:
    """The members of each object; -1 for what is no JSON."""
    try:
        return list(map(len, map(orjson.loads, texts)))
    except (orjson.JSONDecodeError, TypeError):
        return [_size(text) for text in texts]


def _size(text: str) -> int:
    try:
        return len(orjson.loads(text))
    except (orjson.JSONDecodeError, TypeError):
        return -1


def _is_plain(text: str) -> bool:
    value, notes = decode_text(text)
    return isinstance(value, dict) and not notes
