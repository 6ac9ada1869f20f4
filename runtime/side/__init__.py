"""Side data of a plan: tables that are joined and asked, test sets that are kept out. Read once, before any step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curatec.compiler import plan
from curatec.runtime.side.sealed import Sealed, read_sealed
from curatec.runtime.side.tables import Table, read_table

if TYPE_CHECKING:
    from curatec.runtime.state import State

__all__ = ["Sealed", "Side", "Table", "held_out", "read_side", "side_of"]


@dataclass(frozen=True)
class Side:
    tables: Mapping[str, Table] = field(default_factory=dict)
    sealed: Mapping[str, Sealed] = field(default_factory=dict)

    def column(self, table: str, column: str) -> pl.Series:
        """The distinct values of a column, nulls left out."""
        return self.tables[table].frame[column].drop_nulls().unique()


def read_side(whole: plan.Plan, project: Path, allowed: tuple[Path, ...]) -> Side:
    """Every table and test set of a plan. Raises CuratecError (C06…)."""
    return Side(
        {table.name: read_table(table, project, allowed) for table in whole.tables},
        {sealed.name: read_sealed(sealed, project, allowed) for sealed in whole.sealed},
    )


def side_of(state: State) -> Side:
    """The side data that a state was given; a plan without any may run without."""
    return state.side if isinstance(state.side, Side) else Side()


def held_out(rows: pl.DataFrame, side: Side) -> pl.Series:
    """Which trajectories are runs of a sealed task: `task_id` or `task` is the id of an item of any test set."""
    found = [sealed.items["id"].drop_nulls() for sealed in side.sealed.values()]
    ids = pl.concat(found) if found else pl.Series([], dtype=pl.String)
    return (rows["task_id"].is_in(ids.implode()) | rows["task"].is_in(ids.implode())).fill_null(False)
