"""What the engine suite shares: both engines, and what it means that they gave the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from curatec.compiler.core import Core
from curatec.compiler.duckdb.engine import DuckDB
from curatec.compiler.engine import OVERFLOWS, POLARS, Engine, overflowed
from curatec.compiler.types import Level
from curatec.runtime.state import State
from tests.semantics.tools import plain

DUCKDB = DuckDB()
ENGINES: dict[str, Engine] = {"polars": POLARS, "duckdb": DUCKDB}
Asked = Sequence[tuple[Core, Level]]


def told(compute: Callable[[], pl.Series | None]) -> Any:
    """The values, or that a number does not fit."""
    try:
        return compute()
    except OVERFLOWS as error:
        if not overflowed(error):
            raise
        return "overflow"


def same(a: Any, b: Any) -> bool:
    """Equal in type, and in every value to the last bit: 0.0 is not -0.0."""
    if not isinstance(a, pl.Series) or not isinstance(b, pl.Series):
        return type(a) is type(b) and (a is None or a == b)
    return a.dtype == b.dtype and len(a) == len(b) and list(map(repr, plain(a))) == list(map(repr, plain(b)))


def values(state: State, asked: Asked) -> Iterator[Any]:
    """Each expression over all rows of its level, as a step asks for it."""
    for core, level in asked:
        if level is Level.TRAJECTORY:  # windows compare all rows: measured part by part, then put together
            yield told(lambda core=core: state.values([core])[1][0])
        else:
            yield told(lambda core=core, level=level: _together(state, core, level))


def _together(state: State, core: Core, level: Level) -> pl.Series | None:
    pieces = [frames.series(core, level) for _, frames in state.batches()]
    return pl.concat(pieces) if pieces else None
