"""Where a sink is written: what every writer gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from curatec.compiler import plan
from curatec.runtime.execute import Executed, sorted_rows
from curatec.runtime.ledger import Ledger
from curatec.runtime.state import State

# Columns of `Place.placed`: names that no spec can give one.
PLACE = "sink:place"  # the position in the order of writing, times WINDOWS
SPLIT = "sink:split"
WINDOWS = 1 << 20  # more than the rows that any run is cut into: they stand where their run would


@dataclass(frozen=True)
class Place:
    """`state` is the end of the branch without what no sink may take; `folder` is the sink's own; `scratch` is empty at
    first and removed afterwards."""

    executed: Executed
    branch: plan.Branch
    state: State
    folder: Path
    scratch: Path

    @property
    def name(self) -> str:
        return self.branch.name

    @property
    def ledger(self) -> Ledger:
        return self.executed.ledger

    @property
    def sorted(self) -> bool:
        """Whether the spec gives the order, so that a trainer must not shuffle."""
        return bool(self.state.order)

    @cached_property
    def placed(self) -> State:
        """The state with each row's PLACE and SPLIT among its columns, for work on one part."""
        order = sorted_rows(self.state).select("id", (pl.int_range(pl.len(), dtype=pl.UInt64) * WINDOWS).alias(PLACE))
        split = pl.col("split") if "split" in self.state.rows.columns else pl.lit("train")
        rows = self.state.rows.with_columns(split.alias(SPLIT))
        return replace(self.state, rows=rows.join(order, on="id", how="left", maintain_order="left"))

    @cached_property
    def positions(self) -> dict[str, int]:
        """id → place in the order of writing, from 0; rows that a rule drops leave gaps."""
        return {id_: i for i, id_ in enumerate(sorted_rows(self.state)["id"])}

    @cached_property
    def splits(self) -> dict[str, str]:
        """id → train or validation; without a `split` all is train."""
        rows = self.state.rows
        ids = rows["id"].to_list()
        return dict(zip(ids, rows["split"].to_list() if "split" in rows.columns else ["train"] * len(ids), strict=True))

    def steps(self) -> list[plan.Step]:
        """All steps that the rows went through."""
        return [step for _, step in self.executed.plan.passed(self.branch)]

    def named(self, files: Sequence[str]) -> tuple[str, ...]:
        """Files of the sink, relative to OUT."""
        return tuple(f"{self.name}/{file}" for file in files)
