"""Rows in groups: who is in none, who comes first, how a key is shown."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curatec.compiler.engine import Engine


def any_null(keys: Sequence[pl.Series], height: int) -> pl.Series:
    """Where some key is null: such a row is in no group and is left alone (semantics 12)."""
    frame = pl.DataFrame({"height": pl.int_range(height, eager=True), **named(keys)})
    return (
        frame.select(
            pl.any_horizontal(pl.lit(False), *(pl.col(f"k{i}").is_null() for i in range(len(keys)))).alias("x")
        )["x"]
        if keys
        else pl.repeat(False, height, dtype=pl.Boolean, eager=True)
    )


def named(keys: Sequence[pl.Series]) -> dict[str, pl.Series]:
    return {f"k{i}": key for i, key in enumerate(keys)}


def first_of_each(
    engine: Engine,
    ids: pl.Series,
    keys: Sequence[pl.Series],
    order: Sequence[pl.Series],
    descending: Sequence[bool],
    count: int,
) -> pl.Series:
    """Whether a row is among the first `count` of its group: nulls last both ways, then by id (semantics 13)."""
    return engine.places(keys, [*order, ids], [*descending, False]) < count


def leaders(
    engine: Engine, ids: pl.Series, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]
) -> pl.Series:
    """The position of the row that comes first in each row's group, in the same order."""
    return engine.leaders(keys, [*order, ids], [*descending, False])


def shown(keys: Sequence[pl.Series], where: pl.Series) -> pl.Series:
    """Keys as one text for the ledger."""
    if not keys:
        return pl.Series([None] * int(where.sum()), dtype=pl.String)
    frame = pl.DataFrame(named(keys)).filter(where)
    parts = [
        pl.col(name).list.join(", ") if frame[name].dtype == pl.List(pl.String) else pl.col(name).cast(pl.String)
        for name in frame.columns
    ]
    return frame.select(key=pl.concat_str(parts, separator=" · ", ignore_nulls=True))["key"]


def in_order(engine: Engine, ids: pl.Series, order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
    """Positions of rows by an order: nulls last both ways, then by id."""
    return engine.places([], [*order, ids], [*descending, False]).arg_sort()
