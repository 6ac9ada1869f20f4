"""Runs a plan: `from`, shared steps, stages, sinks' steps. What comes out is still canonical rows; sinks write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import NODES, Core
from curatec.compiler.engine import POLARS, Engine
from curatec.compiler.frames import SideTables, paths_of
from curatec.runtime import steps as registered
from curatec.runtime.corpus import Loaded, load, pieces_of
from curatec.runtime.done import Done
from curatec.runtime.inputs import Input
from curatec.runtime.ledger import Ledger
from curatec.runtime.memo.reached import Reached
from curatec.runtime.side import held_out, side_of
from curatec.runtime.state import State
from curatec.runtime.steps.edits import EDITS, run_edits
from curatec.runtime.steps.groups import in_order
from curatec.runtime.steps.step import Place, run
from curatec.runtime.turns import Turns
from curatec.runtime.way import Stop, Way, edits_turns, ways

if TYPE_CHECKING:
    from curatec.runtime.memo.memo import Memo
    from curatec.runtime.rendering import Renderer

REGISTERED = registered.REGISTERED  # importing them is what makes `run` know them


@dataclass(frozen=True)
class Executed:
    """`ends` is the state at the end of each stage and sink; `shared` that of the shared steps. `cached`: branch (None:
    shared) and label of what did not run, because what it gives was kept."""

    plan: plan.Plan
    loaded: Loaded
    start: State  # at `from`, after `--limit`
    shared: State
    ends: dict[str, State]
    ledger: Ledger
    held: dict[str, pl.Series] = field(default_factory=dict)  # sink → ids of runs of sealed tasks, before its steps
    splits: pl.DataFrame | None = None  # id and split of every row that the `split` of the strategy saw
    cached: list[tuple[str | None, str]] = field(default_factory=list)
    memo: Memo | None = None

    def computed(self, sink: str | None, what: Sequence[str], compute: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """A small table that is computed of the rows at the end of a sink (null: of those at `from`), or was before.
        `what` says all else that it depends on, the code included."""
        if self.memo is None:
            return compute()
        return self.memo.table(self.memo.keys.ends[sink] if sink is not None else self.memo.keys.begun, what, compute)


def execute(
    whole: plan.Plan,
    inputs: Sequence[Input],
    scratch: Path,
    *,
    side: SideTables | None = None,
    renderer: Renderer | None = None,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
    engine: Engine = POLARS,
    memo: Memo | None = None,
) -> Executed:
    """Run a plan over parsed inputs. `side` holds its tables and sealed sets, `renderer` is what its `render` names;
    `scratch` takes spilled turns; `limit` keeps the lowest ids (semantics 32). With `memo` each branch begins behind
    the last state that was kept of it."""
    loaded, first = _loaded(whole, inputs, scratch, engine, memo)
    start = replace(_limited(loaded.state, limit), side=side)
    work = _Work(whole, loaded, replace(start, renderer=renderer), scratch, progress or (lambda label: None), memo)
    ends: dict[str | None, Reached] = {}
    for way in ways(whole):
        base = ends[way.base] if way.branch is not None else replace(first, state=start)
        ends[way.branch] = work.go(base, way)
    states = {name: reached.state for name, reached in ends.items() if name is not None}
    shared = ends[None].state
    return Executed(whole, loaded, start, shared, states, work.ledger, work.held, work.splits, work.cached, memo)


def _loaded(
    whole: plan.Plan, inputs: Sequence[Input], scratch: Path, engine: Engine, memo: Memo | None
) -> tuple[Loaded, Reached]:
    """What `from` gives."""
    cores = list(expressions(whole))
    like = State(pl.DataFrame(), Turns(), {}, paths_of(cores, "args"), engine=engine)
    kept = memo.last([memo.keys.source], like) if memo is not None else None
    if kept is not None:
        return Loaded(kept.reached.state, pieces_of(inputs), tuple(inputs)), kept.reached
    began = perf_counter()
    loaded = load(inputs, cores, scratch, engine)
    if memo is None:
        return loaded, Reached(loaded.state)
    reached = Reached(loaded.state, done={memo.keys.source: Done()}, seconds=perf_counter() - began)
    return loaded, memo.keep(memo.keys.source, reached, end=True)


@dataclass
class _Work:
    """A plan while it runs. `like` is the state at `from`, with the renderer that `render` gives."""

    whole: plan.Plan
    loaded: Loaded
    like: State
    scratch: Path
    tell: Callable[[str], None]
    memo: Memo | None
    ledger: Ledger = field(default_factory=Ledger)
    held: dict[str, pl.Series] = field(default_factory=dict)
    splits: pl.DataFrame | None = None
    cached: list[tuple[str | None, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.partial = self.like.rows.height < self.loaded.state.rows.height
        self.meta = paths_of(expressions(self.whole), "meta")
        branches = (*self.whole.stages, *self.whole.sinks)
        self.after_shared = [core for branch in branches for core in until_edit(branch.steps)]

    def go(self, reached: Reached, way: Way) -> Reached:
        """The end of a branch, from that of its base or from the last state of it that was kept."""
        keys = self.memo.keys.along(way.branch) if self.memo is not None else [""] * len(way.stops)
        kept = self.memo.last(keys, self.like) if self.memo is not None else None
        passed = kept.passed if kept is not None else []
        reached = kept.reached if kept is not None else reached
        reached = replace(reached, state=self.loaded.with_meta(reached.state, self.meta))
        for stop, one in zip(way.stops, passed, strict=False):
            self._told(one, stop, way.branch)
            self.cached.append((way.branch, stop.label))
        for stops in _together(way, len(passed)):
            began = perf_counter()
            state, done = self._done(reached.state, way, stops)
            for at, one in zip(stops, done, strict=True):
                self._told(one, way.stops[at], way.branch)
                reached = reached.behind(keys[at], state, one)
            reached = replace(reached, seconds=reached.seconds + perf_counter() - began)
            if self.memo is not None:
                reached = self.memo.keep(keys[stops[-1]], reached, end=stops[-1] == len(way.stops) - 1)
        return reached

    def _done(self, state: State, way: Way, stops: Sequence[int]) -> tuple[State, list[Done]]:
        """The state behind some stops that run together, and what was done at each."""
        for at in stops:
            self.tell(way.stops[at].label)
        if way.stops[stops[0]].step is None:
            sealed = held_out(state.rows, side_of(state))
            return state.keep(~sealed), [Done(held=state.rows["id"].filter(sealed))]
        places = [self._place(way, at) for at in stops]
        after = run(state, places[0]) if len(places) == 1 else run_edits(state, places)
        splits = after.rows.select("id", "split") if isinstance(places[0].step.operation, plan.Split) else None
        return after, [Done(p.ledger.counts[0], p.ledger.frames, p.ledger.lineage, None, splits) for p in places]

    def _place(self, way: Way, at: int) -> Place:
        stop = way.stops[at]
        assert stop.step is not None, stop
        return Place(
            replace(stop.step, label=stop.label, because=None, see=()),
            stop.position,
            way.branch,
            Ledger(),
            self.scratch,
            self.loaded,
            self._ahead(way, at),
            self.like.renderer,
            self.partial,
            stop.again,
        )

    def _ahead(self, way: Way, at: int) -> tuple[Core, ...]:
        """What later stops will read of the same turns."""
        if way.stops[at].again:
            return ()
        rest = [stop.step for stop in way.stops[at + 1 :] if stop.step is not None]
        beyond = self.after_shared if way.branch is None and not any(map(edits_turns, rest)) else []
        return (*until_edit(rest), *beyond)

    def _told(self, done: Done, stop: Stop, branch: str | None) -> None:
        done.tell(self.ledger, stop, branch)
        if done.held is not None and branch is not None:
            self.held[branch] = done.held
        if self.splits is None:
            self.splits = done.splits


def _together(way: Way, first: int) -> Iterator[range]:
    """The stops from `first` on; those that edit turns one right behind the other run in one pass."""
    at = first
    while at < len(way.stops):
        end = at
        while end < len(way.stops) and _edits(way.stops[end]):
            end += 1
        yield range(at, max(end, at + 1))
        at = max(end, at + 1)


def _edits(stop: Stop) -> bool:
    return stop.step is not None and isinstance(stop.step.operation, EDITS)


def _limited(state: State, limit: int | None) -> State:
    if limit is None or state.rows.height <= limit:
        return state
    lowest = state.rows.sort("digest", "id")["id"].head(limit)
    return state.keep(state.rows["id"].is_in(lowest.implode()))


def until_edit(steps: Sequence[plan.Step]) -> list[Core]:
    """Trajectory-level expressions of the steps before the first one that edits turns."""
    found: list[Core] = []
    for step in steps:
        if edits_turns(step):
            break
        if not isinstance(step.operation, (plan.ToolsFilter, plan.Mix)):  # theirs are about tools and turns
            found.extend(expressions(_narrow(step.operation)))
    return found


def _narrow(operation: plan.Operation) -> Any:
    """What is measured of an operation. The texts that are compared by likeness are read part by part and not kept."""
    match operation:
        case plan.DedupNear():
            return operation.over, operation.best
        case plan.Split():
            return operation.by
        case plan.Filter(stages=stages) if stages:
            return stages
    return operation


def expressions(node: Any) -> Iterator[Core]:
    """The outermost expressions anywhere below a plan node."""
    if isinstance(node, NODES):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from expressions(item)
    elif is_dataclass(node) and not isinstance(node, type):
        for f in fields(node):
            if f.name not in ("span", "source"):
                yield from expressions(getattr(node, f.name))


def written_rows(executed: Executed, sink: str) -> State:
    """The rows whose runs are in a sink's output, once it is written: its own rules may have taken out some more, and
    of a run that became several rows its target may refuse each."""
    state = executed.ends[sink]
    if not executed.ledger.frames:
        return state
    by_sink = (pl.col("sink") == sink) & pl.col("step").is_null()
    own = pl.concat(frame.filter(by_sink) for frame in executed.ledger.frames)
    lost = own.filter(pl.col("action").is_in(["dropped", "rejected"]))["traj_id"]
    parts = own.filter((pl.col("action") == "created") & pl.col("key").is_not_null())
    none = parts.group_by("key").agg(pl.col("traj_id").is_in(lost.implode()).all()).filter("traj_id")["key"]
    return state.keep(~state.rows["id"].is_in(pl.concat([lost, none]).implode()))


def sorted_rows(state: State) -> pl.DataFrame:
    """Rows in the order in which a sink writes them: `sort by`, else by task; then by id (semantics 13)."""
    by, descending = (state.order, state.descending) if state.order else (("task",), (False,))
    return state.rows[in_order(state.engine, state.rows["id"], [state.rows[name] for name in by], descending)]
