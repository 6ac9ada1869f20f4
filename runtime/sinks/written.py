"""What a sink leaves behind, for manifest, card and report."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from curatec.runtime.ledger import LINEAGE


@dataclass(frozen=True)
class Written:
    """One sink's account. entered + created = rows + dropped + replaced + rejected (semantics 28)."""

    name: str
    files: tuple[str, ...]  # relative to OUT, in the order of writing
    rows: dict[str, int]  # split → rows written
    entered: int
    dropped: dict[str, int] = field(default_factory=dict)  # rule of the sink → trajectories
    rejected: dict[str, int] = field(default_factory=dict)  # reason → trajectories that the target cannot express
    created: int = 0
    replaced: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    exact: bool = False  # tokens are a tokenizer's own, not estimated
    lineage: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LINEAGE))
    notes: tuple[str, ...] = ()  # for the card: what a reader of the files must know

    def __post_init__(self) -> None:
        out, lost = sum(self.rows.values()), sum(self.dropped.values()) + sum(self.rejected.values())
        if self.entered + self.created != out + lost + self.replaced:
            raise AssertionError(f"conservation broken by sink {self.name}: {self}")
