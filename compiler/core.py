"""Core: the typed expression that a checked `Expr` becomes. Pure data, hashable, no source places.

Every node checks its invariants where it is built. Two engines lower the same Core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from curatec.compiler.types import Level, Type

Via = Literal["", "prev", "next", "caller", "reply"]
QuantifierKind = Literal["any", "all", "none", "count", "first", "last"]


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, or a parameter's value. A tuple is a list of text."""

    value: bool | int | float | str | tuple[str, ...] | None
    type: Type


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a level; `via` names the neighbour of a turn that it is read from."""

    level: Level
    name: str
    type: Type
    via: Via = ""

    def __post_init__(self) -> None:
        assert not self.via or self.level is Level.TURN, self


@dataclass(frozen=True, slots=True)
class Path:
    """A JSON path below `meta` (of a trajectory) or `args` (of a call). Read as `type` says."""

    base: Column
    steps: tuple[str | int, ...]
    type: Type = Type.JSON

    def __post_init__(self) -> None:
        assert self.base.type is Type.JSON, self


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or operator of the registry. `options` are its named constants in the registry's order."""

    function: str
    args: tuple[Core, ...]
    type: Type
    options: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`kind(over where …)`, seen from `level`. `pick` is what `first` and `last` read from the row they find."""

    kind: QuantifierKind
    level: Level
    over: Level
    where: Core | None
    type: Type
    pick: Core | None = None

    def __post_init__(self) -> None:
        assert (self.pick is not None) == (self.kind in ("first", "last")), self


@dataclass(frozen=True, slots=True)
class Window:
    """An aggregate over the rows of the same keys that enter the step; no keys: all rows."""

    function: str
    argument: Core | None
    keys: tuple[Core, ...]
    type: Type
    descending: bool = False


@dataclass(frozen=True, slots=True)
class InTable:
    """Whether a value stands in a column of a side table; null for null."""

    value: Core
    table: str
    column: str
    type: Type = Type.BOOL


Core = Const | Column | Path | Apply | Quantifier | Window | InTable
NODES = (Const, Column, Path, Apply, Quantifier, Window, InTable)


@dataclass(frozen=True, slots=True)
class Order:
    value: Core
    descending: bool = False


def children(node: Core) -> Iterator[Core]:
    """The nodes directly below."""
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, NODES):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, NODES))


def walk(node: Core) -> Iterator[Core]:
    """The node and all below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def columns(node: Core, level: Level) -> set[str]:
    """Names of a level's columns that a node reads, at any depth."""
    return {n.name for n in walk(node) if isinstance(n, Column) and n.level is level}


_CHECKED = {"+", "-", "*", "negative", "abs"}  # of integers: the result may not fit


def may_fail(node: Core) -> bool:
    """Whether a number in it may not fit in 64 bits, which is an error wherever it happens."""
    return any(
        isinstance(n, Window) or (isinstance(n, Apply) and n.function in _CHECKED and n.type is Type.INT)
        for n in walk(node)
    )


def has_window(node: Core) -> bool:
    """Whether its value depends on other rows."""
    return any(isinstance(n, Window) for n in walk(node))
