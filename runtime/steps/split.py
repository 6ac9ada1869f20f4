"""`split by`: every row gets its part by a hash of its key, so that new runs never move old ones."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curatec.compiler import plan, text
from curatec.compiler.engine import Engine
from curatec.runtime.near import components
from curatec.runtime.state import State
from curatec.runtime.steps.near import sketched
from curatec.runtime.steps.step import Place, apply


@apply.register
def _(operation: plan.Split, state: State, place: Place) -> State:
    measured, [by] = state.values([operation.by], place.ahead)
    rows = measured.rows
    if by.dtype == pl.List(pl.String):  # a list has no text of its own
        by = text.hash_key([by]).set(by.is_null(), None)
    key = rows.select(key=pl.coalesce(pl.lit(by).cast(pl.String), "task", "id"))["key"]
    _tasks_whole(rows, key, place)
    if operation.near is not None and operation.near_threshold is not None:
        near = sketched(operation.near, operation.near_threshold, measured, place).pairs()
        key = _united(key, near)
    parts = _parts(state.engine, text.draw("split", operation.seed, key), operation.shares)
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


def _united(key: pl.Series, near: pl.DataFrame) -> pl.Series:
    """One key for all rows that near texts or equal keys connect: the lowest of theirs."""
    rows = pl.DataFrame({"key": key}).with_row_index("right")
    same = rows.select("right", left=pl.col("right").min().over("key")).filter(pl.col("left") < pl.col("right"))
    component = components(rows.height, pl.concat([near.select("left", "right"), same.select("left", "right")]))
    return rows.select(pl.col("key").min().over(component))["key"]


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


def _parts(engine: Engine, draws: pl.Series, shares: Sequence[tuple[str, float]]) -> pl.Series:
    return engine.allot(draws, bounds(shares), shares[-1][0])


def bounds(shares: Sequence[tuple[str, float]]) -> list[tuple[int, str]]:
    """The exclusive bound of the draws of each part but the last, and its name."""
    bound, found = 1.0, list[tuple[int, str]]()
    for (_, share), (name, _) in zip(reversed(shares[1:]), reversed(shares[:-1]), strict=True):
        bound -= share
        found.insert(0, (text.threshold(max(0.0, min(1.0, bound))), name))
    return found
