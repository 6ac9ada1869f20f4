"""A checked expression printed the way a spec would write it, with parameters replaced by their values."""

from __future__ import annotations

import json
import re

from curatec.compiler.core import Apply, Column, Const, Core, InTable, Order, Path, Quantifier, Window
from curatec.compiler.frames import KEY
from curatec.compiler.functions import FUNCTIONS
from curatec.compiler.types import Level

_PLURAL = {Level.TURN: "turns", Level.CALL: "calls", Level.TOOL: "tools"}
_BINARY = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "**": 8,
}  # fmt: skip
_AS = {"as_int": "int", "as_float": "float", "as_text": "text"}
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ATOM = 10


def core_text(core: Core, level: Level = Level.TRAJECTORY) -> str:
    """Text of an expression that stands at a level."""
    return _text(core, level)[0]


def order_text(order: tuple[Order, ...]) -> str:
    return ", ".join(core_text(o.value) + (" desc" if o.descending else "") for o in order)


def list_text(cores: tuple[Core, ...]) -> str:
    return ", ".join(core_text(core) for core in cores)


def _text(core: Core, level: Level) -> tuple[str, int]:
    """Text and how tightly it binds."""
    match core:
        case Const(value=value):
            return _value(value), _ATOM
        case Column():
            return _column(core, level), _ATOM
        case Path(base=base, steps=steps):
            return _column(base, level) + "".join(_step(step) for step in steps), _ATOM
        case Quantifier():
            return _quantifier(core, level), _ATOM
        case Window():
            return _window(core, level), _ATOM
        case InTable(value=value, table=table, column=column):
            return f"{_inside(value, level, 5)} in {table}.{column}", 4
        case Apply():
            return _apply(core, level)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_value(v) for v in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _column(column: Column, level: Level) -> str:
    if column.via:
        return f"{column.via}.{column.name}"
    return column.name if column.level is level else f"{column.level}.{column.name}"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _quantifier(q: Quantifier, level: Level) -> str:
    where = f" where {core_text(q.where, q.over)}" if q.where is not None else ""
    over = "turns.calls" if q.over is Level.CALL and level is Level.TOOL else _PLURAL[q.over]
    picked = f".{core_text(q.pick, q.over)}" if q.pick is not None else ""
    return f"{q.kind}({over}{where}){picked}"


def _window(w: Window, level: Level) -> str:
    inner = core_text(w.argument, level) if w.argument is not None else ""
    keys = ", ".join(core_text(key, level) for key in w.keys)
    return f"{w.function}({inner}{' desc' if w.descending else ''}) over ({keys})"


def _apply(core: Apply, level: Level) -> tuple[str, int]:
    name, args = core.function, core.args
    if name in _BINARY and len(args) == 2:
        own = _BINARY[name]
        return f"{_inside(args[0], level, own)} {name} {_inside(args[1], level, own + 1)}", own
    match name:
        case "matches":
            return f"{_inside(args[0], level, 5)} ~ {_pattern(dict(core.options)['pattern'])}", 4
        case "not":
            if (text := _negated(args[0], level)) is not None:
                return text, 4
            return f"not {_inside(args[0], level, 3)}", 3
        case "negative":
            return f"-{_inside(args[0], level, 7)}", 7
        case "if":
            condition, then, otherwise = (core_text(a, level) for a in args)
            return f"if {condition} then {then} else {otherwise}", 0
        case "is_null" | "is_empty":
            return f"{_inside(args[0], level, 5)} is {name.removeprefix('is_')}", 4
        case "one_of":
            return f"{_inside(args[0], level, 5)} in {{{', '.join(core_text(a, level) for a in args[1:])}}}", 4
        case _ if name in _AS:
            return f"{_inside(args[0], level, 9)} as {_AS[name]}", 9
        case _ if name == KEY:
            return f"hash({', '.join(core_text(a, level) for a in args)})", _ATOM
    options = [f"{key}: {_option(name, key, value)}" for key, value in core.options]
    return f"{name}({', '.join([*(core_text(a, level) for a in args), *options])})", _ATOM


def _negated(core: Core, level: Level) -> str | None:
    """`x is not null` and the like; None where only `not …` says it."""
    if isinstance(core, InTable):
        return f"{_inside(core.value, level, 5)} not in {core.table}.{core.column}"
    if not isinstance(core, Apply):
        return None
    text = _inside(core.args[0], level, 5) if core.args else ""
    match core.function:
        case "is_null" | "is_empty":
            return f"{text} is not {core.function.removeprefix('is_')}"
        case "one_of":
            return f"{text} not in {{{', '.join(core_text(a, level) for a in core.args[1:])}}}"
        case "matches":
            return f"{text} !~ {_pattern(dict(core.options)['pattern'])}"
    return None


def _option(function: str, key: str, value: object) -> str:
    """A named constant of a call; one of a few words stands bare, a pattern as a raw string."""
    if key == "pattern":
        return _pattern(value)
    words = any(p.name == key and p.words for p in FUNCTIONS[function].parameters)
    return str(value) if words else _value(value)


def _pattern(text: object) -> str:
    return f'r"{text}"' if not {'"', "\n"} & set(str(text)) else _value(text)


def _inside(core: Core, level: Level, least: int) -> str:
    text, binds = _text(core, level)
    return text if binds >= least else f"({text})"
