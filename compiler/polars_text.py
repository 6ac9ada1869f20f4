"""What polars computes for some expressions, as lines that a person who knows polars can read.

Each line names a column and says what it is: an expression over the columns named above, or what is grouped, gathered
or extracted to make it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from curatec.compiler import windows
from curatec.compiler.content import TRAJECTORY_CONTENT
from curatec.compiler.core import Apply, Column, Core, InTable, Path, Quantifier, Window
from curatec.compiler.frames import KEY, Frames, Kind
from curatec.compiler.functions import unsettled
from curatec.compiler.types import Level

Names = Callable[[Core, Level], str]
_TABLES = {Level.TRAJECTORY: "runs", Level.TURN: "turns", Level.CALL: "calls", Level.TOOL: "tools"}
_PARENT = {Level.TRAJECTORY: "run", Level.TURN: "turn"}
_SPOKEN = '~col("role").is_in(["system", "event"])'
OF_TURNS = {
    "turn_count": f"filter({_SPOKEN}).group_by(run).len()",
    "assistant_turns": 'filter(col("role") == "assistant").group_by(run).len()',
    "call_count": 'group_by(run).agg(col("calls").list.len().sum())',
    "error_count": 'filter((col("role") == "tool") & col("is_error")).group_by(run).len()',
    "tokens": 'filter(col("role") != "event").group_by(run).agg(col("tokens").sum())',
    "trained_tokens": 'filter(what carries loss).group_by(run).agg(col("tokens").sum())',
    "text": f'filter({_SPOKEN}).group_by(run).agg(col("content").drop_nulls().str.join("\\n"))',
    "task_text": 'filter(col("role") == "user").group_by(run).agg(col("content").first())',
    "final_answer": (
        'filter((col("role") == "assistant") & (col("content") != "")).group_by(run).agg(col("content").last())'
    ),
    "calls_text": 'drop_nulls("calls_text").group_by(run).agg(col("calls_text").str.join("\\n"))',
    "tool_names": 'explode("calls").unique(["run", "name"]).sort("name").group_by(run).agg("name")',
}


def lines(cores: Sequence[tuple[str, Core]], level: Level, known: Mapping[Core, str], names: Names) -> list[str]:
    """One line for each named expression, after those that it needs; each column is explained once."""
    spelled = _Spelled(known, names)
    for name, core in cores:
        spelled.explain(core, level, name)
    return spelled.lines


class _Spelled(Frames):
    """Expressions without any data: its columns are called as the language writes them."""

    def __init__(self, known: Mapping[Core, str], names: Names) -> None:
        super().__init__(pl.DataFrame(), known=known)
        self._names = names
        self._told: set[tuple[Level, Core]] = set()
        self.lines: list[str] = []

    def explain(self, core: Core, level: Level, name: str | None = None) -> None:
        """A line for it; none where its name says it all."""
        if name is None and ((level, core) in self._told or core in self._known or _plain(core)):
            return
        self._told.add((level, core))
        text = self._text(core, level)
        self.lines.append(f"{name or self._name(core, level)} = {text}")

    def _text(self, core: Core, level: Level) -> str:
        match core:
            case _ if core in self._known or _plain(core):
                return f'col("{self._name(core, level)}")'
            case Column(via=via, name=word) if via:
                return f'turns.select(col("{word}").gather({via}))'
            case Column(name=word):
                return f"turns.{OF_TURNS[word]}"
            case Quantifier():
                return self._quantified(core)
            case Window():
                return self._windowed(core)
            case InTable(value=value, table=table, column=column):
                self.explain(value, level)
                return f'col("{self._name(value, level)}").is_in({table}.{column})'
            case Kind(value=value):
                return f"what stands at {self._name(value, level)}: null, string, number, …"
            case Apply(function=function, args=(value,)) if function == KEY:
                self.explain(value, level)
                return f'hash of col("{self._name(value, level)}")'
        leaves: dict[Core, str] = {}
        expr = self._open(core, level, leaves)
        for leaf in leaves:
            self.explain(leaf, level)
        return f"settled({expr})" if unsettled(core) else str(expr)

    def _name(self, core: Core, level: Level) -> str:
        return f"kind of {self._names(core.value, level)}" if isinstance(core, Kind) else self._names(core, level)

    def _leaf(self, core: Core, level: Level, leaves: dict[Core, str]) -> str:
        return self._name(core, level)

    def _quantified(self, core: Quantifier) -> str:
        rows = _TABLES[core.over]
        if core.where is not None:
            self.explain(core.where, core.over)
            shown = f'col("{self._name(core.where, core.over)}")'
            rows += f".filter(~{shown})" if core.kind == "all" else f".filter({shown})"
        grouped = f"{rows}.group_by({_PARENT[core.level]})"
        if core.pick is not None:
            self.explain(core.pick, core.over)
            return f'{grouped}.agg(col("{self._name(core.pick, core.over)}").{core.kind}())'
        compared = {"any": " > 0", "all": " == 0", "none": " == 0"}.get(core.kind, "")
        return f"{grouped}.len(){compared}"

    def _windowed(self, core: Window) -> str:
        for inner in (*core.keys, *([] if core.argument is None else [core.argument])):
            self.explain(inner, Level.TRAJECTORY)
        value = str(windows.expression(core.function, core.type, descending=core.descending))
        keys = ", ".join(f'"{self._name(key, Level.TRAJECTORY)}"' for key in core.keys)
        x = "" if core.argument is None else f', x = col("{self._name(core.argument, Level.TRAJECTORY)}")'
        return value + (f".over({keys})" if keys else "") + x


def _plain(core: Core) -> bool:
    """A column as it is stored, or as the one kernel extracted it."""
    if isinstance(core, Column):
        return not core.via and not (core.level is Level.TRAJECTORY and core.name in TRAJECTORY_CONTENT)
    return isinstance(core, Path)
