"""What the report's tables say of a set of runs: outcomes, failures, sources, models, tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from curatec.compiler.fields import OUTCOMES

ROWS = 12  # categories that are listed; the others are summed
_UNKNOWN = "not known"
_NONE = "none"
_OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Category:
    """One value, and how many runs have it at each stage (None: it does not exist there yet)."""

    name: str
    value: bool  # it is a value of the column, not one of the words for what has none
    counts: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Composition:
    title: str
    noun: str
    totals: tuple[int | None, ...]
    rows: tuple[Category, ...]


def compositions(stages: Mapping[str | None, pl.DataFrame]) -> list[Composition]:
    """One table for each column that says something: a column with one value for all is left out, outcome apart."""
    made = [_composition("Outcome", "outcome", "outcome", stages, OUTCOMES)]
    if any("failure" in rows.columns for rows in stages.values()):
        made.append(_composition("Failure family", "family", "failure", stages, (), missing=_NONE))
    made += [
        _composition(title, title.lower(), column, stages, ())
        for title, column in (("Source", "source"), ("Model", "model"), ("Domain", "domain"))
    ]
    return [c for c in made if len(c.rows) > 1 or c.noun in ("outcome", "family")]


def _composition(
    title: str,
    noun: str,
    column: str,
    stages: Mapping[str | None, pl.DataFrame],
    order: Sequence[str],
    missing: str = _UNKNOWN,
) -> Composition:
    found = [_counted(rows, column) for rows in stages.values()]
    names = _names(found, order)
    listed, rest = names[:ROWS], names[ROWS:]
    rows = [Category(name, True, tuple(None if f is None else f.get(name, 0) for f in found)) for name in listed]
    if rest:
        rows.append(
            Category(
                f"{len(rest)} {_OTHERS}",
                False,
                tuple(None if f is None else sum(f.get(n, 0) for n in rest) for f in found),
            )
        )
    if any(f and f.get(None) for f in found):
        rows.append(Category(missing, False, tuple(None if f is None else f.get(None, 0) for f in found)))
    return Composition(title, noun, tuple(None if f is None else sum(f.values()) for f in found), tuple(rows))


def _counted(rows: pl.DataFrame, column: str) -> dict[str | None, int] | None:
    if column not in rows.columns:
        return None
    return dict(rows[column].value_counts().iter_rows())


def _names(found: Sequence[Mapping[str | None, int] | None], order: Sequence[str]) -> list[str]:
    """In the given order where there is one, then the most frequent first: at `from`, then further on."""
    counts = [f for f in found if f is not None]
    names = {name for f in counts for name in f if name is not None}
    frequent = sorted(names - set(order), key=lambda name: ([-f.get(name, 0) for f in counts], name))
    return [*(name for name in order if name in names), *frequent]


@dataclass(frozen=True, slots=True)
class Tasks:
    """How runs share tasks at one stage."""

    runs: int
    tasks: int
    median: float | None
    most: int | None
    solved: int  # some run succeeds
    unsolved: int  # none does


def tasks(rows: pl.DataFrame) -> Tasks:
    each = rows.group_by("task").agg(n=pl.len(), solved=pl.col("success").fill_null(False).any())
    median, most = each["n"].median(), each["n"].max()
    solved = int(each["solved"].sum())
    return Tasks(
        runs=rows.height,
        tasks=each.height,
        median=median if isinstance(median, float) else None,
        most=most if isinstance(most, int) else None,
        solved=solved,
        unsolved=each.height - solved,
    )
