"""Every operator, function and window aggregate of the language: one entry each.

An entry says what the checker needs (types, null rule), what the reader needs (doc, an example that is run as a
test) and how each engine computes it. A missing lowering is a diagnostic that names the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curatec.compiler.types import Type

Options = dict[str, Any]
# arguments lowered, options, types of the arguments → the engine's expression
Lowering = Callable[[Sequence[Any], Options, Sequence[Type]], Any]
NullRule = Literal["null in, null out", "nulls ignored", "three-valued", "never null"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument: the types it takes, and whether it must be a literal (a pattern, an option word)."""

    name: str
    types: tuple[Type, ...]
    literal: bool = False
    optional: bool = False
    words: tuple[str, ...] = ()  # option words that it takes, first one the default
    pattern: bool = False  # a regex of the checked subset
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """`returns` is a type, or a function from the argument types to one."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: Type | Callable[[Sequence[Type]], Type]
    nulls: NullRule
    doc: str
    example: str
    gives: Any
    polars: Lowering | None = None
    duckdb: Lowering | None = None
    operator: bool = False
    # Of floats: the result may be infinite, no number or -0.0, none of which the language has (semantics 14).
    unsettled: bool = False
    # So many arguments lead from infinity to infinity or no number only: a chain of such is settled once, at its end.
    hands_on: int = 0
    repeats: int = 1  # how often a lowering holds its arguments

    def result(self, types: Sequence[Type]) -> Type:
        return self.returns if isinstance(self.returns, Type) else self.returns(types)


@dataclass(frozen=True, slots=True)
class WindowEntry:
    """An aggregate over the rows of a group."""

    name: str
    argument: tuple[Type, ...] | None  # None: takes nothing
    returns: Type | None  # None: the argument's type
    doc: str
    example: str


def numeric(types: Sequence[Type]) -> Type:
    """int with int is int; anything with a float is float."""
    return Type.INT if all(t is Type.INT for t in types) else Type.FLOAT
