"""What all augmentations share: which runs make copies, what copies are called, what is said of those that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from curatec.compiler import plan
from curatec.runtime.steps import created
from curatec.runtime.steps.step import Place


def parents(runs: pl.DataFrame) -> pl.Series:
    """Positions of the rows that make copies: of all but the validation split."""
    validated = runs["split"] == "validation" if "split" in runs.columns else pl.repeat(False, runs.height, eager=True)
    return pl.select(pl.arg_where(~pl.lit(validated).fill_null(False))).to_series()


def copies(runs: pl.DataFrame, of: pl.Series, ordinals: pl.Series, place: Place) -> pl.DataFrame:
    """Rows for copies of some parents (positions in `runs`), as `Made.rows` wants them.

    Draws about a copy go by the step's operation and not by its label: a new name moves no row.
    """
    number = ordinals.cast(pl.String)
    suffixes = pl.select(pl.concat_str(pl.lit(f"#a{place.step.label}."), pl.lit(number))).to_series()
    drawn = pl.lit(f"#a{plan.digest(place.step.operation)[:8]}.")
    digests = pl.select(pl.concat_str(pl.lit(runs["digest"][of]), drawn, pl.lit(number))).to_series()
    return created.children(runs, of, suffixes, ordinals).with_columns(digests.alias("digest"))


def repeated(turns: pl.DataFrame, of: pl.Series) -> pl.DataFrame:
    """The turns of rows that have those of a parent each; `run` stays the parent's, `row` is the position in `of`."""
    rows = pl.DataFrame({"run": of}).with_columns(row=pl.int_range(pl.len(), dtype=pl.UInt32))
    joined = turns.drop("row").join(rows, on="run", how="inner").sort("row", "turn", maintain_order=True)
    return joined.select(turns.columns)


@dataclass
class Failures:
    """Copies that could not be made: how many, by parent and reason."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, parent: str, reason: str, n: int = 1) -> None:
        self.counts[parent, reason] += n

    def log(self, place: Place) -> int:
        """One ledger row for each parent and reason; how many copies they were together."""
        schema: Mapping[str, type[pl.DataType]] = {"id": pl.String, "reason": pl.String, "n": pl.Int64}
        rows = [(parent, reason, n) for (parent, reason), n in self.counts.items()]
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        place.ledger.add(frame["id"], "rejected", reason=frame["reason"], n=frame["n"], **place.common())
        return self.counts.total()
