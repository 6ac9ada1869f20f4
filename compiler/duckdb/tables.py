"""The four tables of a batch as statements see them, and what stands in their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from curatec.compiler.core import Apply, Core, Window
from curatec.compiler.frames import KEY
from curatec.compiler.functions import repetitive
from curatec.compiler.json_path import JsonPath
from curatec.compiler.types import Level, Type

TABLES = {Level.TRAJECTORY: "runs", Level.TURN: "turns", Level.CALL: "calls", Level.TOOL: "tools"}
# The position of a row in its level's table.
PLACES = {Level.TRAJECTORY: "run", Level.TURN: "turn_at", Level.CALL: "call_at", Level.TOOL: "tool_at"}
_CAN_OVERFLOW = ("+", "-", "*", "negative", "abs")


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of a table as it is kept, or as the batch's kernel makes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """Text, or kind, of what stands at a JSON path of `args` or `meta`."""

    path: JsonPath
    kind: bool


@dataclass(frozen=True, slots=True)
class Before:
    """The value of an expression, computed before."""

    core: Core


Origin = Stored | Extracted | Before


@dataclass(frozen=True, slots=True)
class Setting:
    """What does not depend on a statement: expressions that have a column of `runs`, whether a template counts the
    tokens, and what the values are called where people read it."""

    known: Mapping[Core, str] = field(default_factory=dict)
    rendered: bool = False
    names: Mapping[Core, str] = field(default_factory=dict)


def is_key(core: Core) -> bool:
    """A hash that stands for a long text."""
    return isinstance(core, Apply) and core.function == KEY


def is_sum(core: Core) -> bool:
    """Whole-number arithmetic, whose value may not fit in 64 bits."""
    if not isinstance(core, Apply) or core.function not in _CAN_OVERFLOW:
        return False
    return all(a.type is Type.INT for a in core.args)


def comes_before(core: Core) -> bool:
    """Whether it is computed before the statement that reads it."""
    return isinstance(core, Window) or is_key(core) or is_sum(core) or repetitive(core)
