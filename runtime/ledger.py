"""The ledger: where every trajectory, turn and created row went, and why (semantics 28).

Ledger rows are collected as narrow frames while steps run, and written once. `check` holds the conservation law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

ACTIONS = pl.Enum(["kept", "dropped", "replaced", "created", "edited", "rejected"])
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "traj_id": pl.String,
    "example_id": pl.String,  # of an output row; null for what concerns the trajectory itself
    "turn": pl.Int32,  # as numbered in the source; null for what concerns the whole
    "sink": pl.String,  # null: a shared step, for all sinks
    "step": pl.Int32,  # position among the steps of the spec, from 0; null for `kept` and for rules of a sink
    "label": pl.String,
    "action": ACTIONS,
    "reason": pl.String,  # the spec's `because`, else a rule's name
    "key": pl.String,  # what a comparing step compared
    "predicate_null": pl.Boolean,  # the condition had no value
    "survivor": pl.String,  # the row that stayed in place of this one
    "n": pl.Int64,  # how many turns, calls or rows
}

LINEAGE: dict[str, pl.DataType | type[pl.DataType]] = {
    "out": pl.String,  # id of the created row
    "in": pl.String,  # id of the row that it came from
    "operator": pl.String,
    "ordinal": pl.Int32,  # from 0: which of its parents `in` is, or which of the parent's rows of this step it is
}


@dataclass(frozen=True, slots=True)
class StepCount:
    """What one step did. `entered` and `left` are trajectories; `edited` is turns changed or removed."""

    sink: str | None
    step: int | None
    label: str
    text: str
    entered: int
    left: int
    dropped: int = 0
    created: int = 0
    replaced: int = 0  # by rows made from them
    edited: int = 0
    predicate_null: int = 0
    null_key: int = 0
    unmatched: int = 0  # no row of a side table has their key
    failed: int = 0  # rows that could not be made
    because: str | None = None
    see: tuple[str, ...] = ()
    again: bool = False  # a sink repeats a step on what others made or changed since


@dataclass
class Ledger:
    """Grows while a strategy runs and its sinks are written; `table` is what is published."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    counts: list[StepCount] = field(default_factory=list)
    lineage: list[pl.DataFrame] = field(default_factory=list)

    def add(self, ids: pl.Series | Sequence[str], action: str, **columns: object) -> None:
        """Rows with the same action; a column is one value for all or a series with one each."""
        frame = pl.DataFrame({"traj_id": ids}, schema_overrides={"traj_id": pl.String})
        if frame.is_empty():
            return
        given = {
            name: value.alias(name) if isinstance(value, pl.Series) else pl.lit(value).alias(name)
            for name, value in {"action": action, **columns}.items()
        }
        full = frame.with_columns(
            (given[name] if name in given else pl.lit(None).alias(name)) for name in SCHEMA if name != "traj_id"
        )
        self.frames.append(full.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items()))

    def count(self, count: StepCount) -> None:
        if count.left != count.entered - count.dropped - count.replaced + count.created:
            raise AssertionError(f"conservation broken by step {count.label}: {count}")
        self.counts.append(count)

    def settle(self) -> None:
        """One frame from all: whoever asks many questions asks one."""
        self.frames = [pl.concat(self.frames)] if self.frames else []

    def table(self) -> pl.DataFrame:
        """All rows in one order, whatever order they came in."""
        whole = pl.concat(self.frames) if self.frames else pl.DataFrame(schema=SCHEMA)
        return whole.sort(
            ["traj_id", "sink", "step", "turn", "example_id", "action", "label", "reason", "survivor"], nulls_last=False
        )
