"""What an engine does: it evaluates typed expressions over one batch, and compares rows on narrow columns.

Everything else (state, ledger, sinks, the kernels that make or rewrite rows) is the same whatever the engine. An engine
is never part of a digest or a cache key: equal inputs and spec give equal bytes on each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import polars as pl

from curatec.compiler.core import Core, Window
from curatec.compiler.frames import Frames, SideTables, Tokens
from curatec.compiler.json_path import JsonPath
from curatec.compiler.windows import aggregate


class OutOfRange(ArithmeticError):
    """A whole number of an expression does not fit in 64 bits."""


OVERFLOWS = (OutOfRange, pl.exceptions.InvalidOperationError)  # what an engine raises then, `overflowed` says for sure


def overflowed(error: BaseException) -> bool:
    """Whether it says that a number does not fit in 64 bits."""
    return isinstance(error, OutOfRange) or "conversion" in str(error)


class Engine(Protocol):
    """`keys`, `order` and the like are columns of the same height, one value a row.

    A null key is a value like any other here: what a row without a group means is the caller's (semantics 12). Orders
    put nulls last both ways and compare texts by code point (semantics 13).
    """

    @property
    def name(self) -> str: ...

    @property
    def memory(self) -> int | None:
        """Bytes that the whole run may hold, about; null for as much as there is."""

    def batch(
        self,
        runs: pl.DataFrame,
        turns: pl.DataFrame | None = None,
        *,
        toolsets: Mapping[str, str] | None = None,
        known: Mapping[Core, str] | None = None,
        paths: tuple[JsonPath, ...] = (),
        tokens: Tokens | None = None,
        side: SideTables | None = None,
    ) -> Frames:
        """One batch of trajectories; the arguments are those of `Frames`."""

    def places(self, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
        """The place of each row in its group, from 0, UInt32. `order` is total: its last column has no value twice."""

    def leaders(self, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
        """The position, among all rows, of the row that comes first in each row's group, UInt32; `order` is total."""

    def aggregate(
        self, window: Window, argument: pl.Series | None, keys: Sequence[pl.Series], height: int
    ) -> pl.Series:
        """A window's value for each row, null where a key is null."""

    def attempts(self, keys: Sequence[pl.Series], success: pl.Series, reward: pl.Series) -> pl.DataFrame:
        """`attempts`, `pass_rate` and `spread` of each row's group (semantics 4)."""

    def allot(self, draws: pl.Series, bounds: Sequence[tuple[int, str]], rest: str) -> pl.Series:
        """The name whose exclusive bound is the first above the row's draw, else `rest`; bounds ascend."""

    def look_up(self, on: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
        """The columns of `table` besides `key`, from its row of that key, and `matched`; a null key matches nothing.

        `key` is of the type of `on` and unique.
        """


class Polars:
    """Expressions as polars plans (`frames`), rows compared in polars."""

    name = "polars"

    def __init__(self, memory: int | None = None) -> None:
        self.memory = memory

    def batch(
        self,
        runs: pl.DataFrame,
        turns: pl.DataFrame | None = None,
        *,
        toolsets: Mapping[str, str] | None = None,
        known: Mapping[Core, str] | None = None,
        paths: tuple[JsonPath, ...] = (),
        tokens: Tokens | None = None,
        side: SideTables | None = None,
    ) -> Frames:
        return Frames(runs, turns, toolsets=toolsets, known=known, paths=paths, tokens=tokens, side=side)

    def places(self, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
        place = pl.int_range(pl.len(), dtype=pl.UInt32)
        ordered = _ordered(keys, order, descending)
        found = ordered.with_columns(place=place.over(_names("k", keys)) if keys else place)
        return found.sort("at")["place"]

    def leaders(self, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
        first = pl.col("at").first()
        ordered = _ordered(keys, order, descending)
        found = ordered.with_columns(leader=first.over(_names("k", keys)) if keys else first)
        return found.sort("at")["leader"]

    def aggregate(
        self, window: Window, argument: pl.Series | None, keys: Sequence[pl.Series], height: int
    ) -> pl.Series:
        return aggregate(window, argument, keys, height)

    def attempts(self, keys: Sequence[pl.Series], success: pl.Series, reward: pl.Series) -> pl.DataFrame:
        group = _names("k", keys)
        attempts = pl.col("success").count().cast(pl.Int64).over(group)
        solved = pl.col("success").sum().cast(pl.Float64).over(group)
        spread = (pl.col("reward").max() - pl.col("reward").min()).over(group)
        return pl.DataFrame({**dict(zip(group, keys, strict=True)), "success": success, "reward": reward}).select(
            attempts=attempts,
            pass_rate=pl.when(attempts >= 2).then(solved / attempts.cast(pl.Float64)),
            spread=pl.when(pl.col("reward").count().over(group) >= 2).then(spread),
        )

    def allot(self, draws: pl.Series, bounds: Sequence[tuple[int, str]], rest: str) -> pl.Series:
        part = pl.lit(rest)
        for bound, name in reversed(bounds):
            part = pl.when(pl.col("draw") < bound).then(pl.lit(name)).otherwise(part)
        return pl.DataFrame({"draw": draws}).with_columns(part=part)["part"]

    def look_up(self, on: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
        rows = table.with_columns(matched=pl.lit(True))
        found = pl.DataFrame({"key": on}).join(rows, on="key", how="left", maintain_order="left", validate="m:1")
        return found.drop("key").with_columns(pl.col("matched").fill_null(False))


POLARS = Polars()


def _names(letter: str, columns: Sequence[pl.Series]) -> list[str]:
    return [f"{letter}{i}" for i in range(len(columns))]


def _ordered(keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.DataFrame:
    """Keys and `at`, each row's position, in the asked order."""
    by = _names("o", order)
    columns = [*zip(_names("k", keys), keys, strict=True), *zip(by, order, strict=True)]
    frame = pl.DataFrame(dict(columns)).with_columns(at=pl.int_range(pl.len(), dtype=pl.UInt32))
    return frame.sort(by, descending=list(descending), nulls_last=True)
