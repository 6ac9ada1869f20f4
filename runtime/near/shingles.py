"""Texts as sets of hashed shingles, and the file that keeps the sets.

The text is put in lower case as `compiler/text.py` defines it and split into words at ASCII white space
(`[ \\t\\n\\v\\f\\r]`). Three words in a row are a shingle; a text of one or two words is one shingle; a text without
words has none. A shingle is kept as 64 bits, so two sets of a thousand shingles differ from the truth by a shingle
with a chance below 1e-13.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile

import polars as pl
from xxhash import xxh3_64_intdigest

from curatec.compiler.text import lower

WIDTH = 3
# The hash of a shingle is the sum of its words' hashes, each times its factor, modulo 2**64: odd, without a pattern.
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
_WORDS_KEPT = 2**20
_SETS_KEPT = 64 * 2**20  # bytes that stay in memory


class Words(dict[bytes, int]):
    """The hash of each word; words come again and again, so hashes are remembered."""

    def __missing__(self, word: bytes) -> int:
        if len(self) >= _WORDS_KEPT:
            self.clear()
        value = self[word] = xxh3_64_intdigest(word)
        return value


def shingles(texts: pl.Series, words: Words) -> pl.DataFrame:
    """Strings -> (row UInt32, shingles List(UInt64)): distinct and sorted; a row without words is left out."""
    lowered = pl.select(lower(pl.lit(texts)).cast(pl.Binary)).to_series()
    hashes, counts = array("Q"), array("Q")
    for text in lowered.to_list():
        found = text.split() if text is not None else []
        hashes.extend(map(words.__getitem__, found))
        if 0 < len(found) < WIDTH:
            hashes.extend([0] * (WIDTH - len(found)))
        counts.append(max(len(found), WIDTH) if found else 0)
    at = pl.int_range(len(texts), dtype=pl.UInt32).repeat_by(pl.lit(numbers(counts)))
    rows = pl.select(row=at.explode(empty_as_null=False, keep_nulls=False)).to_series()
    word = pl.col("word")
    ahead = (word.shift(-i) * pl.lit(factor, dtype=pl.UInt64) for i, factor in enumerate(_FACTORS))
    return (
        pl.LazyFrame({"row": rows, "word": numbers(hashes)})
        .with_columns(shingles=pl.sum_horizontal(*ahead, ignore_nulls=False))
        .filter(pl.col("row") == pl.col("row").shift(1 - WIDTH))
        .group_by("row", maintain_order=True)
        .agg(pl.col("shingles").unique().sort())
        .collect()
    )


def numbers(values: array[int] | bytes) -> pl.Series:
    """Unsigned 64-bit numbers without a copy."""
    import pyarrow as pa

    buffer = pa.py_buffer(values)
    made = pl.Series(pa.Array.from_buffers(pa.uint64(), buffer.size // 8, [None, buffer]))
    assert made.dtype == pl.UInt64
    return made


def raw(values: pl.Series) -> memoryview:
    """The 64-bit numbers of a series as they lie in memory."""
    arrow = values.rechunk().to_arrow()
    view = memoryview(arrow.buffers()[1]).cast("B")
    return view[arrow.offset * 8 : (arrow.offset + len(arrow)) * 8]


class Sets:
    """Distinct sets of shingles by number from 0, in memory up to a bound and in an unnamed file of `folder` beyond."""

    def __init__(self, folder: Path | None) -> None:
        self._file = SpooledTemporaryFile(_SETS_KEPT, dir=str(folder) if folder else None)  # noqa: SIM115 - closed when forgotten
        self._starts = array("Q", [0])

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def sizes(self) -> pl.Series:
        """How many shingles each set has."""
        starts = numbers(array("Q", self._starts))
        return starts.slice(1) - starts.head(len(self))

    def append(self, sets: pl.Series) -> None:
        """More sets: List(UInt64)."""
        values = sets.explode(empty_as_null=False, keep_nulls=False)
        self._file.seek(0, 2)
        self._file.write(raw(values))
        for size in sets.list.len().to_list():
            self._starts.append(self._starts[-1] + size)

    def load(self, wanted: Sequence[int]) -> pl.Series:
        """The sets of these numbers, in this order: List(UInt64)."""
        import pyarrow as pa

        pieces, ends = [], array("q", [0])
        for number in wanted:
            start, end = self._starts[number], self._starts[number + 1]
            self._file.seek(start * 8)
            pieces.append(self._file.read((end - start) * 8))
            ends.append(ends[-1] + end - start)
        offsets = pa.Array.from_buffers(pa.int64(), len(ends), [None, pa.py_buffer(ends)])
        values = pa.Array.from_buffers(pa.uint64(), ends[-1], [None, pa.py_buffer(b"".join(pieces))])
        return pl.Series(pa.LargeListArray.from_arrays(offsets, values))
