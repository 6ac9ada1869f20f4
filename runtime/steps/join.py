"""`join t on E [required]`: columns of a side table, by key. Never more rows than before, and never fewer."""

from __future__ import annotations

import polars as pl

from curatec.compiler import plan
from curatec.compiler.engine import Engine
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.side import Table, side_of
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place, apply


@apply.register
def _(operation: plan.Join, state: State, place: Place) -> State:
    measured, [on] = state.values([operation.on], place.ahead)
    table = side_of(state).tables[operation.table]
    found = _looked_up(state.engine, on, table, [name for name, _ in operation.columns])
    unmatched = ~found["matched"]
    if operation.required and unmatched.any():
        raise _lacking(operation, measured, on, unmatched, place)
    after = measured
    for name, _ in operation.columns:
        after = after.with_column(f"{operation.table}.{name}", found[f"column:{name}"])
    place.count(state, after, unmatched=int(unmatched.sum()))
    return after


def _looked_up(engine: Engine, on: pl.Series, table: Table, columns: list[str]) -> pl.DataFrame:
    """For each key, `matched` and the columns; a null key matches nothing."""
    named = [pl.col(name).alias(f"column:{name}") for name in columns]
    rows = table.frame.select(pl.col(table.key).alias("key"), *named)
    if on.dtype != rows["key"].dtype:  # an int may be looked up among floats, and a whole float among ints
        on = on.set(on != on.floor(), None).cast(rows["key"].dtype, strict=False)
    return engine.look_up(on, rows)


def _lacking(operation: plan.Join, state: State, on: pl.Series, unmatched: pl.Series, place: Place) -> CuratecError:
    lost = state.rows.select("id", key=on.cast(pl.String)).filter(unmatched).sort("id")
    name, key = lost.row(0)
    which = "has no key" if key is None else f"has the key `{key}`"
    return place.fail(
        "C0631",
        f"{lost.height} of {state.rows.height} runs have no row in `{operation.table}`",
        f"the first is {name[:12]}, which {which}",
        f"add their rows to `{operation.table}`, or drop those runs before this step",
        "without `required` its columns are null there",
    )
