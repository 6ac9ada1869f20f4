"""Core → SQL over the four tables of one batch.

A batch is `runs`, `turns`, `calls` and `tools`. Each has the position of its rows (`run`, `turn_at`, `call_at`,
`tool_at`) and of the rows that they belong to. A statement gives a value for each row of a level and asked expression.

Quantifiers are flattened (semantics 8): all that is counted or picked of the turns of a run becomes one `group by`, a
common table named by what it holds (`turns_by_run`), and is joined back by position. Some values come before the
statement that reads them, as columns of its tables: what a kernel makes (hashes, JSON paths, texts of calls), windows,
and whole-number arithmetic, because a number that does not fit must fail wherever it stands (semantics 15), while SQL
leaves out what a `case` does not choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from curatec.compiler.core import Apply, Core, Quantifier, Window, children
from curatec.compiler.duckdb.scope import Builder, Kind, Scope, lines
from curatec.compiler.duckdb.spelling import name
from curatec.compiler.duckdb.tables import (
    PLACES,
    TABLES,
    Before,
    Extracted,
    Origin,
    Setting,
    Stored,
    comes_before,
    is_key,
    is_sum,
)
from curatec.compiler.types import Level

__all__ = ["PLACES", "TABLES", "Before", "Extracted", "Origin", "Setting", "Statement", "Stored", "is_key", "plan"]


@dataclass(frozen=True)
class Statement:
    """One `select`: its columns `value_0`, … are the values of `cores`, in the order of the rows of `level`.

    `reads`: for each table the columns that it needs besides positions, by their name in SQL. `beside`: columns of side
    tables, by the name of the table that holds one as `value`.
    """

    level: Level
    cores: tuple[Core, ...]
    sql: str
    reads: Mapping[Level, Mapping[str, Origin]]
    beside: Mapping[str, tuple[str, str]]


def plan(
    cores: Sequence[Core], level: Level, setting: Setting, done: Callable[[Level, Core], bool] = lambda _, __: False
) -> Iterator[Statement | tuple[Level, Core]]:
    """What to compute for these values, in order: statements, and windows and hashes, whose arguments come before.

    `done` says what is there already; it is asked again after each step.
    """
    missing = [core for core in dict.fromkeys(cores) if core not in setting.known and not done(level, core)]
    direct: list[Core] = []
    for core in missing:
        if isinstance(core, Window):
            argument = () if core.argument is None else (core.argument,)
            yield from plan((*core.keys, *argument), level, setting, done)
            yield level, core
        elif isinstance(core, Apply) and is_key(core):
            yield from plan(core.args, level, setting, done)
            yield level, core
        else:
            direct.append(core)
    if direct:
        for below, leaves in _before(direct, level, setting).items():
            yield from plan(leaves, below, setting, done)
        yield statement(direct, level, setting)


def _before(asked: Sequence[Core], level: Level, setting: Setting) -> dict[Level, list[Core]]:
    """What has to be computed before, by level. Sums that stand in sums are computed with them."""
    found: dict[Level, list[Core]] = {}

    def look(core: Core, at: Level, *, top: bool) -> None:
        if core in setting.known:
            return
        if not top and comes_before(core) and not (at is level and core in asked):
            found.setdefault(at, []).append(core)
            if not is_sum(core):
                return
        for child in children(core):
            look(child, core.over if isinstance(core, Quantifier) else at, top=False)

    for core in asked:
        look(core, level, top=True)
    return found


def statement(cores: Sequence[Core], level: Level, setting: Setting) -> Statement:
    """The statement for some expressions of a level. What comes before them is there."""
    asked = tuple(cores)
    # Tables of one kind are numbered from below; which there are is only known after a first attempt.
    builder = _written(asked, level, setting, {})[0]
    builder, text = _written(asked, level, setting, builder.numbers())
    return Statement(level, asked, text, builder.reads, builder.beside)


def _written(
    asked: tuple[Core, ...], level: Level, setting: Setting, numbers: Mapping[Kind, int]
) -> tuple[Builder, str]:
    builder = Builder(setting, level, frozenset(asked), numbers)
    scope = Scope(builder, level)
    values = [f"{scope.lower(core)} as {name(setting.names.get(core, f'value_{i}'))}" for i, core in enumerate(asked)]
    source = scope.source()
    tables = builder.tables()
    head = f"with {', '.join(tables)}\n" if tables else ""
    return builder, f"{head}select\n  {lines(values, 2)}\n{source}\norder by {TABLES[level]}.{PLACES[level]}"
