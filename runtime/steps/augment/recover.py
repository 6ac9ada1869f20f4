"""`recover(max_gap)`: a failed call and the call that puts it right, from what the runs really did.

A call failed where its result is known to be an error. The next call of the same tool with other arguments, made after
that result was seen and itself no error, puts it right, if it is at most `max_gap` assistant turns later. The row ends
with the turn that made it and trains nothing else. Failures that one turn puts right together make one row.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.compiler.json_path import canonical_series
from curatec.runtime.state import State
from curatec.runtime.steps.augment.copies import copies, parents
from curatec.runtime.steps.created import Made, add, prefixes
from curatec.runtime.steps.step import Place, apply

_ROLE = pl.col("role").cast(pl.String)


@apply.register
def _(operation: plan.Recover, state: State, place: Place) -> State:
    def made() -> Iterator[Made]:
        for _, frames in state.batches():
            turns = frames.turns.with_columns(at=pl.int_range(pl.len(), dtype=pl.UInt32))
            ends = corrections(frames, operation.max_gap).filter(pl.col("run").is_in(parents(frames.runs).implode()))
            yield Made(copies(frames.runs, ends["run"], ends["ordinal"], place), prefixes(turns, ends))

    after = add(state, place, "recover", made())
    place.count(state, after, created=after.rows.height - state.rows.height)
    return after


def corrections(frames: Frames, max_gap: int) -> pl.DataFrame:
    """The turns that put a failed call right: `run`, `until` (position of the turn) and `ordinal` within the run."""
    turns = frames.turns.select(
        "is_error", assistant=_ROLE == "assistant", step=(_ROLE == "assistant").cum_sum().over("run").cast(pl.Int64)
    )
    calls = frames.calls
    agents = (calls["requestor"].cast(pl.String) == "agent") & turns["assistant"].gather(calls["at"])
    answered = calls.select(
        "run",
        "name",
        "at",
        "result_at",
        arguments=pl.coalesce(pl.lit(canonical_series(calls["args_json"])), "args_json", "args_raw", pl.lit("")),
        failed=turns["is_error"].gather(calls["result_at"]).fill_null(False),
        step=turns["step"].gather(calls["at"]),
    ).filter(pl.lit(agents) & pl.col("result_at").is_not_null() & pl.col("name").is_not_null())
    pairs = answered.filter("failed").join(answered.filter(~pl.col("failed")), on=["run", "name"], suffix="_right")
    gap = pl.col("step_right") - pl.col("step")
    right = pairs.filter(
        (pl.col("at_right") > pl.col("result_at"))
        & (pl.col("arguments_right") != pl.col("arguments"))
        & (gap <= max_gap)
    )
    first = right.group_by("run", "result_at").agg(until=pl.col("at_right").min())
    ends = first.select("run", "until").unique().sort("run", "until")
    return ends.with_columns(ordinal=pl.int_range(pl.len()).over("run"))
