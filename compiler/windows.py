"""Window aggregates over trajectories (semantics 5, 12, 15, 16).

Sums and means go over round_even(x · 10⁶) as integers with one division, so that neither the engine nor the order of
rows can change the last bit. A null key is no group: its window is null.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curatec.compiler.core import Window
from curatec.compiler.types import Type

MICRO = 1_000_000


def micro(x: pl.Expr) -> pl.Expr:
    """round_even(x · 10⁶) as a 64-bit integer."""
    return (x.cast(pl.Float64) * MICRO).round(mode="half_to_even").cast(pl.Int64)


def _total(micros: pl.Expr) -> pl.Expr:
    """Their sum: added up in 128 bits, since 64 would wrap around; the strict cast raises where it does not fit."""
    return micros.cast(pl.Int128).sum().cast(pl.Int64).cast(pl.Float64)


def _true(e: pl.Expr) -> pl.Expr:
    """A divisor that is a column: polars divides by a literal through its reciprocal."""
    return e.cast(pl.Float64)


def _settled(e: pl.Expr) -> pl.Expr:
    """Infinity is null, and -0.0 is 0.0: which of the two is less, engines do not agree upon."""
    return pl.when(e == 0).then(0.0).when(e.is_finite()).then(e)


def expression(function: str, type_: Type, *, descending: bool = False) -> pl.Expr:
    """The aggregate of column `x` over the rows of one group."""
    x = pl.col("x")
    number = x.cast(pl.Float64)
    if function == "count":
        return pl.len().cast(pl.Int64)
    if function == "sum":
        # Integers add up in 128 bits; the strict cast raises where the sum does not fit in 64.
        whole = x.cast(pl.Int128).sum().cast(pl.Int64)
        return whole if type_ is Type.INT else _total(micro(x)) / _true(pl.lit(MICRO) + 0 * pl.len())
    if function == "mean":
        return pl.when(x.count() > 0).then(_total(micro(x)) / _true(x.count() * MICRO))
    if function == "std":
        mean = _total(micro(x)) / _true(x.count() * MICRO)
        squares = _total(micro((number - mean) * (number - mean))) / _true(pl.lit(MICRO) + 0 * pl.len())
        return pl.when(x.count() > 1).then((squares / _true(x.count() - 1)).sqrt())
    if function in ("min", "max"):
        least = x.min() if function == "min" else x.max()
        return least if type_ is Type.INT else _settled(least)
    if function == "median":
        low, high = (number.quantile(0.5, interpolation=which) for which in ("lower", "higher"))
        return _settled(pl.when(low == high).then(low).otherwise((low + high) / 2))
    if function == "share":
        return x.fill_null(False).sum().cast(pl.Float64) / _true(pl.len())
    assert function == "rank", function
    # min-rank; null has no rank.
    return x.rank("min", descending=descending).cast(pl.Int64)


def aggregate(window: Window, argument: pl.Series | None, keys: Sequence[pl.Series], height: int) -> pl.Series:
    """One value for each row: its group's aggregate, or its rank in the group; null where a key is null."""
    columns = {f"k{i}": key for i, key in enumerate(keys)}
    x = argument if argument is not None else pl.repeat(0, height, dtype=pl.Int64, eager=True)
    frame = pl.DataFrame({"x": x, **columns})
    value = expression(window.function, window.type, descending=window.descending)
    if not keys:
        return frame.with_columns(value=value)["value"]
    whole = pl.all_horizontal(pl.col(name).is_not_null() for name in columns)
    grouped = frame.with_columns(x=pl.when(whole).then("x"))  # what is in no group cannot fail to fit either
    return grouped.with_columns(value=pl.when(whole).then(value.over(list(columns))))["value"]
