"""Types brought together: JSON values take the type of their use; nothing else is converted."""

from __future__ import annotations

from dataclasses import replace

from curatec.compiler.core import Apply, Column, Const, Core, Path, Quantifier
from curatec.compiler.functions import FUNCTIONS
from curatec.compiler.types import Type

UNKNOWN = Const(None, Type.UNKNOWN)


def apply(name: str, *args: Core) -> Core:
    """A registry function on checked arguments; unknown in, unknown out."""
    if any(a.type is Type.UNKNOWN for a in args):
        return UNKNOWN
    return Apply(name, args, FUNCTIONS[name].result([a.type for a in args]))


def read_json(core: Core, want: Type) -> Core:
    """A JSON value takes the type that its use asks for."""
    if core.type is not Type.JSON or want is Type.JSON:
        return core
    match core:
        case Path():
            return replace(core, type=want)
        case Quantifier(pick=pick) if pick is not None:
            return replace(core, pick=read_json(pick, want), type=want)
        case Apply(function="if" | "coalesce"):
            return replace(core, args=tuple(read_json(a, want) for a in core.args), type=want)
    return UNKNOWN if isinstance(core, Const) else Path(core, (), want) if isinstance(core, Column) else core


def whole(core: Core) -> Core:
    """`meta` or `args` itself, as the path without a step."""
    match core:
        case Column(type=Type.JSON):
            return Path(core, ())
        case Quantifier(pick=Column(type=Type.JSON) as pick):
            return replace(core, pick=Path(pick, ()))
    return core


def agree(a: Core, b: Core) -> tuple[Core, Core]:
    """A JSON value reads as what stands on the other side; two of them compare as text."""
    if a.type is Type.JSON and b.type is Type.JSON:
        return read_json(a, Type.TEXT), read_json(b, Type.TEXT)
    number = Type.FLOAT
    a = read_json(a, number if b.type.is_number else b.type)
    return a, read_json(b, number if a.type.is_number else a.type)


def alike(a: Type, b: Type) -> bool:
    return a is b or Type.NULL in (a, b) or (a.is_number and b.is_number)


def as_condition_help(core: Core) -> tuple[str, ...]:
    """How a value becomes a condition."""
    if core.type.is_number:
        return ("compare it: `… > 0`",)
    if core.type in (Type.TEXT, Type.TEXTS):
        return ("ask `… is not empty`, or compare it",)
    return ("compare it",)


def as_number_help(core: Core) -> tuple[str, ...]:
    """How a value becomes a number."""
    match core.type:
        case Type.TEXT if isinstance(core, Const):
            return ("numbers are written without quotes",)
        case Type.TEXT:
            return ("read a text as a number with `… as int` or `… as float`",)
        case Type.BOOL:
            return ("write `if … then 1 else 0`",)
        case Type.TEXTS:
            return ("count its items with `length(…)`",)
    return ("compare it, or take another field",)


def as_text_help(core: Core) -> tuple[str, ...]:
    """How a value becomes a text."""
    if core.type in (Type.INT, Type.BOOL):
        return ("read it as a text with `… as text`",)
    if core.type is Type.TEXTS:
        return ('put the items together with `join(…, ", ")`',)
    return ("take a field that is a text",)


def compare_help(a: Core, b: Core) -> tuple[str, ...]:
    """How two values become comparable."""
    if a.type.is_number or b.type.is_number:
        return as_number_help(b if a.type.is_number else a)
    if Type.BOOL in (a.type, b.type):
        return ("compare with `true` or `false`, without quotes",)
    return ("both sides must be of one type",)
