"""Steps inside trajectories: turns kept, dropped or set, and tools shown (semantics 7, 9).

All predicates see the turns as before the step; one pass over each part; a call and its result live and die together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import msgspec
import polars as pl
import xxhash

from curatec.compiler import plan
from curatec.compiler.core import Core
from curatec.compiler.engine import OVERFLOWS, overflowed
from curatec.compiler.frames import Frames
from curatec.compiler.types import Level
from curatec.runtime.conversation import pairs
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place, apply, told

_ROLE = pl.col("role").cast(pl.String)


# ---- one part after the other ----


@dataclass(frozen=True, slots=True)
class Logged:
    """Rows for the ledger: one for each turn, what happened to it, and columns beside."""

    frames: Frames
    turns: pl.DataFrame
    action: str
    columns: Mapping[str, object]

    def add_to(self, place: Place) -> None:
        place.ledger.add(
            self.frames.runs["id"].gather(self.turns["run"]),
            self.action,
            **{"turn": self.turns["turn"], **self.columns, **place.common()},
        )


@dataclass(frozen=True, slots=True)
class Edited:
    """What an edit makes of the turns of one part; `n` turns of it were changed or removed."""

    turns: pl.DataFrame
    n: int
    logged: tuple[Logged, ...]


Edit = Callable[[Frames], Edited]
EDITS = (plan.TurnsFilter, plan.TurnsCut, plan.TurnsSet)  # that can run in one pass


@singledispatch
def edit_of(operation: object, place: Place) -> Edit:
    """What a step makes of one part: a pure function, so that parts can be edited at the same time."""
    raise AssertionError(operation)


def run_edits(state: State, places: Sequence[Place]) -> State:
    """Steps that edit turns, one right behind the other: each part is read once, edited by all of them and written
    once. What the steps behind them will ask of the turns is measured before a part is let go."""
    edits = [edit_of(place.step.operation, place) for place in places]
    fresh = state.edited(state.turns)
    wanted = list(dict.fromkeys(fresh.foreseen(places[-1].ahead)))

    def work(part: int, frames: Frames) -> _Part:
        done: list[Edited] = []
        for place, edit in zip(places, edits, strict=True):
            done.append(_edited(place, edit, frames))
            frames = fresh.frames(frames.runs, done[-1].turns)
        return _Part(part, done, _measured(frames, wanted))

    written = state.turns
    parts: list[_Part] = []
    for made in state.map_batches(work):
        for place, edited in zip(places, made.done, strict=True):
            for logged in edited.logged:
                logged.add_to(place)
        written = written.written(made.part, made.done[-1].turns, places[-1].file(made.part))
        parts.append(made.narrow())
    after = state.edited(written)
    for i, place in enumerate(places):
        place.count(state, after, edited=sum(made.n[i] for made in parts))
    pieces = [made.values for made in parts if made.values is not None]
    return after.with_measured(wanted, pieces) if wanted and len(pieces) == len(parts) else after


@dataclass(frozen=True, slots=True)
class _Part:
    """What all edits made of one part, and the values that were measured of it; null where one did not fit."""

    part: int
    done: list[Edited]
    values: list[pl.Series] | None
    n: tuple[int, ...] = ()

    def narrow(self) -> _Part:
        """Without the turns."""
        return _Part(self.part, [], self.values, tuple(edited.n for edited in self.done))


def _edited(place: Place, edit: Edit, frames: Frames) -> Edited:
    made = told(place, lambda: edit(frames))
    return replace(made, turns=made.turns.drop("run", "gone", strict=False))


def _measured(frames: Frames, cores: Sequence[Core]) -> list[pl.Series] | None:
    try:
        return [frames.series(core) for core in cores]
    except OVERFLOWS as error:
        if not overflowed(error):
            raise
        return None  # what fails on these rows may fit on those that a later step sees


@apply.register(plan.TurnsFilter)
@apply.register(plan.TurnsCut)
@apply.register(plan.TurnsSet)
def _(operation: object, state: State, place: Place) -> State:
    return run_edits(state, (place,))


# ---- turns that go ----


@edit_of.register
def _(operation: plan.TurnsFilter, place: Place) -> Edit:
    def gone(frames: Frames) -> pl.Series:
        true = frames.mask(operation.where, Level.TURN)
        return ~true if operation.verb == "keep" else true

    return lambda frames: _without(gone(frames), frames, place, repair=operation.repair)


@edit_of.register
def _(operation: plan.TurnsCut, place: Place) -> Edit:
    def gone(frames: Frames) -> pl.Series:
        at = pl.int_range(pl.len())
        true = frames.turns.select("run", "role", at=at, true=frames.mask(operation.where, Level.TURN))
        chosen = pl.col("at").filter("true")
        chosen = (chosen.first() if operation.pick == "first" else chosen.last()).over("run")
        beyond = pl.col("at") > chosen if operation.side == "after" else pl.col("at") < chosen
        return true.select(gone=beyond.fill_null(False) & (_ROLE != "system"))["gone"]

    return lambda frames: _without(gone(frames), frames, place, repair=operation.repair)


def _without(gone: pl.Series, frames: Frames, place: Place, *, repair: bool) -> Edited:
    """A part without some of its turns."""
    turns = frames.turns.with_columns(gone=gone)
    turns = pairs.without_halves(turns) if repair else _unharmed(turns, frames, place)
    dropped = Logged(frames, turns.filter("gone"), "dropped", {"n": 1})
    fewer = fewer_calls(turns, frames)
    return Edited(turns.filter(~pl.col("gone")), dropped.turns.height + fewer.turns.height, (dropped, fewer))


def _unharmed(turns: pl.DataFrame, frames: Frames, place: Place) -> pl.DataFrame:
    """The turns, unless a call would lose its result or a result its call: then an error that names the first."""
    harmed = _orphans(turns)
    if harmed.is_empty():
        return turns
    first = harmed.sort("run", "turn").row(0, named=True)
    what = "a result without its call" if first["role"] == "tool" else "a call without its result"
    raise place.fail(
        "C0610",
        f"this step leaves {what}: turn {first['turn']} of `{frames.runs['id'][first['run']]}`",
        "add `repair` to remove the other half as well, or keep both",
    )


def _orphans(turns: pl.DataFrame) -> pl.DataFrame:
    links = pairs.links(turns)
    lone_calls = links.filter(pl.col("result_gone") & ~pl.col("call_gone")).select(
        "run", "turn", role=pl.lit("assistant")
    )
    lone_results = links.filter(pl.col("call_gone") & ~pl.col("result_gone")).select(
        "run", turn="result_turn", role=pl.lit("tool")
    )
    return pl.concat([lone_calls, lone_results])


def fewer_calls(turns: pl.DataFrame, frames: Frames) -> Logged:
    """Turns that stay and lost a call with its result."""
    lost = frames.turns["calls"].list.len().cast(pl.Int64) - turns["calls"].list.len().cast(pl.Int64)
    fewer = turns.select("run", "turn", "gone", lost=lost).filter((pl.col("lost") > 0) & ~pl.col("gone"))
    return Logged(frames, fewer, "edited", {"key": "calls", "n": fewer["lost"]})


# ---- turns that say something else ----


@edit_of.register
def _(operation: plan.TurnsSet, place: Place) -> Edit:
    return lambda frames: _with_value(operation, frames)


def _with_value(operation: plan.TurnsSet, frames: Frames) -> Edited:
    """A part with a field of some of its turns set."""
    value = frames.series(operation.value, Level.TURN)
    changed = value.ne_missing(frames.turns[operation.field])
    if operation.where is not None:
        changed &= frames.mask(operation.where, Level.TURN)
    new = frames.turns.with_columns(
        pl.when(changed).then(pl.lit(value)).otherwise(pl.col(operation.field)).alias(operation.field),
        edited=pl.col("edited") | changed,
    )
    if operation.field == "content":
        kind = pl.when(pl.lit(value).is_null()).then(pl.lit("null")).otherwise(pl.lit("text"))
        new = new.with_columns(
            content_kind=pl.when(changed)
            .then(kind)
            .otherwise(pl.col("content_kind").cast(pl.String))
            .cast(frames.turns.schema["content_kind"])
        )
    touched = frames.turns.select("run", "turn").filter(changed)
    return Edited(new, touched.height, (Logged(frames, touched, "edited", {"key": operation.field, "n": 1}),))


# ---- tools ----


@apply.register
def _(operation: plan.ToolsFilter, state: State, place: Place) -> State:
    toolsets = dict(state.toolsets)
    pieces: list[pl.Series] = []
    edited = 0
    for _, frames in state.batches():
        true = frames.mask(operation.where, Level.TOOL)
        kept = frames.tools.filter(true if operation.verb == "keep" else ~true)
        names = _pruned(frames, kept, toolsets)
        changed = names.ne_missing(frames.runs["toolset"])
        removed = frames.tools.height - kept.height
        place.ledger.add(
            frames.runs.filter(changed)["id"],
            "edited",
            key="tools",
            n=_removed(frames, kept).filter(changed),
            **place.common(),
        )
        edited += removed
        pieces.append(names)
    after = state.with_tools(pl.concat(pieces), toolsets) if pieces else state
    place.count(state, after, edited=edited)
    return after


def _removed(frames: Frames, kept: pl.DataFrame) -> pl.Series:
    shown = frames.tools.group_by("run").len("shown").join(kept.group_by("run").len("kept"), on="run", how="left")
    base = pl.DataFrame({"run": pl.int_range(frames.runs.height, dtype=pl.UInt32, eager=True)})
    found = base.join(shown, on="run", how="left", maintain_order="left")
    return found.select(n=pl.col("shown").fill_null(0).cast(pl.Int64) - pl.col("kept").fill_null(0).cast(pl.Int64))["n"]


def _pruned(frames: Frames, kept: pl.DataFrame, toolsets: dict[str, str]) -> pl.Series:
    """The hash of what is left of each run's tools; new lists are added to `toolsets`."""
    positions = dict(kept.group_by("run", maintain_order=True).agg("position").iter_rows())
    names: list[str | None] = []
    made: dict[tuple[str, tuple[int, ...]], str] = {}
    for run, name in enumerate(frames.runs["toolset"]):
        if name is None:
            names.append(None)
            continue
        wanted = tuple(positions.get(run, ()))
        if (name, wanted) not in made:
            tools = msgspec.json.decode(toolsets[name], type=list[msgspec.Raw])  # the source's text of each
            text = f"[{','.join(bytes(tools[i]).decode() for i in wanted)}]"
            key = name if len(wanted) == len(tools) else xxhash.xxh3_128_hexdigest(text.encode())
            toolsets.setdefault(key, text)
            made[name, wanted] = key
        names.append(made[name, wanted])
    return pl.Series("toolset", names, dtype=pl.String)
