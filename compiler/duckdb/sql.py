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

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from curatec.compiler.core import Core, Quantifier, Window, children
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
    cores: Sequence[Core], level: Level, setting: Setting, done: Container[tuple[Level, Core]] = ()
) -> Iterator[Statement | tuple[Level, Core]]:
    """What to compute for these values, in order: statements, and windows and hashes, whose arguments come before.

    `done` is what is there already. No values: what recursion holds is let go of late, and values are large.
    """
    told: set[tuple[Level, Core]] = set()

    def there(at: Level, core: Core) -> bool:
        return core in setting.known or (at, core) in told or (at, core) in done

    def ask(asked: Sequence[Core], at: Level) -> Iterator[Statement | tuple[Level, Core]]:
        direct: list[Core] = []
        for core in dict.fromkeys(asked):
            if there(at, core):
                continue
            if isinstance(core, Window) or is_key(core):
                yield from ask(list(children(core)), at)
                yield at, core
                told.add((at, core))
            else:
                direct.append(core)
        for below, leaves in _before(direct, at, setting):
            yield from ask(leaves, below)
        left = [core for core in direct if not there(at, core)]
        if left:
            yield statement(left, at, setting)
            told.update((at, core) for core in left)

    yield from ask(cores, level)


def _before(asked: Sequence[Core], level: Level, setting: Setting) -> list[tuple[Level, list[Core]]]:
    """What has to be computed before, by level. Sums come last, and those that stand in others with them."""
    found: dict[tuple[bool, Level], list[Core]] = {}

    def look(core: Core, at: Level, *, top: bool) -> None:
        if core in setting.known:
            return
        if not top and comes_before(core) and not (is_sum(core) and at is level and core in asked):
            found.setdefault((is_sum(core), at), []).append(core)
            if not is_sum(core):
                return  # what its parts need is asked for when it is
        for child in children(core):
            look(child, core.over if isinstance(core, Quantifier) else at, top=False)

    for core in asked:
        look(core, level, top=True)
    return [(at, found[of_sums, at]) for of_sums, at in sorted(found, key=lambda kind: kind[0])]


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
    values = [f"{scope.value(core)} as {name(setting.names.get(core, f'value_{i}'))}" for i, core in enumerate(asked)]
    source = scope.source()
    tables = builder.tables()
    head = f"with {', '.join(tables)}\n" if tables else ""
    return builder, f"{head}select\n  {lines(values, 2)}\n{source}\norder by {TABLES[level]}.{PLACES[level]}"
