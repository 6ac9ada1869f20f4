"""The turns of a state, part by part: in memory, in a file that a step wrote, or in the parsed files as they were read.

A part is read for the rows that are left, and only in the columns that somebody asks for: most questions about turns
need their roles or their texts, few need all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curatec.runtime import arrow_file
from curatec.runtime.cache import Entry
from curatec.runtime.tables import TURNS

# Parts stay in memory up to this size together: most corpora fit, and every sink reads them.
KEPT = 64 * 2**20  # bytes
_SHARE = 16  # of the memory that a run may hold, as little as this are turns
_PLACE = ("row", "turn")  # columns that are always there
COLUMNS = (*TURNS, "edited")


@dataclass(frozen=True, slots=True)
class Parsed:
    """Turns that no step changed: files of parts one behind the other, and what is added to the rows of each."""

    pieces: tuple[tuple[Path, int], ...]

    @property
    def size(self) -> int:
        """Bytes on disk, which are those in memory, about."""
        return sum(path.stat().st_size for path, _ in self.pieces)

    def load(self, columns: Sequence[str]) -> pl.DataFrame:
        asked = [name for name in columns if name != "edited"]
        read = [shifted(arrow_file.read(path, asked), offset) for path, offset in self.pieces]
        turns = pl.concat(read, rechunk=True) if len(read) > 1 else read[0]
        return turns.with_columns(edited=pl.lit(False)).select(columns)


@dataclass(frozen=True, slots=True)
class Kept:
    """Turns that an earlier run wrote: an Arrow file of an entry of the cache."""

    entry: Entry
    name: str

    def load(self, columns: Sequence[str]) -> pl.DataFrame:
        """Raises DamagedEntry."""
        return arrow_file.read(self.entry.file(self.name), columns)


Part = Parsed | Kept | Path | pl.DataFrame


@dataclass(frozen=True)
class Turns:
    """The turns of each part, as they are now: the columns of TURNS, and `edited` (whether a step changed the turn).
    `kept` bounds in bytes what stays in memory."""

    parts: tuple[Part, ...] = ()
    kept: int = KEPT

    def written(self, part: int, turns: pl.DataFrame, file: Path) -> Turns:
        """With new turns for a part, or for one more. `file` is where they go if they do not stay in memory."""
        before, after = self.parts[:part], self.parts[part + 1 :]
        held = sum(p.estimated_size() for p in (*before, *after) if isinstance(p, pl.DataFrame))
        if held + turns.estimated_size() <= self.kept:
            return Turns((*before, turns, *after), self.kept)
        arrow_file.write(turns, file)
        return Turns((*before, file, *after), self.kept)

    def opened(self, parsed: Parsed) -> Turns:
        """With one more part as it was read; it is not written again, and unpacked only once if it is small."""
        held = sum(p.estimated_size() for p in self.parts if isinstance(p, pl.DataFrame))
        small = held + parsed.size <= self.kept and not any(isinstance(p, Parsed) for p in self.parts)
        return Turns((*self.parts, parsed.load(COLUMNS) if small else parsed), self.kept)

    def load(self, part: int, rows: pl.Series, columns: Collection[str] | None = None) -> pl.DataFrame:
        """The turns of some trajectories of one part, sorted by (row, turn); all columns, or those and the place."""
        wanted = [name for name in COLUMNS if columns is None or name in columns or name in _PLACE]
        match self.parts[part]:
            case Parsed() | Kept() as stored:
                turns = stored.load(wanted)
            case Path() as file:
                turns = arrow_file.read(file, wanted)
            case kept:
                turns = kept.select(wanted)
        return _of(turns, rows)


def _of(turns: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """The turns of those rows. A mask copies no text, where a join gathers what it keeps."""
    if turns.is_empty() or rows.is_empty():
        return turns.clear()
    last = turns["row"].item(-1)  # they are sorted
    wanted = pl.repeat(False, last + 1, dtype=pl.Boolean, eager=True).scatter(rows.filter(rows <= last), True)
    return turns.filter(wanted.gather(turns["row"]))


def kept(memory: int | None) -> int:
    """Bytes of turns that stay in memory where a run may hold so much; null: as much as there is."""
    return KEPT if memory is None else min(KEPT, memory // _SHARE)


def shifted(frame: pl.DataFrame, offset: int) -> pl.DataFrame:
    """Rows of a parsed part behind those of the parts before it."""
    return frame.with_columns(row=(pl.col("row") + offset).cast(pl.UInt32)) if offset else frame
