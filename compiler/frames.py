"""Core → polars, over the long tables of one batch of trajectories.

`Frames` holds one batch: its runs, their turns, the turns' calls and the tools shown. `series(core, level)` gives one
value for each row of a level. Quantifiers are lowered by flattening: the condition is evaluated on the lower table and
grouped back by position (semantics 8, 10); outer columns come down by position as well, so no join by key is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, cast

import orjson
import polars as pl

from curatec.compiler import json_path
from curatec.compiler.content import TRAJECTORY_CONTENT, TURN_CONTENT
from curatec.compiler.core import Apply, Column, Const, Core, InTable, Path, Quantifier, Window, walk
from curatec.compiler.functions import FUNCTIONS, repetitive, unsettled
from curatec.compiler.json_path import JsonPath
from curatec.compiler.polars_functions import settled
from curatec.compiler.text import hash_key
from curatec.compiler.types import Level, Type
from curatec.compiler.windows import aggregate

DTYPES: dict[Type, pl.DataType | type[pl.DataType]] = {
    Type.BOOL: pl.Boolean,
    Type.INT: pl.Int64,
    Type.FLOAT: pl.Float64,
    Type.TEXT: pl.String,
    Type.JSON: pl.String,
    Type.TEXTS: pl.List(pl.String),
    Type.TIME: pl.Datetime("us", "UTC"),
    Type.NULL: pl.Null,
}
KEY = "key"  # the internal function that turns a long text into its hash, for grouping and comparing
_PARENT = {Level.TURN: "run", Level.CALL: "at", Level.TOOL: "run"}
Index = pl.Series


def paths_of(cores: Iterable[Core], base: str) -> tuple[JsonPath, ...]:
    """The JSON paths below `meta` or `args` that expressions read, each once, in a stable order."""
    found = {JsonPath(n.steps) for core in cores for n in walk(core) if isinstance(n, Path) and n.base.name == base}
    return tuple(sorted(found, key=str))


class Tokens(Protocol):
    """Whose tokens are counted, after `render`."""

    def of_turns(self, turns: pl.DataFrame) -> pl.Series:
        """Of what each turn says, the template apart."""

    def of_runs(self, frames: Frames, *, trained: bool) -> pl.Series:
        """Of each trajectory as the template shows it; or only those that carry loss."""


class SideTables(Protocol):
    def column(self, table: str, column: str) -> pl.Series:
        """The distinct values of a column of a side table."""


class Frames:
    """One batch.

    `runs`: one row a trajectory, with every fact and derived column under its name in the language, and `row`.
    `turns`: columns of TURNS, only rows of these trajectories, sorted by (row, turn).
    `known`: expressions that already have a column in `runs`.
    `paths`: the `args` paths of the whole spec, extracted once by one kernel.
    """

    def __init__(
        self,
        runs: pl.DataFrame,
        turns: pl.DataFrame | None = None,
        *,
        toolsets: Mapping[str, str] | None = None,
        known: Mapping[Core, str] | None = None,
        paths: tuple[JsonPath, ...] = (),
        tokens: Tokens | None = None,
        side: SideTables | None = None,
    ) -> None:
        self.runs = runs
        self.tokens: Tokens | None = tokens
        self._side = side
        self._turns = turns
        self.toolsets = toolsets or {}
        self._known = known or {}
        self._paths = paths
        self._memo: dict[tuple[Level, Core], pl.Series] = {}

    # ---- tables ----

    @cached_property
    def turns(self) -> pl.DataFrame:
        """TURNS with `run`, the position of its trajectory in `runs`. Both are sorted by row."""
        assert self._turns is not None, "an expression needs turns that were not loaded"
        return self._turns.with_columns(run=self.runs["row"].search_sorted(self._turns["row"]).cast(pl.UInt32))

    @cached_property
    def calls(self) -> pl.DataFrame:
        """One row a call: `at` (position in `turns`), `run`, its fields, and `result_at` (position of its result)."""
        at = self.turns.select("run", "turn", "calls", at=pl.int_range(pl.len(), dtype=pl.UInt32))
        flat = at.explode("calls", empty_as_null=False, keep_nulls=False).unnest("calls")
        found = at.select("run", pl.col("turn").alias("result_turn"), pl.col("at").alias("result_at"))
        return flat.join(found, on=["run", "result_turn"], how="left", maintain_order="left")

    @cached_property
    def tools(self) -> pl.DataFrame:
        """One row a tool shown: `run`, `position`, `name`, `description`."""
        runs = self.runs["toolset"].to_list()
        listed = {key: _tools(self.toolsets[key]) for key in set(runs) if key is not None}
        rows = [
            (run, position, name, description)
            for run, key in enumerate(runs)
            if key is not None
            for position, (name, description) in enumerate(listed[key])
        ]
        schema = {"run": pl.UInt32, "position": pl.UInt32, "name": pl.String, "description": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def table(self, level: Level) -> pl.DataFrame:
        return {
            Level.TRAJECTORY: lambda: self.runs,
            Level.TURN: lambda: self.turns,
            Level.CALL: lambda: self.calls,
            Level.TOOL: lambda: self.tools,
        }[level]()

    # ---- values ----

    def series(self, core: Core, level: Level = Level.TRAJECTORY) -> pl.Series:
        """One value for each row of a level's table, in its order; dtype as DTYPES says."""
        key = (level, core)
        if key not in self._memo:
            self._memo[key] = self._compute(core, level).alias("value")
        return self._memo[key]

    def each(self, cores: Sequence[Core], level: Level = Level.TRAJECTORY) -> list[pl.Series]:
        """`series` of each: what is asked together may be computed together."""
        return [self.series(core, level) for core in cores]

    def mask(self, core: Core, level: Level = Level.TRAJECTORY) -> pl.Series:
        """Where a condition is true; null counts as false."""
        values = self.series(core, level)
        return values.fill_null(False) if values.null_count() else values

    def _compute(self, core: Core, level: Level) -> pl.Series:
        if core in self._known:
            return self._down(self.runs[self._known[core]], Level.TRAJECTORY, level)
        match core:
            case Column():
                return self._down(self._column(core), core.level, level)
            case Path():
                return self._down(self._path(core), core.base.level, level)
            case Quantifier():
                return self._down(self._quantify(core), core.level, level)
            case Window():
                return self._window(core)
            case InTable():
                return self._in_table(core, level)
            case Kind():
                return self._kind(core.value, level)
            case Apply(function=name, args=(argument,)) if name == KEY:
                return hash_key([self.series(argument, level)]).set(self.series(argument, level).is_null(), None)
        return self._scalar(core, level)

    def _down(self, values: pl.Series, own: Level, level: Level) -> pl.Series:
        """Values of an outer level, one for each row of an inner one."""
        return values if own is level else values.gather(self._index(own, level))

    def _index(self, own: Level, level: Level) -> Index:
        """For each row of `level`, the position of its row at the outer level `own`."""
        name = "run" if own is Level.TRAJECTORY else _PARENT[level]
        return self.table(level)[name]

    # ---- scalars: one polars expression for a tree of functions, its leaves as columns ----

    def _scalar(self, core: Core, level: Level) -> pl.Series:
        leaves: dict[Core, str] = {}
        expr = self._open(core, level, leaves)
        height = self.table(level).height
        columns = {name: self.series(leaf, level) for leaf, name in leaves.items()}
        frame = pl.DataFrame({"height": pl.int_range(height, eager=True), **columns})
        value = frame.select(value=expr.cast(DTYPES[core.type])).to_series()
        if len(value) != height:
            # A constant comes out as one value; so does a `when` between constants that chose one of them for all rows.
            value = value.new_from_index(0, height) if height else value.clear()
        return settled(value) if unsettled(core) else value

    def _lower(self, core: Core, level: Level, leaves: dict[Core, str]) -> pl.Expr:
        if isinstance(core, Const) and core not in self._known:
            return literal(core)
        # A float that has to be settled is a column of its own: an expression of `when` would hold it three times.
        own = unsettled(core) or repetitive(core)
        if isinstance(core, Apply) and core.function != KEY and core not in self._known and not own:
            return self._open(core, level, leaves)
        return pl.col(leaves.setdefault(core, self._leaf(core, level, leaves)))

    def _leaf(self, core: Core, level: Level, leaves: dict[Core, str]) -> str:
        return f"leaf{len(leaves)}"

    def _open(self, core: Core, level: Level, leaves: dict[Core, str]) -> pl.Expr:
        """What the lowerings give, not settled."""
        if not isinstance(core, Apply) or core.function == KEY or core in self._known:
            return self._lower(core, level, leaves)
        special = self._json_state(core, level, leaves)
        if special is not None:
            return special
        entry = FUNCTIONS[core.function]
        assert entry.polars is not None, core.function
        open_ = entry.hands_on if core.type is Type.FLOAT else 0
        args = [(self._open if i < open_ else self._lower)(a, level, leaves) for i, a in enumerate(core.args)]
        return cast("pl.Expr", entry.polars(args, dict(core.options), [a.type for a in core.args]))

    def _json_state(self, core: Apply, level: Level, leaves: dict[Core, str]) -> pl.Expr | None:
        """`meta.x is null`, `args.list is empty`: asked of the kind, since objects and lists have no text.

        `as int` too: a number that is whole reads as one, however it is written.
        """
        if core.function not in ("is_null", "is_empty", "as_int"):
            return None
        argument = core.args[0]
        if not reads_path(argument) or (argument.type is not Type.JSON and core.function != "as_int"):
            return None
        kind = self._lower(cast("Core", Kind(argument)), level, leaves)
        if core.function == "is_null":
            return kind == "null"
        text = self._lower(argument, level, leaves)
        if core.function == "as_int":
            return json_path.as_int(text, kind)
        return (kind == "null") | json_path.is_empty(text, kind)

    # ---- leaves ----

    def _column(self, core: Column) -> pl.Series:
        if core.level is Level.TURN and core.via:
            return self._turn_column(core.name).gather(self._neighbours[core.via])
        match core.level:
            case Level.TURN:
                return self._turn_column(core.name)
            case Level.CALL:
                return self._call_column(core.name)
            case Level.TOOL:
                return self._tool_column(core.name)
        if core.name in TRAJECTORY_CONTENT:
            return self._remembered(core, lambda: TRAJECTORY_CONTENT[core.name](self))
        return self.runs[core.name]

    def _turn_column(self, name: str) -> pl.Series:
        if name in TURN_CONTENT:
            return self._remembered(Column(Level.TURN, name, Type.TEXT), lambda: TURN_CONTENT[name](self))
        if name == "index":
            return self.turns.select(pl.int_range(pl.len(), dtype=pl.Int64).over("run").alias(name))[name]
        values = self.turns[name]
        return values.cast(pl.String) if name == "role" else values

    def _call_column(self, name: str) -> pl.Series:
        if name in ("result", "is_error"):
            values = self.turns["content" if name == "result" else "is_error"]
            return values.gather(self.calls["result_at"])
        return self.calls[name]

    def _tool_column(self, name: str) -> pl.Series:
        if name != "used":
            return self.tools[name]
        called = self.calls.select("run", "name").unique().with_columns(used=pl.lit(True))
        return self.tools.join(called, on=["run", "name"], how="left", maintain_order="left")["used"].fill_null(False)

    def _remembered(self, core: Core, compute: Any) -> pl.Series:
        key = (core.level if isinstance(core, Column) else Level.TRAJECTORY, core)
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    @cached_property
    def _neighbours(self) -> dict[str, Index]:
        """For each turn, the position of its neighbour, null past the border."""
        turns = self.turns.select(
            "run", "turn", "call_turn", at=pl.int_range(pl.len(), dtype=pl.UInt32), role=pl.col("role").cast(pl.String)
        )
        callers = turns.select("run", pl.col("turn").alias("call_turn"), pl.col("at").alias("caller"))
        turns = turns.join(callers, on=["run", "call_turn"], how="left", maintain_order="left")
        speaking = pl.when(pl.col("role") == "assistant").then("at")
        found = turns.select(
            "caller",
            prev=pl.col("at").shift(1).over("run"),
            next=pl.col("at").shift(-1).over("run"),
            reply=speaking.shift(-1).over("run").backward_fill().over("run"),
        )
        return {name: found[name] for name in found.columns}

    @cached_property
    def _args(self) -> pl.DataFrame:
        return json_path.extract(self.calls["args_json"], self._paths)

    def _extracted(self, core: Path) -> tuple[pl.Series, pl.Series]:
        """Text and kind at a path, for each row of its own level."""
        path = JsonPath(core.steps)
        if core.base.name == "args":
            return self._args[str(path)], self._args[json_path.kind_column(path)]
        return self.runs[meta_column(str(path))], self.runs[meta_column(json_path.kind_column(path))]

    def _path(self, core: Path) -> pl.Series:
        text, kind = self._extracted(core)
        frame = pl.DataFrame({"text": text, "kind": kind})
        return frame.select(value=read_path(pl.col("text"), pl.col("kind"), core.type))["value"]

    def _kind(self, core: Core, level: Level) -> pl.Series:
        match core:
            case Path():
                return self._down(self._extracted(core)[1], core.base.level, level)
            case Quantifier(pick=pick) if pick is not None:
                found = self.series(replace(core, pick=cast("Core", Kind(pick)), type=Type.TEXT), level)
                return found.cast(pl.String).fill_null("null")  # no row, nothing there
        raise AssertionError(core)

    # ---- quantifiers ----

    def _quantify(self, core: Quantifier) -> pl.Series:
        below = self.table(core.over)
        parents = below["run"] if core.level is Level.TRAJECTORY else below[_PARENT[core.over]]
        where = self.mask(core.where, core.over) if core.where is not None else None
        height = self.table(core.level).height
        if core.pick is not None:
            return _pick(parents, where, self.series(core.pick, core.over), height, last=core.kind == "last")
        if core.kind == "all" and where is not None:
            return _count(parents, ~where, height) == 0
        if core.kind == "all":
            return pl.repeat(True, height, dtype=pl.Boolean, eager=True)
        counted = _count(parents, where, height)
        match core.kind:
            case "any":
                return counted > 0
            case "none":
                return counted == 0
        return counted

    def _in_table(self, core: InTable, level: Level) -> pl.Series:
        assert self._side is not None, core
        values, listed = self.series(core.value, level), self._side.column(core.table, core.column)
        if core.value.type.is_number:  # an int may stand in a column of floats
            values, listed = values.cast(pl.Float64), listed.cast(pl.Float64)
        return values.is_in(listed.implode())

    def _window(self, core: Window) -> pl.Series:
        argument = self.series(core.argument) if core.argument is not None else None
        return aggregate(core, argument, [self.series(key) for key in core.keys], self.runs.height)


@dataclass(frozen=True, slots=True)
class Kind:
    """What stands at a JSON path (null, string, number, …): a leaf of its own, since objects have no text."""

    value: Core
    type: Type = Type.TEXT


def reads_path(core: Core) -> bool:
    """Whether its value stands at a JSON path."""
    return isinstance(core, Path) or (isinstance(core, Quantifier) and isinstance(core.pick, Path))


def meta_column(path: str) -> str:
    """The column of `runs` that holds a path below `meta`."""
    return f"meta:{path}"


def literal(core: Const) -> pl.Expr:
    """A constant in its dtype."""
    if core.value is None:
        return pl.lit(None, dtype=DTYPES[core.type])
    if core.type is Type.TIME:
        return pl.lit(datetime.fromisoformat(str(core.value)), dtype=DTYPES[Type.TIME])
    if core.type is Type.TEXTS:
        return pl.lit(
            pl.Series([list(cast("tuple[str, ...]", core.value))], dtype=DTYPES[Type.TEXTS]).first(),
            dtype=DTYPES[Type.TEXTS],
        )
    return pl.lit(core.value, dtype=DTYPES[core.type])


def read_path(text: pl.Expr, kind: pl.Expr, type_: Type) -> pl.Expr:
    """An extracted JSON value as its use reads it (semantics 22)."""
    if type_.is_number:
        number = json_path.as_number(text, kind)
        return (
            number
            if type_ is Type.FLOAT
            else pl.when(number == number.floor()).then(number).cast(pl.Int64, strict=False)
        )
    if type_ is Type.BOOL:
        return pl.when(kind == "bool").then(text == "true")
    return text


def _tools(tools_json: str) -> list[tuple[str | None, str | None]]:
    return [(t["function"].get("name"), t["function"].get("description")) for t in orjson.loads(tools_json)]


def _count(parents: pl.Series, where: pl.Series | None, height: int) -> pl.Series:
    """How many rows of each parent pass."""
    kept = parents if where is None else parents.filter(where)
    counted = pl.LazyFrame({"at": kept}).group_by("at").len("n")
    found = _places(height).join(counted, on="at", how="left", maintain_order="left")
    return found.select(pl.col("n").fill_null(0).cast(pl.Int64)).collect()["n"]


def _pick(parents: pl.Series, where: pl.Series | None, values: pl.Series, height: int, *, last: bool) -> pl.Series:
    """The value of each parent's first or last row that passes; rows are in order already."""
    rows = pl.LazyFrame({"at": parents, "value": values})
    if where is not None:
        rows = rows.filter(where)
    picked = rows.group_by("at").agg(pl.col("value").last() if last else pl.col("value").first())
    return _places(height).join(picked, on="at", how="left", maintain_order="left").collect()["value"]


def _places(height: int) -> pl.LazyFrame:
    return pl.LazyFrame({"at": pl.int_range(height, dtype=pl.UInt32, eager=True)})
