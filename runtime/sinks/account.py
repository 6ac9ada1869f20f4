"""Where every trajectory of a sink went: ledger rows and the sums of `Written`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from curatec.runtime.ledger import Ledger


@dataclass
class Account:
    """Collects while a sink is written; `close` adds the ledger rows, whose order never matters."""

    kept: list[str] = field(default_factory=list)
    dropped: dict[str, list[str]] = field(default_factory=dict)
    rejected: dict[str, list[str]] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)  # id → messages left out behind the last one that is trained
    rows: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    trained_tokens: int = 0

    def drop(self, id_: str, rule: str) -> None:
        self.dropped.setdefault(rule, []).append(id_)

    def reject(self, id_: str, reason: str) -> None:
        self.rejected.setdefault(reason, []).append(id_)

    def keep(self, id_: str, split: str, tokens: int, trained: int) -> None:
        self.kept.append(id_)
        self.rows[split] += 1
        self.tokens += tokens
        self.trained_tokens += trained

    def close(self, ledger: Ledger, sink: str) -> None:
        kept = _ids(self.kept)
        ledger.add(kept, "kept", example_id=kept, sink=sink)
        for rule, ids in sorted(self.dropped.items()):
            ledger.add(_ids(ids), "dropped", sink=sink, reason=rule)
        for reason, ids in sorted(self.rejected.items()):
            ledger.add(_ids(ids), "rejected", sink=sink, reason=reason)
        cut = {id_: n for id_, n in self.cut.items() if n}
        ledger.add(
            _ids(cut), "edited", sink=sink, reason="after_last_trained", n=pl.Series(cut.values(), dtype=pl.Int64)
        )

    @property
    def sums(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Rows by split, dropped by rule, rejected by reason; keys sorted, so that the manifest is stable."""
        return dict(sorted(self.rows.items())), _counts(self.dropped), _counts(self.rejected)


def _ids(ids: Iterable[str]) -> pl.Series:
    return pl.Series(list(ids), dtype=pl.String)


def _counts(ids: dict[str, list[str]]) -> dict[str, int]:
    return {name: len(found) for name, found in sorted(ids.items())}
