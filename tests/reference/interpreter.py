"""Expressions over plain dicts: trajectory → turns → calls, and its tools.

A trajectory is a dict of facts and derived columns with `turns` (a list of dicts, each with `calls`) and `tools` (a
list of dicts, or None). Written from semantics.md; it shares no code with the engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from curatec.compiler.core import Apply, Column, Const, Core, InTable, Path, Quantifier, Window
from curatec.compiler.types import Level, Type
from tests.reference import functions
from tests.reference.values import at, call_text, key, micros, tokens

Row = dict[str, Any]


@dataclass(frozen=True)
class Spot:
    """Where an expression stands: a trajectory, and inside it a turn (by position), a call, a tool."""

    row: Row
    turn: int | None = None
    call: Row | None = None
    tool: Row | None = None

    @property
    def here(self) -> Row:
        assert self.turn is not None
        return self.row["turns"][self.turn]


def spots(row: Row, level: Level) -> list[Spot]:
    """Every row of a level inside one trajectory, in order."""
    turns = range(len(row["turns"]))
    match level:
        case Level.TRAJECTORY:
            return [Spot(row)]
        case Level.TURN:
            return [Spot(row, i) for i in turns]
        case Level.CALL:
            return [Spot(row, i, call) for i in turns for call in row["turns"][i]["calls"]]
    return [Spot(row, tool=tool) for tool in row["tools"] or ()]


class Interpreter:
    """Evaluates expressions; `rows` are the trajectories that enter the step, which windows compare."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def value(self, core: Core, spot: Spot) -> Any:
        match core:
            case Const(type=Type.TIME, value=str() as text):
                return micros(text)
            case Const():
                return list(core.value) if isinstance(core.value, tuple) else core.value
            case Column(level=level, name=name, via=via):
                return self._column(level, name, via, spot)
            case Path():
                return self._path(core, spot)
            case Apply():
                return self._apply(core, spot)
            case Quantifier():
                return self._quantifier(core, spot)
            case Window():
                return self._window(core, spot.row)
            case InTable(value=inner, table=table, column=column):
                value = self.value(inner, spot)
                listed = [row[column] for row in spot.row["beside"].tables[table].values()]
                return None if value is None else value in [v for v in listed if v is not None]
        raise AssertionError(core)

    def holds(self, core: Core, spot: Spot) -> bool:
        """Two-valued: null is false (semantics 10, 11)."""
        return self.value(core, spot) is True

    # ---- leaves ----

    def _column(self, level: Level, name: str, via: str, spot: Spot) -> Any:
        match level:
            case Level.TRAJECTORY:
                return content(spot.row, name) if name in CONTENT else spot.row[name]
            case Level.TURN:
                place = neighbour(spot.row["turns"], spot.turn, via)
                return None if place is None else turn_field(spot.row["turns"], place, name)
            case Level.CALL:
                return call_field(spot.row, spot.call, name)
        assert spot.tool is not None
        if name == "used":
            called = {c["name"] for t in spot.row["turns"] for c in t["calls"]} - {None}
            return spot.tool["name"] in called
        return spot.tool[name]

    def _found(self, core: Path, spot: Spot) -> tuple[str | None, str]:
        text = spot.row["meta"] if core.base.name == "meta" else spot.call["args_json"]  # type: ignore[index]
        return at(text, core.steps)

    def _path(self, core: Path, spot: Spot) -> Any:
        text, kind = self._found(core, spot)
        match core.type:
            case Type.INT | Type.FLOAT:
                return float(text) if kind == "number" and text is not None else None
            case Type.BOOL:
                return text == "true" if kind == "bool" else None
        return text

    def _kind(self, core: Core, spot: Spot) -> tuple[str | None, str]:
        """Text and kind of an expression that reads a path."""
        if isinstance(core, Path):
            return self._found(core, spot)
        assert isinstance(core, Quantifier)
        chosen = self._chosen(core, spot)
        return (None, "null") if chosen is None else self._kind(core.pick, chosen)  # type: ignore[arg-type]

    # ---- functions ----

    def _apply(self, core: Apply, spot: Spot) -> Any:
        args = [self.value(a, spot) for a in core.args]
        if core.function == "key":
            return None if args[0] is None else key(args)
        first = core.args[0]
        reads = isinstance(first, Path) or (isinstance(first, Quantifier) and isinstance(first.pick, Path))
        if reads and core.function in ("is_null", "is_empty") and first.type is Type.JSON:
            text, kind = self._kind(first, spot)
            return kind == "null" or (core.function == "is_empty" and (kind == "empty" or text == ""))
        if reads and core.function == "as_int":
            text, kind = self._kind(first, spot)
            if kind == "number":
                whole = float(text or "")
                return int(whole) if whole.is_integer() and abs(whole) < 1e18 else None
            if kind != "string":
                return None
        return functions.apply(core.function, args, dict(core.options), [a.type for a in core.args])

    # ---- quantifiers (semantics 10) ----

    def _inside(self, core: Quantifier, spot: Spot) -> Iterator[Spot]:
        for inner in spots(spot.row, core.over):
            if core.level is Level.TRAJECTORY or inner.turn == spot.turn:
                yield inner

    def _chosen(self, core: Quantifier, spot: Spot) -> Spot | None:
        found = [s for s in self._inside(core, spot) if core.where is None or self.holds(core.where, s)]
        return None if not found else found[0] if core.kind == "first" else found[-1]

    def _quantifier(self, core: Quantifier, spot: Spot) -> Any:
        if core.pick is not None:
            for inner in self._inside(core, spot):
                self.value(core.pick, inner)  # a number out of range fails wherever it stands
            chosen = self._chosen(core, spot)
            return None if chosen is None else self.value(core.pick, chosen)
        passed = [core.where is None or self.holds(core.where, s) for s in self._inside(core, spot)]
        match core.kind:
            case "any":
                return any(passed)
            case "all":
                return all(passed)
            case "none":
                return not any(passed)
        return sum(passed)

    # ---- windows (semantics 5, 12) ----

    def _window(self, core: Window, row: Row) -> Any:
        groups: dict[tuple[Any, ...], list[tuple[Row, Any]]] = {}
        mine: tuple[Any, ...] = ()
        for other in self.rows:
            spot = Spot(other)
            keys = tuple(_groupable(self.value(k, spot)) for k in core.keys)
            argument = self.value(core.argument, spot) if core.argument is not None else 0
            groups.setdefault(keys, []).append((other, argument))
            if other is row:
                mine = keys
        if core.function == "rank":
            values = [v for _, v in groups[mine]]
            own = next(v for r, v in groups[mine] if r is row)
            return None if None in mine else functions.rank(values, own, core.descending)
        found = {
            keys: functions.aggregate(core.function, [v for _, v in members], core.type)
            for keys, members in groups.items()
            if None not in keys
        }
        return None if None in mine else found[mine]


def _groupable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# ---- fields ----


def neighbour(turns: Sequence[Row], place: int | None, via: str) -> int | None:
    """The position of a turn's neighbour in the list as it is; None past the border (semantics 7)."""
    assert place is not None
    match via:
        case "":
            return place
        case "prev":
            return place - 1 if place > 0 else None
        case "next":
            return place + 1 if place + 1 < len(turns) else None
        case "caller":
            return numbered(turns, turns[place]["call_turn"])
    return next((i for i in range(place + 1, len(turns)) if turns[i]["role"] == "assistant"), None)


def numbered(turns: Sequence[Row], number: int | None) -> int | None:
    """The position of the turn that had a number in the source."""
    return None if number is None else next((i for i, t in enumerate(turns) if t["turn"] == number), None)


def turn_tokens(turn: Row) -> int:
    args = [c["args_raw"] if c["args_json"] is None else c["args_json"] for c in turn["calls"]]
    calls = sum(tokens(c["name"]) for c in turn["calls"]) + sum(map(tokens, args))
    return tokens(turn["content"]) + tokens(turn["reasoning"]) + calls


def turn_calls_text(turn: Row) -> str | None:
    return "\n".join(map(call_text, turn["calls"])) if turn["calls"] else None


def turn_field(turns: Sequence[Row], place: int, name: str) -> Any:
    turn = turns[place]
    match name:
        case "index":
            return place
        case "tokens":
            return turn_tokens(turn)
        case "calls_text":
            return turn_calls_text(turn)
    return turn[name]


def call_field(row: Row, call: Row | None, name: str) -> Any:
    assert call is not None
    if name in ("result", "is_error"):
        place = numbered(row["turns"], call["result_turn"])
        return None if place is None else row["turns"][place]["content" if name == "result" else "is_error"]
    return call[name]


CONTENT = frozenset({"turn_count", "assistant_turns", "call_count", "error_count", "tokens", "trained_tokens"}) | {
    "text",
    "task_text",
    "final_answer",
    "calls_text",
    "tool_names",
}


def content(row: Row, name: str) -> Any:
    """What a trajectory says, of its turns as they are now (semantics 2, 23)."""
    turns = row["turns"]
    spoken = [t for t in turns if t["role"] not in ("system", "event")]
    assistant = [t for t in turns if t["role"] == "assistant"]
    match name:
        case "turn_count":
            return len(spoken)
        case "assistant_turns":
            return len(assistant)
        case "call_count":
            return sum(len(t["calls"]) for t in turns)
        case "error_count":
            return sum(t["role"] == "tool" and t["is_error"] is True for t in turns)
        case "tokens":
            return sum(turn_tokens(t) for t in turns if t["role"] != "event")
        case "trained_tokens":
            return sum(turn_tokens(t) for t in assistant if t["loss_weight"] > 0 and not t["copied_context"])
        case "text":
            return "\n".join(t["content"] for t in spoken if t["content"] is not None) if spoken else None
        case "task_text":
            return next((t["content"] for t in turns if t["role"] == "user"), None)
        case "final_answer":
            return next((t["content"] for t in reversed(assistant) if t["content"]), None)
        case "calls_text":
            return "\n".join(turn_calls_text(t) or "" for t in turns if t["calls"]) or None
    assert name == "tool_names"
    return sorted({c["name"] for t in turns for c in t["calls"] if c["name"] is not None})
