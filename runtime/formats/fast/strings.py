"""How many strings a JSON text holds: each one, a key or a value, stands between two quotes that nothing escapes.

A typed decoder passes over members that it does not know, and of two members with one key it keeps the last. Both leave
more strings in the text than what was decoded stands for, so equal numbers prove that nothing was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from msgspec import UNSET

from ..batches import Batch

_QUOTE, _BACKSLASH = ord('"'), ord("\\")


def count(text: bytes) -> int:
    """The strings of a JSON text."""
    if b"\\\\" in text:
        text = text.replace(b"\\\\", b"")  # pairs from the left, as an escape is read
    return (text.count(b'"') - text.count(b'\\"')) // 2


def count_many(batch: Batch) -> int:
    """Those of a batch, four times as fast."""
    import pyarrow as pa

    array = pa.Array.from_buffers(pa.uint8(), batch.size, [None, pa.py_buffer(batch.buffer)])
    values = pl.Series(pl.from_arrow(array))
    quotes, backslashes = values == _QUOTE, values == _BACKSLASH
    before = backslashes.head(batch.size - 1)
    if (before & backslashes.slice(1)).any():
        return count(bytes(memoryview(batch.buffer)[: batch.size]))
    return (int(quotes.sum()) - int((before & quotes.slice(1)).sum())) // 2


@dataclass(frozen=True, slots=True)
class Column:
    """One member of many objects: its values, null where it is null or absent, and where it is there but null (`null`,
    None: nowhere)."""

    values: pl.Series
    null: pl.Series | None = None

    @classmethod
    def of(cls, values: Sequence[Any], dtype: Any) -> Column:
        """From decoded values, UNSET where the member is absent."""
        absent = values.count(UNSET)
        if absent == len(values):
            return cls(pl.Series([None], dtype=dtype).new_from_index(0, absent))
        series = pl.Series([None if value is UNSET else value for value in values] if absent else values, dtype=dtype)
        if absent == series.null_count():
            return cls(series)
        return cls(series, pl.Series([value is None for value in values]))


@dataclass(frozen=True, slots=True)
class Told:
    """Strings that a member stands for: `each` for every value, one (its key) where it is null. `rows` are records."""

    rows: pl.Series
    column: Column
    each: int

    def total(self) -> int:
        values, null = self.column.values, self.column.null
        return self.each * (len(values) - values.null_count()) + (0 if null is None else int(null.sum()))

    def by_record(self, records: int) -> pl.Series:
        values, null = self.column.values, self.column.null
        strings = values.is_not_null().cast(pl.Int64) * self.each
        strings = strings if null is None else strings + null.cast(pl.Int64)
        sums = pl.DataFrame({"row": self.rows, "strings": strings}).group_by("row").agg(pl.col("strings").sum())
        return pl.Series([0]).new_from_index(0, records).scatter(sums["row"], sums["strings"])


TEXT, OTHER = 2, 1  # strings of a member that holds a text: key and value; of one that holds none
