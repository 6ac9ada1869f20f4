"""Steps on trajectories: filters, quotas, columns, order, split. Each is a pure function with its ledger rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from curatec.compiler import plan, text
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place, apply

# ---- filters ----


@apply.register
def _(operation: plan.Filter, state: State, place: Place) -> State:
    measured, [where] = state.values([operation.where], place.ahead)
    true, unknown = where.fill_null(False), where.is_null()
    gone = ~true if operation.verb == "keep" else true
    lost = measured.rows.filter(gone)
    place.drop(lost["id"], predicate_null=unknown.filter(gone))
    after = measured.keep(~gone)
    place.count(state, after, predicate_null=int(unknown.sum()))
    return after


@apply.register
def _(operation: plan.Sample, state: State, place: Place) -> State:
    measured, keys = state.values(operation.per, place.ahead)
    draws = text.draw("sample", operation.seed, measured.rows["digest"])
    null_key = _any_null(keys, measured.rows.height)
    if operation.share is not None:
        chosen = draws < text.threshold(operation.share)
    else:
        assert operation.count is not None
        chosen = _first_of_each(measured.rows["id"], keys, [draws], [False], operation.count)
    kept = chosen | null_key
    place.drop(measured.rows.filter(~kept)["id"], reason=place.step.because or "not drawn")
    after = measured.keep(kept)
    place.count(state, after, null_key=int(null_key.sum()))
    return after


@apply.register
def _(operation: plan.Limit, state: State, place: Place) -> State:
    cores = [*operation.per, *(order.value for order in operation.order)]
    measured, values = state.values(cores, place.ahead)
    keys, order = values[: len(operation.per)], values[len(operation.per) :]
    null_key = _any_null(keys, measured.rows.height)
    descending = [o.descending for o in operation.order]
    kept = _first_of_each(measured.rows["id"], keys, order, descending, operation.count) | null_key
    place.drop(
        measured.rows.filter(~kept)["id"], key=_shown(keys, ~kept), reason=place.step.because or "over the limit"
    )
    after = measured.keep(kept)
    place.count(state, after, null_key=int(null_key.sum()))
    return after


@apply.register
def _(operation: plan.Dedup, state: State, place: Place) -> State:
    cores = [*operation.on, *(order.value for order in operation.best)]
    measured, values = state.values(cores, place.ahead)
    keys, order = values[: len(operation.on)], values[len(operation.on) :]
    null_key = _any_null(keys, measured.rows.height)
    key = text.hash_key(keys)
    descending = [o.descending for o in operation.best]
    best = _first_of_each(measured.rows["id"], keys, order, descending, 1)
    survivors = pl.DataFrame({"key": key, "survivor": measured.rows["id"]}).filter(best & ~null_key)
    kept = best | null_key
    gone = pl.DataFrame({"id": measured.rows["id"], "key": key}).filter(~kept)
    gone = gone.join(survivors, on="key", how="left", maintain_order="left")
    place.drop(gone["id"], key=gone["key"], survivor=gone["survivor"], reason=place.step.because or "duplicate")
    after = measured.keep(kept)
    place.count(state, after, null_key=int(null_key.sum()))
    return after


def _any_null(keys: Sequence[pl.Series], height: int) -> pl.Series:
    """Where some key is null: such a row is in no group and is left alone (semantics 12)."""
    frame = pl.DataFrame({"height": pl.int_range(height, eager=True), **_named(keys)})
    return (
        frame.select(
            pl.any_horizontal(pl.lit(False), *(pl.col(f"k{i}").is_null() for i in range(len(keys)))).alias("x")
        )["x"]
        if keys
        else pl.repeat(False, height, dtype=pl.Boolean, eager=True)
    )


def _named(keys: Sequence[pl.Series]) -> dict[str, pl.Series]:
    return {f"k{i}": key for i, key in enumerate(keys)}


def _first_of_each(
    ids: pl.Series, keys: Sequence[pl.Series], order: Sequence[pl.Series], descending: Sequence[bool], count: int
) -> pl.Series:
    """Whether a row is among the first `count` of its group: nulls last both ways, then by id (semantics 13)."""
    ordered = pl.DataFrame({"id": ids, **_named(keys), **{f"o{i}": o for i, o in enumerate(order)}})
    ordered = ordered.with_columns(at=pl.int_range(pl.len())).sort(
        [*(f"o{i}" for i in range(len(order))), "id"], descending=[*descending, False], nulls_last=True
    )
    place = pl.int_range(pl.len())
    ranked = ordered.with_columns(place=place.over(list(_named(keys))) if keys else place)
    return ranked.sort("at").select(kept=pl.col("place") < count)["kept"]


def _shown(keys: Sequence[pl.Series], where: pl.Series) -> pl.Series:
    """Keys as one text for the ledger."""
    if not keys:
        return pl.Series([None] * int(where.sum()), dtype=pl.String)
    frame = pl.DataFrame(_named(keys)).filter(where)
    parts = [
        pl.col(name).list.join(", ") if frame[name].dtype == pl.List(pl.String) else pl.col(name).cast(pl.String)
        for name in frame.columns
    ]
    return frame.select(key=pl.concat_str(parts, separator=" · ", ignore_nulls=True))["key"]


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


@apply.register
def _(operation: plan.Split, state: State, place: Place) -> State:
    measured, [by] = state.values([operation.by], place.ahead)
    rows = measured.rows
    if by.dtype == pl.List(pl.String):  # a list has no text of its own
        by = text.hash_key([by]).set(by.is_null(), None)
    key = rows.select(key=pl.coalesce(pl.lit(by).cast(pl.String), "task", "id"))["key"]
    _tasks_whole(rows, key, place)
    parts = _parts(text.draw("split", operation.seed, key), operation.shares)
    after = measured.with_column("split", parts)
    place.count(state, after)
    for name, _ in operation.shares:
        if rows.height and not place.partial and name not in parts.unique().to_list():
            raise place.fail(
                "C0609",
                f"the split leaves `{name}` empty",
                f"there are {key.n_unique()} keys: give `{name}` a larger share, or choose another seed",
            )
    return after


def _tasks_whole(rows: pl.DataFrame, key: pl.Series, place: Place) -> None:
    """A key that parts one task would let a task be trained and validated at once."""
    parted = rows.select("task", key=key).group_by("task").agg(n=pl.col("key").n_unique()).filter(pl.col("n") > 1)
    if parted.height:
        example = parted.sort("task")["task"][0]
        raise place.fail(
            "C0413",
            f"this key parts {parted.height} tasks, such as `{example}`",
            "split by `task`, or by what is the same for all runs of a task",
        )


def _parts(draws: pl.Series, shares: Sequence[tuple[str, float]]) -> pl.Series:
    part = pl.lit(shares[-1][0])
    bound = 1.0
    for (_, share), (name, _) in zip(reversed(shares[1:]), reversed(shares[:-1]), strict=True):
        bound -= share
        part = pl.when(pl.lit(draws) < text.threshold(max(0.0, min(1.0, bound)))).then(pl.lit(name)).otherwise(part)
    return pl.select(
        split=part if len(shares) > 1 else pl.lit(draws).is_null().replace_strict({False: shares[0][0]}, default=None)
    ).to_series()
