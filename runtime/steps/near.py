"""`dedup near`: one row of each group of texts that are nearly the same (semantics 26)."""

from __future__ import annotations

import polars as pl

from curatec.compiler import plan, text
from curatec.compiler.core import Core, has_window
from curatec.compiler.passes.projection import needs_turns
from curatec.runtime.near import Sketches, components
from curatec.runtime.state import State
from curatec.runtime.steps.groups import any_null, leaders
from curatec.runtime.steps.step import Place, apply


@apply.register
def _(operation: plan.DedupNear, state: State, place: Place) -> State:
    cores = [*operation.over, *(order.value for order in operation.best)]
    measured, values = state.values(cores, place.ahead)
    over, order = values[: len(operation.over)], values[len(operation.over) :]
    ids = measured.rows["id"]
    null_key = any_null(over, len(ids))
    sketches = sketched(operation.on, operation.threshold, measured, place)
    groups = text.hash_key(over).set(null_key, None) if over else None
    component = components(len(ids), sketches.pairs(groups))
    leader = leaders(state.engine, ids, [component], order, [o.descending for o in operation.best])
    rows = pl.DataFrame({"leader": leader}).with_row_index("row")
    best = rows["row"] == leader
    gone = rows.filter(~best)
    likeness = sketches.likeness(gone["row"], gone["leader"])
    place.drop(
        ids.gather(gone["row"]),
        key=_shown(likeness, operation.threshold),
        survivor=ids.gather(gone["leader"]),
        reason="near duplicate",
    )
    after = measured.keep(best)
    place.count(state, after, null_key=int((null_key | sketches.numbers.is_null()).sum()))
    return after


def _shown(likeness: pl.Series, threshold: float) -> pl.Series:
    """How like its survivor a row is; others stand between them where that is below the threshold."""
    shown = [f"{value:.2f}" if value >= threshold else "chain" for value in likeness.to_list()]
    return pl.Series(shown, dtype=pl.String)


def sketched(on: Core, threshold: float, state: State, place: Place) -> Sketches:
    """Sketches of a text of each row. What is made from turns is read part by part and not kept."""
    sketches = Sketches(threshold, place.scratch)
    if needs_turns(on) and not has_window(on) and on not in state.known:
        for _, frames in state.batches():
            sketches.add(frames.series(on))
    else:
        sketches.add(state.values([on])[1][0])
    return sketches
