"""How much each trajectory says: counted once where it is read, since almost every spec and every report asks for it.

The numbers are the language's own content fields over the turns as they were read. They stand beside the columns of
RUNS in a parsed part, and hold until a source or a step changes the turns.
"""

from __future__ import annotations

import polars as pl

from curatec.compiler.core import Column
from curatec.compiler.frames import Frames
from curatec.compiler.types import Level, Type

COUNTS = tuple(
    Column(Level.TRAJECTORY, name, Type.INT)
    for name in ("turn_count", "assistant_turns", "call_count", "error_count", "tokens", "trained_tokens")
)


def column(count: Column) -> str:
    """Where a parsed part has it: no name of the language has a colon."""
    return f"measure:{count.name}"


def counts(runs: pl.DataFrame, turns: pl.DataFrame) -> list[pl.Series]:
    """One column a count, Int64. `runs` has `row`, counting from 0; `turns` is TURNS, sorted by (row, turn)."""
    frames = Frames(runs.select("row"), turns)
    return [frames.series(count).alias(column(count)) for count in COUNTS]
