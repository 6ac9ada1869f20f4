"""DuckDB as an engine: one connection, which spills to a folder where its memory does not suffice."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curatec.compiler.core import Core, Window
from curatec.compiler.duckdb import rows
from curatec.compiler.duckdb.batch import DuckFrames, plain
from curatec.compiler.duckdb.functions import PRELUDE
from curatec.compiler.engine import OutOfRange
from curatec.compiler.frames import DTYPES, SideTables, Tokens
from curatec.compiler.json_path import JsonPath
from curatec.dsl.diagnostics import CuratecError

if TYPE_CHECKING:
    from curatec.compiler.frames import Frames


class DuckDB:
    """`memory` is what the whole run may hold, `own` what DuckDB holds of it, in bytes; beyond that it goes to the
    folder `spill`. `threads`: all cores without it."""

    name = "duckdb"

    def __init__(
        self,
        memory: int | None = None,
        own: int | None = None,
        threads: int | None = None,
        spill: Path | None = None,
    ) -> None:
        import duckdb

        given = {"memory_limit": f"{own}B" if own else None, "threads": threads, "temp_directory": spill and str(spill)}
        config: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.memory = memory
        self._connection = duckdb.connect(config=config)
        for head, body in PRELUDE.items():
            self._connection.execute(f"create macro {head} as {body}")

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def select(self, sql: str, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """The rows of a statement over some tables; several threads may ask at once.

        Raises OutOfRange where a whole number does not fit in 64 bits, CuratecError (C0640) where the memory does not
        suffice.
        """
        import duckdb

        cursor = self._connection.cursor()
        try:
            for name, frame in tables.items():
                cursor.register(name, frame.to_arrow(compat_level=pl.CompatLevel.newest()))
            found = pl.from_arrow(cursor.sql(sql).to_arrow_table())
        except (duckdb.OutOfRangeException, duckdb.ConversionException) as error:
            raise OutOfRange(str(error)) from None
        except duckdb.OutOfMemoryException:
            message = "DuckDB needs more memory than it is given"
            raise CuratecError.of("C0640", message, help="give more with `--memory`, or leave it out") from None
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from None
            raise
        except duckdb.IOException as error:
            if "No space left" in str(error):
                raise OSError(errno.ENOSPC, "No space left on device") from None
            raise
        finally:
            cursor.close()
        assert isinstance(found, pl.DataFrame)
        return found

    # ---- the protocol ----

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
        return DuckFrames(self, runs, turns, toolsets=toolsets, known=known, paths=paths, tokens=tokens, side=side)

    def places(self, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
        found = self._over(rows.places(len(keys), descending), k=keys, o=order)
        return found["place"].cast(pl.UInt32)

    def leaders(self, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool]) -> pl.Series:
        found = self._over(rows.leaders(len(keys), descending), k=keys, o=order)
        return found["leader"].cast(pl.UInt32)

    def aggregate(
        self, window: Window, argument: pl.Series | None, keys: Sequence[pl.Series], height: int
    ) -> pl.Series:
        x = argument if argument is not None else pl.repeat(0, height, dtype=pl.Int64, eager=True)
        sql = rows.window(window.function, window.type, len(keys), descending=window.descending)
        value = self._over(sql, k=keys, x=[x])["value"]
        return value.cast(x.dtype if window.function in ("min", "max") else DTYPES[window.type])

    def attempts(self, keys: Sequence[pl.Series], success: pl.Series, reward: pl.Series) -> pl.DataFrame:
        return self._over(rows.ATTEMPTS, k=keys, success=[success], reward=[reward])

    def allot(self, draws: pl.Series, bounds: Sequence[tuple[int, str]], rest: str) -> pl.Series:
        return self._over(rows.allot(bounds, rest), draw=[draws])["part"]

    def look_up(self, on: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
        kept = [name for name in table.columns if name != "key"]
        plain = table.select("key", *(pl.col(name).alias(f"c{i}") for i, name in enumerate(kept)))
        beside = {"beside": plain.filter(pl.col("key").is_not_null())}
        found = self._over(rows.look_up([f"c{i}" for i in range(len(kept))]), beside, key=[on])
        named = found.rename({f"c{i}": name for i, name in enumerate(kept)})
        return named.with_columns(named[name].cast(table.schema[name]) for name in kept)

    def _over(
        self, sql: str, beside: Mapping[str, pl.DataFrame] | None = None, **columns: Sequence[pl.Series]
    ) -> pl.DataFrame:
        """A statement over the narrow table `rows`: `k=[a, b]` are its columns `k0` and `k1`, `x=[a]` is `x`."""
        several = ("k", "o")
        named = {
            f"{letter}{i}" if letter in several else letter: plain(column)
            for letter, given in columns.items()
            for i, column in enumerate(given)
        }
        height = len(next(iter(named.values())))
        table = pl.DataFrame({"row_at": pl.int_range(height, eager=True), **named})
        return self.select(sql, {"rows": table, **(beside or {})})
