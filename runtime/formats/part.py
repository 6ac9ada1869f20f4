"""Rows of RUNS and TURNS that belong together: put together, and written as the two files of a part.

The files are Arrow, not compressed: they are written and read at the speed of memory, and of a column that nobody asks
for nothing is touched. Parquet would take a fifth of the space and ten times the time to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import polars as pl

from .. import arrow_file
from .counts import counts


@dataclass(frozen=True, slots=True)
class Rows:
    """RUNS, `row` counting from 0, and TURNS, sorted by (row, turn)."""

    runs: pl.DataFrame
    turns: pl.DataFrame


def together(pieces: Sequence[Rows]) -> Rows:
    """The rows of each piece behind those of the pieces before it."""
    if len(pieces) == 1:
        return pieces[0]
    starts = accumulate((piece.runs.height for piece in pieces), initial=0)
    moved = [[_moved(frame, start) for frame in (p.runs, p.turns)] for p, start in zip(pieces, starts, strict=False)]
    runs, turns = (pl.concat(frames) for frames in zip(*moved, strict=True))
    return Rows(runs, turns)


def _moved(frame: pl.DataFrame, by: int) -> pl.DataFrame:
    return frame.with_columns((pl.col("row") + by).cast(pl.UInt32)) if by else frame


def by_line(one: Rows, other: Rows) -> Rows:
    """The rows of both in the order of `line`; runs of the same line stay as they were."""
    both = together([one, other])
    runs = both.runs.sort("line", maintain_order=True)
    places = pl.int_range(runs.height, dtype=pl.UInt32, eager=True)
    place = pl.Series("row", [0], dtype=pl.UInt32).new_from_index(0, runs.height).scatter(runs["row"], places)
    runs, turns = runs.with_columns(row=places), both.turns.with_columns(place.gather(both.turns["row"]))
    return Rows(runs, turns.sort("row", maintain_order=True))


def write(rows: Rows, runs: Path, turns: Path) -> None:
    """Writes both tables, with the counts beside RUNS. Raises OSError."""
    arrow_file.write(rows.runs.with_columns(counts(rows.runs, rows.turns)), runs)
    arrow_file.write(rows.turns, turns)
