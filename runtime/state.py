"""Where a strategy stands between two steps: narrow rows in memory, turns on disk in parts.

`rows` has one row a trajectory, sorted by (part, row): facts, derived columns, measured expressions. What compares
rows works on it alone. A row that a step made from another keeps its facts: `origin` is the id of the run at the root,
(`home_part`, `home_row`) the place where its record was read. Turns are read part by part, only for the rows that are
left, and are written again only by steps that edit them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from curatec.compiler.core import Core, children, columns, has_window
from curatec.compiler.engine import OVERFLOWS, POLARS, Engine
from curatec.compiler.frames import DTYPES, Frames, SideTables, Tokens
from curatec.compiler.json_path import JsonPath
from curatec.compiler.passes.projection import along, needs_turns, shares_work, turn_columns_of
from curatec.compiler.types import Level
from curatec.runtime.parallel import mapped
from curatec.runtime.turns import Turns

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

T = TypeVar("T")
_SHOWN = {"tokens", "trained_tokens"}  # what depends on the tools that a trajectory shows


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

    def batches(self, columns: Collection[str] | None = None) -> Iterator[tuple[int, Frames]]:
        """One `Frames` for each part that still has rows, in order of parts; of turns all columns, or those."""
        for part, rows in _by_part(self.rows):
            yield part, self.frames(rows, self.turns.load(part, rows["row"], columns))

    def map_batches(self, work: Callable[[int, Frames], T], columns: Collection[str] | None = None) -> Iterator[T]:
        """`work` of each part that still has rows, in order of parts, several at a time. It must be a pure function."""

        def one(given: tuple[int, pl.DataFrame]) -> T:
            part, rows = given
            return work(part, self.frames(rows, self.turns.load(part, rows["row"], columns)))

        # A template renders in Python, where threads only wait for each other.
        return map(one, _by_part(self.rows)) if self.renderer is not None else mapped(one, _by_part(self.rows))

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

    def measured(
        self,
        cores: Sequence[Core],
        ahead: Sequence[Core] = (),
        *,
        among: pl.Series | None = None,
        stays: Callable[[Frames], pl.Series] | None = None,
    ) -> State:
        """Has a column for all that `cores` read from turns. `ahead`: what later steps will ask for, measured in the
        same pass where it can be already and costs little more. Null for rows that nobody will ask: `cores` are
        measured of the rows `among` only; of `ahead`, what is computed anew only of those for which `stays` is true."""
        wanted = list(dict.fromkeys(m for core in cores for m in measures(core, self.known)))
        if not wanted:
            return self
        rendered = self.renderer is not None
        read = turn_columns_of(wanted, rendered=rendered)
        taken = [m for m in dict.fromkeys(along(self.foreseen(ahead), read)) if m not in wanted]
        alike = [m for m in taken if stays is None or shares_work(m, wanted)]
        anew = [m for m in taken if m not in alike]

        def work(_: int, frames: Frames) -> list[pl.Series]:
            left = stays(frames) if anew and stays is not None else None
            if left is None or left.all():
                return frames.each([*wanted, *alike, *anew])
            own = frames.each([*wanted, *alike])
            turns = frames.turns.filter(left.gather(frames.turns["run"])).drop("run")
            some = self.frames(frames.runs.filter(left), turns)
            return [*own, *(_spread(values, left) for values in some.each(anew))]

        try:
            asked = self if among is None else self.keep(among)
            pieces = list(asked.map_batches(work, read | turn_columns_of(taken, rendered=rendered)))
        except OVERFLOWS:
            if not taken:
                raise
            return self.measured(cores, among=among)  # what fails on these rows may fit on those of a later step
        if among is not None and pieces:
            pieces = [[_spread(pl.concat(values), among) for values in zip(*pieces, strict=True)]]
        return self.with_measured([*wanted, *alike, *anew], pieces)

    def foreseen(self, ahead: Sequence[Core]) -> list[Core]:
        """What of `ahead` can be measured now."""
        return [m for core in ahead for m in measures(core, self.known) if self._computable(m)]

    def with_measured(self, cores: Sequence[Core], pieces: Sequence[Sequence[pl.Series]]) -> State:
        """With a column for each expression; `pieces` are the values of each part, in the order of parts."""
        names = {core: f"measure:{len(self.known) + i}:{id(self)}" for i, core in enumerate(cores)}
        if pieces:
            columns = [pl.concat([piece[i] for piece in pieces]).alias(names[core]) for i, core in enumerate(cores)]
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
        return state, frames.each(cores)


def _by_part(rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    for key, group in rows.partition_by("part", as_dict=True, maintain_order=True).items():
        yield int(key[0]), group


def _spread(values: pl.Series, where: pl.Series) -> pl.Series:
    """Values of the rows where it is true, null for the others."""
    return values.gather(pl.select(pl.when(where).then(pl.lit(where).cum_sum() - 1)).to_series())


def measures(core: Core, known: Container[Core] = ()) -> list[Core]:
    """The largest parts of a trajectory-level expression that read turns and compare no rows; what is known already
    reads none."""
    if not needs_turns(core, known):
        return []
    if not has_window(core):
        return [core]
    return [m for child in children(core) for m in measures(child, known)]
