"""Runs a plan: `from`, shared steps, stages, sinks' steps. What comes out is still canonical rows; sinks write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import NODES, Core
from curatec.compiler.engine import POLARS, Engine
from curatec.compiler.frames import SideTables
from curatec.runtime import steps as registered
from curatec.runtime.corpus import Loaded, load
from curatec.runtime.inputs import Input
from curatec.runtime.ledger import Ledger
from curatec.runtime.side import held_out, side_of
from curatec.runtime.state import State
from curatec.runtime.steps.groups import in_order
from curatec.runtime.steps.step import Place, run

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

REGISTERED = registered.REGISTERED  # importing them is what makes `run` know them
# After these a trajectory may say something else, or its tokens are counted by another measure.
_EDITS = (
    plan.TurnsFilter,
    plan.TurnsSet,
    plan.TurnsCut,
    plan.View,
    plan.Redact,
    plan.Render,
    plan.Decompose,
    plan.Distractors,
    plan.Rebind,
    plan.Recover,
)


@dataclass(frozen=True)
class Executed:
    """`ends` is the state at the end of each stage and sink; `shared` that of the shared steps."""

    plan: plan.Plan
    loaded: Loaded
    start: State  # at `from`, after `--limit`
    shared: State
    ends: dict[str, State]
    ledger: Ledger
    held: dict[str, pl.Series] = field(default_factory=dict)  # sink → ids of runs of sealed tasks, before its steps
    splits: pl.DataFrame | None = None  # id and split of every row that the `split` of the strategy saw


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
) -> Executed:
    """Run a plan over parsed inputs. `side` holds its tables and sealed sets, `renderer` is what its `render` names;
    `scratch` takes spilled turns; `limit` keeps the lowest ids (semantics 32)."""
    loaded = load(inputs, list(expressions(whole)), scratch, engine)
    start = replace(_limited(loaded.state, limit), side=side)
    ledger = Ledger()
    tell = progress or (lambda label: None)
    partial = start.rows.height < loaded.state.rows.height
    splits: list[pl.DataFrame] = []

    def run_all(state: State, steps: Sequence[plan.Step], first: int, name: str | None, beyond: list[Core]) -> State:
        for i, step in enumerate(steps):
            tell(step.label)
            rest = steps[i + 1 :]
            ahead = [*until_edit(rest), *(beyond if not any(edits_turns(s) for s in rest) else ())]
            state = run(state, Place(step, first + i, name, ledger, scratch, loaded, tuple(ahead), renderer, partial))
            if isinstance(step.operation, plan.Split):
                splits.append(state.rows.select("id", "split"))
        return state

    def clean(state: State, branch: plan.Branch) -> State:
        """What later steps made or changed is held against each sealed set again."""
        passed = whole.passed(branch)
        for at, (position, step) in enumerate(passed):
            later = (s for _, s in passed[at + 1 :])
            if isinstance(step.operation, plan.Decontaminate) and any(map(edits_turns, later)):
                again = replace(step, label=f"{step.label}_again")
                place = Place(again, position, branch.name, ledger, scratch, loaded, (), renderer, partial, again=True)
                state = run(state, place)
        return state

    after_shared = [core for branch in (*whole.stages, *whole.sinks) for core in until_edit(branch.steps)]
    shared = run_all(start, whole.shared, 0, None, after_shared)
    ends: dict[str, State] = {}
    position = len(whole.shared)
    held: dict[str, pl.Series] = {}
    for branch in (*whole.stages, *whole.sinks):
        base = ends[branch.base] if branch.base is not None else shared
        if branch.target is not None:  # no quota of a sink counts what it may not take (semantics 27)
            sealed = held_out(base.rows, side_of(base))
            held[branch.name] = base.rows["id"].filter(sealed)
            base = base.keep(~sealed)
        end = run_all(base, branch.steps, position, branch.name, [])
        ends[branch.name] = clean(end, branch) if branch.target is not None else end
        position += len(branch.steps)
    return Executed(whole, loaded, start, shared, ends, ledger, held, splits[0] if splits else None)


def _limited(state: State, limit: int | None) -> State:
    if limit is None or state.rows.height <= limit:
        return state
    lowest = state.rows.sort("digest", "id")["id"].head(limit)
    return state.keep(state.rows["id"].is_in(lowest.implode()))


def edits_turns(step: plan.Step) -> bool:
    return isinstance(step.operation, _EDITS)


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
