"""Where a strategy stands between two steps: narrow rows in memory, turns on disk in parts.

`rows` has one row a trajectory, sorted by (part, row): facts, derived columns, measured expressions. What compares
rows works on it alone. A row that a step made from another keeps its facts: `origin` is the id of the run at the root,
(`home_part`, `home_row`) the place where its record was read. Turns are read part by part, only for the rows that are
left, and are written again only by steps that edit them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curatec.compiler.core import Core, children, columns, has_window
from curatec.compiler.engine import OVERFLOWS, POLARS, Engine
from curatec.compiler.frames import DTYPES, Frames, SideTables, Tokens
from curatec.compiler.json_path import JsonPath
from curatec.compiler.passes import needs_turns
from curatec.compiler.types import Level

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

# Parts stay in memory up to this size together: most corpora fit, and every sink reads them.
_KEPT = 64 * 2**20  # bytes
_SHOWN = {"tokens", "trained_tokens"}  # what depends on the tools that a trajectory shows


@dataclass(frozen=True)
class Turns:
    """The turns of each part, as they are now, in memory or in an Arrow file: the columns of TURNS, and `edited`
    (whether a step changed the turn)."""

    parts: tuple[Path | pl.DataFrame, ...] = ()

    def written(self, part: int, turns: pl.DataFrame, file: Path) -> Turns:
        """With new turns for a part, or for one more. `file` is where they go if they do not stay in memory."""
        before, after = self.parts[:part], self.parts[part + 1 :]
        held = sum(p.estimated_size() for p in (*before, *after) if isinstance(p, pl.DataFrame))
        if held + turns.estimated_size() <= _KEPT:
            return Turns((*before, turns, *after))
        turns.write_ipc(file, compression="uncompressed")
        return Turns((*before, file, *after))

    def load(self, part: int, rows: pl.Series) -> pl.DataFrame:
        """The turns of some trajectories of one part, sorted by (row, turn)."""
        kept = self.parts[part]
        turns = kept if isinstance(kept, pl.DataFrame) else pl.read_ipc(kept)
        return turns.join(pl.DataFrame({"row": rows}), on="row", how="semi", maintain_order="left")


@dataclass(frozen=True)
class State:
    """Immutable: each step gives a new one, so that sinks can start from the same rows."""

    rows: pl.DataFrame
    turns: Turns
    toolsets: dict[str, str]  # hash → tools_json; `rows.toolset` names one
    arg_paths: tuple[JsonPath, ...] = ()
    known: Mapping[Core, str] = field(default_factory=dict)  # measured expressions → their column in `rows`
    order: tuple[str, ...] = ()  # columns that `sort by` left, most significant first
    descending: tuple[bool, ...] = ()
    side: SideTables | None = None
    renderer: Renderer | None = None  # whose tokens are counted, after `render`
    # id → wide columns of the record that a step wrote anew, such as `gold_json`; the others are as read.
    rewritten: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    engine: Engine = POLARS

    # ---- rows ----

    def keep(self, mask: pl.Series) -> State:
        return replace(self, rows=self.rows.filter(mask))

    def with_column(self, name: str, values: pl.Series) -> State:
        return replace(self, rows=self.rows.with_columns(values.alias(name)))

    def edited(self, turns: Turns) -> State:
        """New turns: what was measured on the old ones is forgotten."""
        rows = self.rows.drop([name for name in self.known.values() if name not in self.order])
        return replace(self, turns=turns, rows=rows, known={})

    def with_tools(self, toolset: pl.Series, toolsets: dict[str, str]) -> State:
        """Other tools are shown: what a template makes of a trajectory is forgotten with its tokens."""
        stale = {core: name for core, name in self.known.items() if columns(core, Level.TRAJECTORY) & _SHOWN}
        known = {core: name for core, name in self.known.items() if core not in stale}
        rows = self.rows.drop(stale.values()).with_columns(toolset.alias("toolset"))
        return replace(self, rows=rows, toolsets=toolsets, known=known)

    # ---- values ----

    def batches(self) -> Iterator[tuple[int, Frames]]:
        """One `Frames` for each part that still has rows, in order of parts."""
        for part, rows in _by_part(self.rows):
            yield part, self.frames(rows, self.turns.load(part, rows["row"]))

    def frames(self, rows: pl.DataFrame, turns: pl.DataFrame | None = None) -> Frames:
        return self.engine.batch(
            rows,
            turns,
            toolsets=self.toolsets,
            known=self.known,
            paths=self.arg_paths,
            tokens=self._tokens(),
            side=self.side,
        )

    def _tokens(self) -> Tokens | None:
        if self.renderer is None:
            return None
        from curatec.runtime.conversation.tokens import RenderedTokens

        return RenderedTokens(self.renderer)

    def measured(self, cores: Sequence[Core], ahead: Sequence[Core] = ()) -> State:
        """Has a column for all that `cores` read from turns. `ahead`: what later steps will ask for, measured in the
        same pass where it can be already."""
        wanted = [m for core in cores for m in measures(core) if m not in self.known]
        if not wanted:
            return self
        wanted += [m for core in ahead for m in measures(core) if m not in self.known and self._computable(m)]
        wanted = list(dict.fromkeys(wanted))
        try:
            pieces = [[frames.series(core) for core in wanted] for _, frames in self.batches()]
        except OVERFLOWS:
            if not ahead:
                raise
            return self.measured(cores)  # what fails on these rows may fit on those that a later step sees
        names = {core: f"measure:{len(self.known) + i}:{id(self)}" for i, core in enumerate(wanted)}
        if pieces:
            columns = [pl.concat([piece[i] for piece in pieces]).alias(names[core]) for i, core in enumerate(wanted)]
            rows = self.rows.with_columns(columns)
        else:
            rows = self.rows.with_columns(
                pl.lit(None, dtype=DTYPES[core.type]).alias(name) for core, name in names.items()
            )
        return replace(self, rows=rows, known={**self.known, **names})

    def _computable(self, core: Core) -> bool:
        """Whether everything that it reads of the trajectory exists already (a later `derive` may not)."""
        from curatec.compiler.content import TRAJECTORY_CONTENT

        return all(
            name in self.rows.columns or name in TRAJECTORY_CONTENT or name == "meta"
            for name in columns(core, Level.TRAJECTORY)
        )

    def values(self, cores: Sequence[Core], ahead: Sequence[Core] = ()) -> tuple[State, list[pl.Series]]:
        """The state with what had to be measured, and one value for each row and expression."""
        state = self.measured(cores, ahead)
        frames = state.frames(state.rows)
        return state, [frames.series(core) for core in cores]


def _by_part(rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    for key, group in rows.partition_by("part", as_dict=True, maintain_order=True).items():
        yield int(key[0]), group


def measures(core: Core) -> list[Core]:
    """The largest parts of a trajectory-level expression that read turns and compare no rows."""
    if not needs_turns(core):
        return []
    if not has_window(core):
        return [core]
    return [m for child in children(core) for m in measures(child)]
