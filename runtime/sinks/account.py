"""Where every trajectory of a sink went: ledger rows and the sums of `Written`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from curatec.runtime.ledger import LINEAGE, Ledger

OPERATOR = "window"  # of rows that a sink makes: parts of a run that is too long


@dataclass
class Account:
    """Collects while a sink is written; `close` adds the ledger rows, whose order never matters."""

    kept: list[str] = field(default_factory=list)
    dropped: dict[str, list[str]] = field(default_factory=dict)
    rejected: dict[str, list[str]] = field(default_factory=dict)
    edited: dict[tuple[str, str], int] = field(default_factory=dict)  # (id, reason) → messages that a row leaves out
    made: list[tuple[str, str, int]] = field(default_factory=list)  # rows that a run was cut into: (row, run, number)
    details: dict[str, str] = field(default_factory=dict)  # id → more about why it was lost
    rows: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    trained_tokens: int = 0

    def drop(self, id_: str, rule: str, detail: str | None = None) -> None:
        self._lose(self.dropped, id_, rule, detail)

    def reject(self, id_: str, reason: str, detail: str | None = None) -> None:
        """`detail`: what else is known of it; a refusal of a template brings its own."""
        self._lose(self.rejected, id_, reason, detail)

    def _lose(self, lost: dict[str, list[str]], id_: str, reason: str, detail: str | None) -> None:
        lost.setdefault(str(reason), []).append(id_)
        if detail := detail or getattr(reason, "detail", None):
            self.details[id_] = detail

    def edit(self, id_: str, reason: str, n: int) -> None:
        self.edited[id_, reason] = self.edited.get((id_, reason), 0) + n

    def make(self, row: str, run: str, number: int) -> None:
        """A row made from a run, which it replaces with others of its kind."""
        self.made.append((row, run, number))

    def keep(self, id_: str, split: str, tokens: int, trained: int) -> None:
        self.kept.append(id_)
        self.rows[split] += 1
        self.tokens += tokens
        self.trained_tokens += trained

    def close(self, ledger: Ledger, sink: str) -> None:
        kept = _ids(self.kept)
        ledger.add(kept, "kept", example_id=kept, sink=sink)
        for action, lost in (("dropped", self.dropped), ("rejected", self.rejected)):
            for reason, ids in sorted(lost.items()):
                details = pl.Series([self.details.get(id_) for id_ in ids], dtype=pl.String)
                ledger.add(_ids(ids), action, sink=sink, reason=reason, key=details)
        for reason in sorted({reason for _, reason in self.edited}):
            left = {id_: n for (id_, own), n in self.edited.items() if own == reason}
            ledger.add(_ids(left), "edited", sink=sink, reason=reason, n=pl.Series(left.values(), dtype=pl.Int64))
        runs = Counter(run for _, run, _ in self.made)
        ledger.add(_ids(runs), "replaced", sink=sink, reason=OPERATOR, n=pl.Series(runs.values(), dtype=pl.Int64))
        parents = _ids(run for _, run, _ in self.made)
        ledger.add(_ids(row for row, _, _ in self.made), "created", sink=sink, reason=OPERATOR, key=parents)

    @property
    def replaced(self) -> int:
        """Runs that rows were made from."""
        return len({run for _, run, _ in self.made})

    @property
    def lineage(self) -> pl.DataFrame:
        rows = [(row, run, OPERATOR, number) for row, run, number in self.made]
        return pl.DataFrame(rows, schema=LINEAGE, orient="row")

    @property
    def sums(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Rows by split, dropped by rule, rejected by reason; keys sorted, so that the manifest is stable."""
        return dict(sorted(self.rows.items())), _counts(self.dropped), _counts(self.rejected)


def _ids(ids: Iterable[str]) -> pl.Series:
    return pl.Series(list(ids), dtype=pl.String)


def _counts(ids: dict[str, list[str]]) -> dict[str, int]:
    return {name: len(found) for name, found in sorted(ids.items())}
