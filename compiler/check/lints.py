"""Lints: specs that check but cannot do what their author meant."""

from __future__ import annotations

import math
from collections.abc import Iterator

from curatec.compiler.core import Apply, Column, Const, Core, Path, Quantifier, columns, walk
from curatec.compiler.fields import TRAJECTORY
from curatec.compiler.functions import FUNCTIONS
from curatec.compiler.types import Level, Type

# Fields whose values have bounds that no data can leave.
BOUNDS: dict[str, tuple[float, float]] = {
    "pass_rate": (0.0, 1.0),
    "spread": (0.0, math.inf),
    "attempts": (0.0, math.inf),
    "turn_count": (0.0, math.inf),
    "assistant_turns": (0.0, math.inf),
    "call_count": (0.0, math.inf),
    "error_count": (0.0, math.inf),
    "tokens": (0.0, math.inf),
    "trained_tokens": (0.0, math.inf),
    "index": (0.0, math.inf),
}
OUTCOME_FIELDS = {"reward", "success", "outcome", "pass_rate", "spread", "failure"}


def loss_is_null(core: Core) -> bool:
    """Whether a predicate about an assistant turn is null on every one."""
    match core:
        case Const(value=None):
            return core.type is not Type.UNKNOWN
        case Column(level=Level.TURN, name="is_error" | "tool_name", via=""):
            return True
        case Apply(function="and" | "or", args=args):
            return all(loss_is_null(a) for a in args)
        case Apply(function=name, args=args):
            nulls = FUNCTIONS[name].nulls
            strict = nulls == "null in, null out" or name == "not"
            return strict and any(loss_is_null(a) for a in args)
    return False


def speaks_of_outcome(core: Core) -> bool:
    """Whether a predicate asks how a run ended; `meta`, derived and joined columns may."""
    known = columns(core, Level.TRAJECTORY)
    return bool(known & OUTCOME_FIELDS or known - TRAJECTORY.keys()) or any(
        isinstance(n, Path) and n.base.name == "meta" for n in walk(core)
    )


# ---- filters that can keep nothing ----

_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def never_true(core: Core) -> bool:
    """Whether no row at all can make it true: constants, or ranges that exclude each other."""
    match core:
        case Const(value=value):
            return core.type is not Type.UNKNOWN and (value is None or value is False)
        case Apply(function="or", args=args):
            return all(never_true(a) for a in args)
        case Apply(function="and", args=args) if any(never_true(a) for a in args):
            return True
    ranges: dict[Core, tuple[float, bool, float, bool]] = {}
    words: dict[Core, set[str]] = {}
    for part in _conjuncts(core):
        bound = _bound(part)
        if bound is not None and not _narrow(ranges, *bound):
            return True
        choice = _choice(part)
        if choice is not None:
            column, allowed = choice
            words[column] = words.get(column, allowed) & allowed
            if not words[column]:
                return True
    return False


def always_true(core: Core) -> bool:
    """Whether the complement is never true and the value is never null: such a `drop` keeps nothing."""
    return isinstance(core, Const) and core.value is True


def _conjuncts(core: Core) -> Iterator[Core]:
    if isinstance(core, Apply) and core.function == "and":
        for arg in core.args:
            yield from _conjuncts(arg)
    else:
        yield core


def _bound(part: Core) -> tuple[Core, str, float] | None:
    """`column < 5`, `5 > column` → (column, "<", 5)."""
    match part:
        case Apply(
            function=op,
            args=(Column() | Quantifier(kind="count") as column, Const(value=int() | float() as value)),
        ):
            if op in _MIRROR and column.type.is_number and not isinstance(value, bool):
                return column, op, value
        case Apply(
            function=op,
            args=(Const(value=int() | float() as value), Column() | Quantifier(kind="count") as column),
        ):
            if op in _MIRROR and column.type.is_number and not isinstance(value, bool):
                return column, _MIRROR[op], value
    return None


def _narrow(ranges: dict[Core, tuple[float, bool, float, bool]], column: Core, op: str, value: float) -> bool:
    """Cuts the column's range (low, low is in, high, high is in); False when nothing is left."""
    low, low_in, high, high_in = ranges.get(column, _start(column))
    if op in (">", ">=", "==") and (value, op == ">") >= (low, not low_in):
        low, low_in = value, op != ">"
    if op in ("<", "<=", "==") and (value, op != "<") <= (high, high_in):
        high, high_in = value, op != "<"
    ranges[column] = low, low_in, high, high_in
    if column.type is Type.INT and math.isfinite(low) and math.isfinite(high):
        least = math.ceil(low) if low_in else math.floor(low) + 1
        most = math.floor(high) if high_in else math.ceil(high) - 1
        return least <= most
    return low < high or (low == high and low_in and high_in)


def _start(column: Core) -> tuple[float, bool, float, bool]:
    if isinstance(column, Quantifier):
        return (0.0 if column.kind == "count" else -math.inf), True, math.inf, True
    assert isinstance(column, Column)
    low, high = BOUNDS.get(column.name, (-math.inf, math.inf))
    return low, True, high, True


def _choice(part: Core) -> tuple[Core, set[str]] | None:
    match part:
        case Apply(function="==", args=(Column() as column, Const(value=str() as word))):
            return column, {word}
        case Apply(function="one_of", args=(Column(type=Type.TEXT) as column, *choices)):
            return column, {c.value for c in choices if isinstance(c, Const) and isinstance(c.value, str)}
    return None
