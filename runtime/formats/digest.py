"""The digest of a trajectory: one definition over the canonical tables, whichever reader filled them.

The canonical bytes of a trajectory are those of its row of RUNS, of its reward parts, its defects, its turns, the calls
of its turns and the parts of their contents: table after table, the rows of each in order. The bytes of some rows of a
table are first numbers, row by row, eight bytes each, the lowest first:

    the number of turns        for a row of RUNS, before its columns
    an integer, a boolean      itself, 0 or 1
    a time                     microseconds since the epoch, UTC
    a float                    its IEEE bits as a signed integer, -0.0 as 0.0
    a value of an Enum         its position in the Enum
    a text, a list             its length, in bytes of UTF-8 or in elements
    null                       -2**63, which nothing else is

and then texts, column by column, each the UTF-8 of its rows one after the other. A length stands before every text and
list, so no two trajectories share their bytes. `tools_json` counts as the hexadecimal xxh3_128 of its text: a few lists
of tools serve many runs.

Where a record stood (row, file, line) is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from xxhash import xxh3_128, xxh3_128_hexdigest

from ..tables import CALL, PART, REWARD_PART, RUNS, TURNS

NULL = -(2**63)
_WORD = 8  # bytes of a number
RUN_COLUMNS = tuple(name for name in RUNS if name not in ("row", "digest", "file", "line"))
TURN_COLUMNS = tuple(name for name in TURNS if name not in ("row", "turn"))


@dataclass(frozen=True, slots=True)
class _Bytes:
    """One run of bytes for each trajectory: those of `data` from its bound to the next one."""

    data: memoryview
    bounds: Sequence[int]


def digests(runs: pl.DataFrame, turns: pl.DataFrame) -> pl.Series:
    """The digest of each row of `runs`: String "digest", 32 hexadecimal digits.

    `runs` has the columns of RUNS but `digest`, `row` counting from 0; `turns` is TURNS, sorted by (row, turn).
    """
    hashers = [xxh3_128() for _ in range(runs.height)]
    for held in _tables(runs, turns):
        for hasher, start, end in zip(hashers, held.bounds, held.bounds[1:], strict=False):
            hasher.update(held.data[start:end])
    return pl.Series("digest", [hasher.hexdigest() for hasher in hashers], dtype=pl.String)


def _tables(runs: pl.DataFrame, turns: pl.DataFrame) -> Iterator[_Bytes]:
    """The bytes of all tables in their order; `first` and the like are the number of rows before each trajectory's."""
    first = turns["row"].search_sorted(pl.int_range(runs.height + 1, dtype=pl.UInt32, eager=True))
    own = runs.select(first.diff(null_behavior="drop").alias("turns"), *RUN_COLUMNS)
    yield from _row_bytes(own.with_columns(_hashed(own["tools_json"])))
    for name, dtype in (("reward_parts", REWARD_PART), ("defects", pl.String)):
        yield from _bytes(*_inner(runs[name], dtype, pl.int_range(runs.height + 1, eager=True)))
    yield from _bytes(turns.select(TURN_COLUMNS), first)
    for name, struct in (("calls", CALL), ("parts", PART)):
        yield from _bytes(*_inner(turns[name], struct, first))


def _hashed(column: pl.Series) -> pl.Series:
    texts = column.unique().drop_nulls()
    hashes = pl.Series([xxh3_128_hexdigest(text.encode()) for text in texts], dtype=pl.String)
    return column.replace_strict(texts, hashes, default=None, return_dtype=pl.String)


def _inner(column: pl.Series, dtype: Any, outer: pl.Series) -> tuple[pl.DataFrame, pl.Series]:
    """The elements of a list column as a table, and how many of them come before each bound of the outer rows."""
    before = pl.concat([pl.Series([0], dtype=pl.Int64), column.list.len().fill_null(0).cast(pl.Int64).cum_sum()])
    flat = column.explode(empty_as_null=False, keep_nulls=False)
    table = flat.struct.unnest() if isinstance(dtype, pl.Struct) else flat.to_frame()
    return table, before.gather(outer)


def _row_bytes(table: pl.DataFrame) -> Iterator[_Bytes]:
    """`_bytes` where each trajectory has one row: column by column is then one after the other."""
    bounds = pl.int_range(table.height + 1, eager=True)
    yield _numbers(table, bounds)
    texts = [column.fill_null("") for column in table if column.dtype == pl.String]
    yield _text(pl.select(pl.concat_str(map(pl.lit, texts))).to_series(), bounds)


def _bytes(table: pl.DataFrame, bounds: pl.Series) -> Iterator[_Bytes]:
    if table.height:
        yield _numbers(table, bounds)
    for column in table:
        if column.dtype == pl.String and column.null_count() < table.height:
            yield _text(column, bounds)


def _numbers(table: pl.DataFrame, bounds: pl.Series) -> _Bytes:
    values = table.select(pl.concat_arr(_number(column) for column in table)).to_series().explode()
    data = values.to_arrow().buffers()[1]
    return _Bytes(memoryview(data) if data is not None else memoryview(b""), (bounds * _WORD * table.width).to_list())


def _number(column: pl.Series) -> pl.Expr:
    value, kind = pl.lit(column), column.dtype
    if kind == pl.String:
        value = value.str.len_bytes()
    elif isinstance(kind, pl.List):
        value = value.list.len()
    elif kind.is_float():
        bits = value.cast(pl.Float64).reinterpret(dtype=pl.Int64)
        value = bits.replace(NULL, 0)  # the bits of -0.0 are those of our null
    else:
        value = value.to_physical()
    return value.cast(pl.Int64).fill_null(NULL)


def _text(column: pl.Series, bounds: pl.Series) -> _Bytes:
    array = column.to_arrow(compat_level=pl.CompatLevel.oldest())  # all texts one after the other, and their offsets
    _, offsets, data = array.buffers()
    ends = memoryview(offsets).cast("q") if offsets is not None else [0]
    return _Bytes(memoryview(data) if data is not None else memoryview(b""), [ends[bound] for bound in bounds])
