"""Where every trajectory of a sink went: ledger rows and the sums of `Written`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curatec.runtime.ledger import LINEAGE, Ledger

OPERATOR = "window"  # of rows that a sink makes: parts of a run that is too long

FATES: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,  # of a run, or of a row that a sink made
    "action": pl.String,  # kept, dropped, rejected, edited or created
    "reason": pl.String,
    "key": pl.String,  # more about why it was lost; of a created row, the run that it is a part of
    "n": pl.Int64,  # messages that a row leaves out; of a created row, its number
    "split": pl.String,  # this and the next two of what is kept
    "n_tokens": pl.Int64,
    "n_trained": pl.Int64,
}
"""What became of one run or row."""


def fates(action: str, told: pl.DataFrame) -> pl.DataFrame:
    """Rows of FATES with one action; columns that are not told are null."""
    given = {"action": pl.lit(action), **{name: pl.col(name) for name in told.columns}}
    return told.select(given.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in FATES.items())


@dataclass
class Account:
    """Collects while a sink is written, one by one or as frames; `close` adds the ledger rows, whose order never
    matters."""

    _told: list[dict[str, Any]] = field(default_factory=list)
    _frames: list[pl.DataFrame] = field(default_factory=list)

    def take(self, fates: pl.DataFrame) -> None:
        """Rows of FATES."""
        self._frames.append(fates)

    def drop(self, id_: str, rule: str, detail: str | None = None) -> None:
        self._told.append({"id": id_, "action": "dropped", "reason": rule, "key": detail})

    def reject(self, id_: str, reason: str, detail: str | None = None) -> None:
        """`detail`: what else is known of it; a refusal of a template brings its own."""
        detail = detail or getattr(reason, "detail", None)
        self._told.append({"id": id_, "action": "rejected", "reason": str(reason), "key": detail or None})

    def edit(self, id_: str, reason: str, n: int) -> None:
        self._told.append({"id": id_, "action": "edited", "reason": reason, "n": n})

    def make(self, row: str, run: str, number: int) -> None:
        """A row made from a run, which it replaces with others of its kind."""
        self._told.append({"id": row, "action": "created", "reason": OPERATOR, "key": run, "n": number})

    def keep(self, id_: str, split: str, tokens: int, trained: int) -> None:
        kept = {"id": id_, "action": "kept", "split": split, "n_tokens": tokens, "n_trained": trained}
        self._told.append(kept)

    @property
    def fates(self) -> pl.DataFrame:
        """All that was told."""
        return pl.concat([pl.DataFrame(self._told, schema=FATES, orient="row"), *self._frames])

    def close(self, ledger: Ledger, sink: str) -> Sums:
        """Adds the ledger rows. Nothing may be told afterwards."""
        told = self.fates
        of = {str(key[0]): own for key, own in told.partition_by("action", as_dict=True).items()}
        kept, dropped, rejected, edited, made = (
            of.get(action, told.clear()) for action in ("kept", "dropped", "rejected", "edited", "created")
        )
        ledger.add(kept["id"], "kept", example_id=kept["id"], sink=sink)
        for action, lost in (("dropped", dropped), ("rejected", rejected)):
            ledger.add(lost["id"], action, sink=sink, reason=lost["reason"], key=lost["key"])
        edits = edited.group_by("id", "reason").agg(pl.col("n").sum())
        ledger.add(edits["id"], "edited", sink=sink, reason=edits["reason"], n=edits["n"])
        cut = made.group_by("key").agg(n=pl.len())
        ledger.add(cut["key"], "replaced", sink=sink, reason=OPERATOR, n=cut["n"])
        ledger.add(made["id"], "created", sink=sink, reason=OPERATOR, key=made["key"])
        lineage = {"out": pl.col("id"), "in": pl.col("key"), "operator": pl.lit(OPERATOR), "ordinal": pl.col("n")}
        return Sums(
            _counts(kept, "split"),
            _counts(dropped, "reason"),
            _counts(rejected, "reason"),
            created=made.height,
            replaced=cut.height,
            tokens=int(kept["n_tokens"].sum()),
            trained_tokens=int(kept["n_trained"].sum()),
            lineage=made.select(lineage[name].cast(dtype).alias(name) for name, dtype in LINEAGE.items()),
        )


def _counts(rows: pl.DataFrame, by: str) -> dict[str, int]:
    """How many there are of each; keys sorted, so that the manifest is stable."""
    return dict(rows.group_by(by).len().sort(by).iter_rows())


@dataclass(frozen=True)
class Sums:
    """What `Written` says of rows: by split, dropped by rule, rejected by reason; rows that the sink made of runs."""

    rows: dict[str, int]
    dropped: dict[str, int]
    rejected: dict[str, int]
    created: int
    replaced: int
    tokens: int
    trained_tokens: int
    lineage: pl.DataFrame
