"""Expressions as SQL inside one statement: what is joined, what is grouped, and how a column is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from curatec.compiler.core import Apply, Column, Const, Core, InTable, Path, Quantifier, Window, children
from curatec.compiler.duckdb.content import CONTENT, RENDERED
from curatec.compiler.duckdb.spelling import COMPARE, IS, Sql, call, literal, name, when
from curatec.compiler.duckdb.spelling import cast as typed
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
from curatec.compiler.frames import reads_path
from curatec.compiler.functions import FUNCTIONS, unsettled
from curatec.compiler.json_path import JsonPath
from curatec.compiler.types import Level, Type

_ONE = {Level.TRAJECTORY: "run", Level.TURN: "turn"}
Kind = tuple[Level, Level, int]  # of a common table: by, over, and on how many others it stands
_REPLIES = """replies as (
  -- the next turn of the assistant
  select
    turn_at,
    min(case when role = 'assistant' then turn_at end)
      over (partition by run order by turn_at rows between 1 following and unbounded following) as reply
  from turns
)"""
_CALLED = "called as (select distinct run, name from calls where name is not null)"


def lines(items: Sequence[str], indent: int) -> str:
    """One item a line."""
    return (",\n" + " " * indent).join(items)


@dataclass
class Builder:
    """What a statement reads, and its common tables."""

    setting: Setting
    level: Level
    asked: frozenset[Core]
    given: Mapping[Kind, int]  # the numbers of common tables
    reads: dict[Level, dict[str, Origin]] = field(default_factory=dict)
    beside: dict[str, tuple[str, str]] = field(default_factory=dict)
    own_tables: list[str] = field(default_factory=list)
    _grouped: dict[Kind, Grouped] = field(default_factory=dict)
    _names: dict[tuple[Level, Origin], str] = field(default_factory=dict)

    def column(self, level: Level, origin: Origin, alias: str) -> Sql:
        """A column of a table under a name of its own: DuckDB does not tell `Id` from `id`."""
        key = (level, origin)
        if key not in self._names:
            own = self.reads.setdefault(level, {})
            taken = {*(n.lower() for n in own), *PLACES.values()}
            stem, n = _stem(origin), 1
            while (word := stem if n == 1 else f"{stem}_{n}").lower() in taken:
                n += 1
            self._names[key], own[word] = word, origin
        return Sql(f"{alias}.{name(self._names[key])}")

    def table(self, level: Level) -> str:
        self.reads.setdefault(level, {})
        return TABLES[level]

    def needs(self, table: str) -> None:
        if table not in self.own_tables:
            self.own_tables.append(table)

    def grouped(self, by: Level, over: Level, stage: int) -> Grouped:
        key = (by, over, stage)
        if key not in self._grouped:
            number = self.given.get(key, 1)
            name_ = f"{TABLES[over]}_by_{_ONE[by]}" + (f"_{number}" if number > 1 else "")
            self._grouped[key] = Grouped(name_, by, over, Scope(self, over))
        return self._grouped[key]

    def numbers(self) -> dict[Kind, int]:
        """Among those of the same rows, by what they stand on."""
        kinds = sorted(self._grouped, key=lambda kind: kind[2])
        return {kind: sum(other[:2] == kind[:2] for other in kinds[: i + 1]) for i, kind in enumerate(kinds)}

    def tables(self) -> list[str]:
        """Common tables, each after those that it reads."""
        staged = sorted(self._grouped.items(), key=lambda item: item[0][2])
        return [*self.own_tables, *(grouped.sql() for _, grouped in staged)]


def _stem(origin: Origin) -> str:
    match origin:
        case Stored(name=text):
            return text
        case Extracted(path=path, kind=kind):
            return f"{path} (kind)" if kind else str(path)
        case Before(core=Window(function=function)):
            return f"{function}_over"
        case Before(core=core) if is_key(core):
            return "hash"
    return "number"


@dataclass
class Grouped:
    """A common table with one row for each row of `by` that has any row of `over`."""

    name: str
    by: Level
    over: Level
    scope: Scope
    columns: dict[str, str] = field(default_factory=dict)  # aggregate → its name

    def column(self, aggregate: Sql | str, stem: str) -> str:
        """The name of an aggregate; equal ones are one."""
        text = str(aggregate)
        if text not in self.columns:
            alike = sum(own == stem or own.startswith(f"{stem}_") for own in self.columns.values())
            self.columns[text] = f"{stem}_{alike + 1}" if alike else stem
        return self.columns[text]

    def sql(self) -> str:
        place = f"{TABLES[self.over]}.{PLACES[self.by]}"
        values = [place, *(f"{text} as {name(word)}" for text, word in self.columns.items())]
        source = self.scope.source().replace("\n", "\n  ")
        return f"{self.name} as (\n  select\n    {lines(values, 4)}\n  {source}\n  group by {place}\n)"


@dataclass
class Scope:
    """Expressions that stand at one level: the table of the level, and what is joined to it by position."""

    builder: Builder
    level: Level
    joins: dict[str, str] = field(default_factory=dict)

    def source(self) -> str:
        return "\n".join([f"from {self.builder.table(self.level)}", *self.joins.values()])

    def join(self, alias: str, clause: Callable[[], str]) -> str:
        if alias not in self.joins:
            self.joins[alias] = clause()
        return alias

    def at(self, level: Level) -> str:
        """The table of this level, or of one further out."""
        table, own = self.builder.table(level), TABLES[self.level]
        if level is self.level:
            return table
        place = PLACES[level]
        return self.join(table, lambda: f"join {table} on {table}.{place} = {own}.{place}")

    def neighbour(self, via: str) -> str:
        """The turn that stands in some place from the turn of this scope."""
        own = self.at(Level.TURN)
        builder = self.builder

        def clause() -> str:
            match via:
                case "prev" | "next":
                    step = "- 1" if via == "prev" else "+ 1"
                    return f"left join turns as {via} on {via}.run = {own}.run and {via}.turn_at = {own}.turn_at {step}"
                case "caller":
                    turn = builder.column(Level.TURN, Stored("turn"), "caller")
                    call_turn = builder.column(Level.TURN, Stored("call_turn"), own)
                    return f"left join turns as caller on caller.run = {own}.run and {turn} = {call_turn}"
            builder.column(Level.TURN, Stored("role"), own)
            builder.needs(_REPLIES)
            self.join("replies", lambda: f"left join replies on replies.turn_at = {own}.turn_at")
            return "left join turns as reply on reply.turn_at = replies.reply"

        return self.join(via, clause) if via else own

    def grouped(self, by: Level, over: Level, stage: int, fill: Callable[[Grouped], str], via: str = "") -> Sql:
        """A value of a common table, for the row of `by` that this one belongs to, or for a neighbour; null where the
        table has no row for it."""
        table = self.builder.grouped(by, over, stage)
        column = fill(table)
        alias = f"{via}_{table.name}" if via else table.name
        shown = f"{table.name} as {alias}" if via else table.name
        place, row = PLACES[by], via or self.at(self.level)
        self.join(alias, lambda: f"left join {shown} on {alias}.{place} = {row}.{place}")
        return Sql(f"{alias}.{name(column)}")

    # ---- expressions ----

    def lower(self, core: Core) -> Sql:
        builder = self.builder
        if core in builder.setting.known:
            return builder.column(Level.TRAJECTORY, Stored(builder.setting.known[core]), self.at(Level.TRAJECTORY))
        inline = is_sum(core) and self.level is builder.level and core in builder.asked
        if comes_before(core) and not inline:
            return builder.column(self.level, Before(core), self.at(self.level))
        return self.value(core)

    def value(self, core: Core) -> Sql:
        """Its own SQL, whether or not it is known or comes before others."""
        match core:
            case Const():
                return literal(core)
            case Column():
                return self._column(core)
            case Path():
                return self._path(core)
            case Quantifier():
                return self._quantifier(core)
            case InTable():
                return self._in_table(core)
            case Apply():
                value = self._apply(core)
                return call("settled", value) if unsettled(core) else value
        raise AssertionError(core)

    def _open(self, core: Core) -> Sql:
        """What the lowerings give, not settled."""
        known = core in self.builder.setting.known
        if not isinstance(core, Apply) or known or comes_before(core) or not unsettled(core):
            return self.lower(core)
        return self._apply(core)

    def _apply(self, core: Apply) -> Sql:
        special = self._json_state(core)
        if special is not None:
            return special
        entry = FUNCTIONS[core.function]
        assert entry.duckdb is not None, core.function
        open_ = entry.hands_on if core.type is Type.FLOAT else 0
        args = [(self._open if i < open_ else self.lower)(a) for i, a in enumerate(core.args)]
        return cast("Sql", entry.duckdb(args, dict(core.options), [a.type for a in core.args]))

    def _json_state(self, core: Apply) -> Sql | None:
        """What is asked of the kind, as in `Frames`."""
        if core.function not in ("is_null", "is_empty", "as_int"):
            return None
        argument = core.args[0]
        if not reads_path(argument) or (argument.type is not Type.JSON and core.function != "as_int"):
            return None
        kind = self._kind(argument)
        if core.function == "is_null":
            return Sql(f"{kind} = 'null'", COMPARE)
        text = self.lower(argument)
        if core.function == "as_int":
            return call("json_int", text, kind)
        return Sql(f"{kind} in ('null', 'empty') or coalesce({text}, '-') = ''", 1)

    def _column(self, core: Column) -> Sql:
        builder = self.builder
        match core.level:
            case Level.TRAJECTORY:
                if core.name in CONTENT and not (builder.setting.rendered and core.name in RENDERED):
                    return self._content(core.name)
                return builder.column(Level.TRAJECTORY, Stored(core.name), self.at(Level.TRAJECTORY))
            case Level.TURN:
                return self.turn_column(core.name, core.via)
            case Level.CALL if core.name in ("result", "is_error"):
                calls = self.at(Level.CALL)
                at = builder.column(Level.CALL, Stored("result_at"), calls)
                result = self.join("result", lambda: f"left join turns as result on result.turn_at = {at}")
                stored = "content" if core.name == "result" else "is_error"
                builder.table(Level.TURN)
                return builder.column(Level.TURN, Stored(stored), result)
            case Level.TOOL if core.name == "used":
                tools = self.at(Level.TOOL)
                own = builder.column(Level.TOOL, Stored("name"), tools)
                builder.column(Level.CALL, Stored("name"), "calls")
                builder.needs(_CALLED)
                self.join("called", lambda: f"left join called on called.run = {tools}.run and called.name = {own}")
                return Sql("called.name is not null", IS)
        return builder.column(core.level, Stored(core.name), self.at(core.level))

    def turn_column(self, column: str, via: str = "") -> Sql:
        turn = self.neighbour(via)
        if column != "tokens" or self.builder.setting.rendered:
            return self.builder.column(Level.TURN, Stored(column), turn)

        def of_calls(calls: Grouped) -> str:
            own = {n: calls.scope.builder.column(Level.CALL, Stored(n), "calls") for n in _SAID}
            args = call("coalesce", own["args_json"], own["args_raw"])
            return calls.column(f"sum(estimated({own['name']}) + estimated({args}))::BIGINT", "tokens")

        told = [self.builder.column(Level.TURN, Stored(n), turn) for n in ("content", "reasoning")]
        calls = self.grouped(Level.TURN, Level.CALL, 1, of_calls, via)
        total = Sql(f"estimated({told[0]}) + estimated({told[1]}) + coalesce({calls}, 0)", 7)
        return when(f"{turn}.turn_at is not null", total) if via else total

    def _content(self, column: str) -> Sql:
        """What a trajectory says now (semantics 2), from its turns or its calls."""
        made = CONTENT[column]
        stage = 2 if column in RENDERED else 1

        def fill(table: Grouped) -> str:
            scope = table.scope
            return table.column(made.aggregate(lambda n: scope.lower(Column(made.over, n, Type.TEXT))), column)

        return made.finish(self.grouped(Level.TRAJECTORY, made.over, stage, fill))

    def _extracted(self, core: Path, *, kind: bool) -> Sql:
        level = core.base.level
        return self.builder.column(level, Extracted(JsonPath(core.steps), kind), self.at(level))

    def _path(self, core: Path) -> Sql:
        text, kind = self._extracted(core, kind=False), self._extracted(core, kind=True)
        match core.type:
            case Type.FLOAT:
                return call("json_number", text, kind)
            case Type.INT:
                return call("json_whole", text, kind)
            case Type.BOOL:
                return when(f"{kind} = 'bool'", f"{text} = 'true'")
        return text

    def _kind(self, core: Core) -> Sql:
        """What stands at a path: null, string, number, …"""
        if isinstance(core, Path):
            return self._extracted(core, kind=True)
        assert isinstance(core, Quantifier), core
        assert core.pick is not None
        return call("coalesce", self._picked(core, lambda scope: scope._kind(cast("Core", core.pick))), "'null'")

    def _in_table(self, core: InTable) -> Sql:
        table = f"{core.table}.{core.column}"
        self.builder.beside[table] = (core.table, core.column)
        value = self.lower(core.value)
        if core.value.type.is_number:  # an int may stand in a column of floats
            value = typed(value, "DOUBLE")
        known = f"{value.inside(COMPARE + 1)} is not null"  # where the list is empty, null is in it as little as any
        return when(known, f"{value.inside(COMPARE + 1)} in (select value from {name(table)})")

    # ---- quantifiers ----

    def _quantifier(self, core: Quantifier) -> Sql:
        if core.pick is not None:
            pick = core.pick
            return self._picked(core, lambda scope: scope.lower(pick))
        if core.kind == "all" and core.where is None:
            return Sql("true")
        stage = _depth(core)

        def fill(table: Grouped) -> str:
            where = None if core.where is None else table.scope.lower(core.where)
            if core.kind == "all":
                assert where is not None
                return table.column(f"count(*) filter (where ({where}) is not true)", "against")
            return table.column("count(*)" if where is None else f"count(*) filter (where {where})", "counted")

        counted = self.grouped(core.level, core.over, stage, fill)
        number = f"coalesce({counted}, 0)"
        match core.kind:
            case "any":
                return Sql(f"{number} > 0", COMPARE)
            case "none" | "all":
                return Sql(f"{number} = 0", COMPARE)
        return Sql(number)

    def _picked(self, core: Quantifier, value: Callable[[Scope], Sql]) -> Sql:
        """The value of the first or last row that passes, also where it is null."""
        function = "arg_min_null" if core.kind == "first" else "arg_max_null"

        def fill(table: Grouped) -> str:
            scope = table.scope
            where = "" if core.where is None else f" filter (where {scope.lower(core.where)})"
            place = f"{TABLES[core.over]}.{PLACES[core.over]}"
            return table.column(f"{function}({value(scope)}, {place}){where}", core.kind)

        return self.grouped(core.level, core.over, _depth(core), fill)


_SAID = ("name", "args_json", "args_raw")


def _depth(core: Core) -> int:
    """How many common tables stand one upon the other: what is grouped at one depth reads only lower ones."""
    below = max(map(_depth, children(core)), default=0)
    match core:
        case Quantifier():
            return below + 1
        case Column(level=Level.TRAJECTORY, name=word) if word in CONTENT:
            return 2 if word in RENDERED else 1
        case Column(level=Level.TURN, name="tokens"):
            return 1
    return below
