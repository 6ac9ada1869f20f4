"""Which texts of arguments are plain: a JSON object that reads as it stands, without any defect."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import polars as pl

from ..values import decode_text

_NESTED = 100  # brackets; the careful reader draws its line far deeper


def odd_ones(texts: Sequence[str], series: pl.Series) -> list[int]:
    """The places of the texts that are not plain; `series` holds the same texts."""
    # A space before a colon hides a key from the count of `":`, and only a careful reader knows how deep is too deep.
    doubt = series.str.contains(r'"[ \t\r\n]+:') | (series.str.count_matches("[", literal=True) > _NESTED)
    doubtful = {place for place, text in enumerate(texts) if not _is_flat(text)} | set(doubt.arg_true())
    return [place for place in sorted(doubtful) if not _is_plain(texts[place])]


def _is_flat(text: str) -> bool:
    """True for an object without members in objects inside, each of whose keys stands once. May miss some.

    A colon follows each key, so no object has more keys than its text has `":`.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and text.count('":') == len(value)


def _is_plain(text: str) -> bool:
    value, notes = decode_text(text)
    return isinstance(value, dict) and not notes
