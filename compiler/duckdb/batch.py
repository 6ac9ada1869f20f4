"""One batch of trajectories whose expressions are computed by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import polars as pl

from curatec.compiler import json_path
from curatec.compiler.core import Apply, Core, Window
from curatec.compiler.duckdb import sql
from curatec.compiler.duckdb.content import RENDERED
from curatec.compiler.frames import DTYPES, Frames, meta_column
from curatec.compiler.text import hash_key
from curatec.compiler.types import Level, Type

if TYPE_CHECKING:
    from curatec.compiler.duckdb.engine import DuckDB


class DuckFrames(Frames):
    """The tables and kernels of `Frames`; what is computed of them is SQL."""

    def __init__(self, engine: DuckDB, runs: pl.DataFrame, turns: pl.DataFrame | None, **more: object) -> None:
        super().__init__(runs, turns, **more)  # type: ignore[arg-type]
        self._engine = engine
        self._setting = sql.Setting(self._known, rendered=self.tokens is not None)

    def series(self, core: Core, level: Level = Level.TRAJECTORY) -> pl.Series:
        return self.each([core], level)[0]

    def each(self, cores: Sequence[Core], level: Level = Level.TRAJECTORY) -> list[pl.Series]:
        """One statement for all of them, besides what has to come before."""
        for step in sql.plan(cores, level, self._setting, frozenset(self._memo)):
            if isinstance(step, sql.Statement):
                values = self._run(step)
                self._memo.update({(step.level, core): value for core, value in zip(step.cores, values, strict=True)})
            else:
                at, core = step
                value = self._windowed(core) if isinstance(core, Window) else self._hashed(core, at)
                self._memo[step] = value.alias("value")
        return [
            self._memo[level, core] if core not in self._known else self._known_values(core, level) for core in cores
        ]

    def _known_values(self, core: Core, level: Level) -> pl.Series:
        return self._down(self.runs[self._known[core]], Level.TRAJECTORY, level).alias("value")

    def _windowed(self, core: Window) -> pl.Series:
        argument = None if core.argument is None else self.series(core.argument)
        return self._engine.aggregate(core, argument, self.each(core.keys), self.runs.height)

    def _hashed(self, core: Core, level: Level) -> pl.Series:
        value = self.series(cast("Apply", core).args[0], level)
        return hash_key([value]).set(value.is_null(), None)

    # ---- what a statement reads ----

    def _run(self, statement: sql.Statement) -> list[pl.Series]:
        tables = {
            sql.TABLES[level]: self._places(level).with_columns(
                plain(self._origin(level, origin)).alias(name) for name, origin in columns.items()
            )
            for level, columns in statement.reads.items()
        }
        for name, (table, column) in statement.beside.items():
            assert self._side is not None, name
            tables[name] = pl.DataFrame({"value": self._side.column(table, column).drop_nulls()})
        found = self._engine.select(statement.sql, tables)
        return [_typed(value, core.type) for value, core in zip(found.get_columns(), statement.cores, strict=True)]

    def _places(self, level: Level) -> pl.DataFrame:
        """The positions that a table's rows have and belong to."""
        table = self.table(level)
        own = pl.int_range(table.height, eager=True)
        if level is Level.TRAJECTORY:
            return pl.DataFrame({"run": own})
        places = {"run": table["run"].cast(pl.Int64), sql.PLACES[level]: own}
        if level is Level.CALL:
            places["turn_at"] = table["at"].cast(pl.Int64)
        return pl.DataFrame(places)

    def _origin(self, level: Level, origin: sql.Origin) -> pl.Series:
        match origin:
            case sql.Before(core=core):
                return self._memo[level, core]
            case sql.Extracted(path=path, kind=kind):
                name = json_path.kind_column(path) if kind else str(path)
                return self._args[name] if level is Level.CALL else self.runs[meta_column(name)]
            case sql.Stored(name=name):
                return self._stored(level, name)

    def _stored(self, level: Level, name: str) -> pl.Series:
        match level:
            case Level.TURN if name in ("index", "tokens", "calls_text"):
                return self._turn_column(name)
            case Level.TRAJECTORY if name in RENDERED and self.tokens is not None:
                return self.tokens.of_runs(self, trained=name == "trained_tokens")
        return self.table(level)[name]


def plain(values: pl.Series) -> pl.Series:
    """As DuckDB is to see it: texts, not their codes; times without a zone, which is UTC."""
    match values.dtype:
        case pl.Datetime():
            return values.dt.replace_time_zone(None)
        case pl.Enum() | pl.Null():
            return values.cast(pl.String)
    return values


def _typed(values: pl.Series, type_: Type) -> pl.Series:
    """As the language has it."""
    match type_:
        case Type.TIME:
            values = values.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        case Type.NULL:
            values = pl.Series([None] * len(values), dtype=pl.Null)
        case _:
            values = values.cast(DTYPES[type_])
    return values.alias("value")
