"""What was done to rows at one stop of their way, without the names that the spec gives it.

Labels and reasons join when it is told to the ledger: a new name or another reason re-runs nothing (semantics 34).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from curatec.compiler import plan
from curatec.runtime.ledger import Ledger, StepCount
from curatec.runtime.way import Stop


@dataclass(frozen=True)
class Done:
    """`frames` are rows of the ledger and `count` the sums of a step; `held` the ids of runs of sealed tasks that left;
    `splits` id and split of every row that a `split` saw."""

    count: StepCount | None = None
    frames: Sequence[pl.DataFrame] = ()
    lineage: Sequence[pl.DataFrame] = ()
    held: pl.Series | None = None
    splits: pl.DataFrame | None = None

    def tell(self, ledger: Ledger, stop: Stop, branch: str | None) -> None:
        """Adds it to a ledger, named as the plan names it."""
        step = stop.step
        if step is None or self.count is None:
            return
        ledger.count(named(self.count, step, stop, branch))
        ledger.lineage.extend(self.lineage)
        said = {"sink": branch, "step": stop.position, "label": stop.label}
        reason = [] if step.because is None else [_because(step.because).alias("reason")]
        for frame in self.frames:
            own = [pl.lit(value).cast(frame.schema[name]).alias(name) for name, value in said.items()]
            ledger.frames.append(frame.with_columns(*own, *reason))


def named(count: StepCount, step: plan.Step, stop: Stop, branch: str | None) -> StepCount:
    return replace(
        count,
        sink=branch,
        step=stop.position,
        label=stop.label,
        text=step.text,
        because=step.because,
        see=step.see,
        again=stop.again,
    )


def _because(reason: str) -> pl.Expr:
    """The spec's reason, but for what could not be made: there the reason is why."""
    return pl.when(pl.col("action") == "rejected").then("reason").otherwise(pl.lit(reason))
