"""Steps on trajectories: filters, quotas, columns, order. Each is a pure function with its ledger rows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

import polars as pl

from curatec.compiler import plan, text
from curatec.compiler.core import Core, has_window
from curatec.compiler.frames import Frames
from curatec.runtime.state import State
from curatec.runtime.steps.groups import any_null, first_of_each, leaders, shown
from curatec.runtime.steps.step import Place, apply

# ---- filters ----


@apply.register
def _(operation: plan.Filter, state: State, place: Place) -> State:
    measured, where = _decided(operation, state, place.ahead)
    true, unknown = where.fill_null(False), where.is_null()
    gone = ~true if operation.verb == "keep" else true
    lost = measured.rows.filter(gone)
    place.drop(lost["id"], predicate_null=unknown.filter(gone))
    after = measured.keep(~gone)
    place.count(state, after, predicate_null=int(unknown.sum()))
    return after


def _decided(operation: plan.Filter, state: State, ahead: Sequence[Core]) -> tuple[State, pl.Series]:
    """The condition for each row, stage by stage: each is asked only of the rows that no earlier one has settled, and
    what later steps will ask only of those that may stay."""
    keeps = operation.verb == "keep"
    stages = operation.stages or ((operation.where,),)
    value: pl.Series | None = None
    for terms in stages:
        among = value.ne_missing(not keeps) if value is not None else None
        may_stay = partial(_may_stay, [term for term in terms if not has_window(term)], keeps)
        state = state.measured(terms, ahead if terms is stages[-1] else (), among=among, stays=may_stay)
        frames = state.frames(state.rows)
        found = [frames.series(term) for term in terms]
        value = reduce(operator.and_ if keeps else operator.or_, found if value is None else [value, *found])
    assert value is not None
    return state, value


def _may_stay(terms: Sequence[Core], keeps: bool, frames: Frames) -> pl.Series:
    """The rows of a part that these terms of a filter do not drop."""
    dropped = [~frames.mask(term) if keeps else frames.mask(term) for term in terms]
    return ~reduce(operator.or_, dropped, pl.repeat(False, frames.runs.height, dtype=pl.Boolean, eager=True))


@apply.register
def _(operation: plan.Sample, state: State, place: Place) -> State:
    measured, keys = state.values(operation.per, place.ahead)
    draws = text.draw("sample", operation.seed, measured.rows["digest"])
    null_key = any_null(keys, measured.rows.height)
    if operation.share is not None:
        chosen = draws < text.threshold(operation.share)
    else:
        assert operation.count is not None
        chosen = first_of_each(state.engine, measured.rows["id"], keys, [draws], [False], operation.count)
    kept = chosen | null_key
    place.drop(measured.rows.filter(~kept)["id"], reason="not drawn")
    after = measured.keep(kept)
    place.count(state, after, null_key=int(null_key.sum()))
    return after


@apply.register
def _(operation: plan.Limit, state: State, place: Place) -> State:
    cores = [*operation.per, *(order.value for order in operation.order)]
    measured, values = state.values(cores, place.ahead)
    keys, order = values[: len(operation.per)], values[len(operation.per) :]
    null_key = any_null(keys, measured.rows.height)
    descending = [o.descending for o in operation.order]
    first = first_of_each(state.engine, measured.rows["id"], keys, order, descending, operation.count)
    kept = first | null_key
    place.drop(measured.rows.filter(~kept)["id"], key=shown(keys, ~kept), reason="over the limit")
    after = measured.keep(kept)
    place.count(state, after, null_key=int(null_key.sum()))
    return after


@apply.register
def _(operation: plan.Dedup, state: State, place: Place) -> State:
    cores = [*operation.on, *(order.value for order in operation.best)]
    measured, values = state.values(cores, place.ahead)
    keys, order = values[: len(operation.on)], values[len(operation.on) :]
    null_key = any_null(keys, measured.rows.height)
    ids = measured.rows["id"]
    best = leaders(state.engine, ids, keys, order, [o.descending for o in operation.best])
    kept = (best == pl.int_range(len(ids), dtype=pl.UInt32, eager=True)) | null_key
    gone = pl.DataFrame({"id": ids, "key": text.hash_key(keys), "survivor": ids.gather(best)}).filter(~kept)
    place.drop(gone["id"], key=gone["key"], survivor=gone["survivor"], reason="duplicate")
    after = measured.keep(kept)
    place.count(state, after, null_key=int(null_key.sum()))
    return after


# ---- columns ----


@apply.register
def _(operation: plan.Derive, state: State, place: Place) -> State:
    measured, [value] = state.values([operation.value], place.ahead)
    after = measured.with_column(operation.name, value)
    place.count(state, after)
    return after


@apply.register
def _(operation: plan.Tag, state: State, place: Place) -> State:
    measured, holds = state.values([where for _, where in operation.families], place.ahead)
    tag = pl.lit(None, dtype=pl.String)
    for (name, _), where in reversed(list(zip(operation.families, holds, strict=True))):
        tag = pl.when(pl.lit(where)).then(pl.lit(name)).otherwise(tag)
    after = measured.with_column("failure", measured.rows.with_columns(failure=tag)["failure"])
    place.count(state, after)
    return after


@apply.register
def _(operation: plan.Sort, state: State, place: Place) -> State:
    measured, values = state.values([order.value for order in operation.by], place.ahead)
    after = measured
    names: list[str] = []
    for i, value in enumerate(values):
        name = f"order:{place.position}:{i}"
        after, names = after.with_column(name, value), [*names, name]
    after = replace(after, order=tuple(names), descending=tuple(o.descending for o in operation.by))
    place.count(state, after)
    return after
