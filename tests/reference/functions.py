"""Scalar functions and window aggregates of the reference: None is null."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from curatec.compiler.types import Type
from tests.reference.values import fit

BLANK = " \t\r\n\f"
MICRO = 1_000_000


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _numbers(args: Sequence[Any], types: Sequence[Type]) -> list[Any]:
    """An int beside a float reads as a float."""
    return [float(a) for a in args] if Type.FLOAT in types else list(args)


def _add(a: Any, b: Any) -> Any:
    return fit(a + b) if isinstance(a, int) else finite(a + b)


def _subtract(a: Any, b: Any) -> Any:
    return fit(a - b) if isinstance(a, int) else finite(a - b)


def _multiply(a: Any, b: Any) -> Any:
    return fit(a * b) if isinstance(a, int) else finite(a * b)


def _divide(a: Any, b: Any) -> float | None:
    return finite(float(a) / float(b)) if b else None


def _power(a: Any, b: Any) -> float | None:
    try:
        return finite(math.pow(a, b))
    except (OverflowError, ValueError):
        return None


def _lower(text: str) -> str:
    """One code point after the other; a capital sigma has no final form."""
    return "".join(char.lower() for char in text)


def _slice(text: str, start: int, count: int | None = None) -> str:
    places = range(start if start >= 0 else len(text) + start, len(text))
    kept = places if count is None else places[: max(count, 0)]
    return "".join(text[i] for i in kept if i >= 0)


def _truncate(text: str, n: int, options: dict[str, Any]) -> str:
    keep, marker, n = options.get("keep", "start"), options.get("marker", ""), max(n, 0)
    if len(text) <= n:
        return text
    if keep == "start":
        return text[:n] + marker
    if keep == "end":
        return marker + text[len(text) - n :]
    return text[: n - n // 2] + marker + text[len(text) - n // 2 :]


def _pattern(options: dict[str, Any]) -> re.Pattern[str]:
    return re.compile(options["pattern"], re.ASCII)


def _extract(text: str, options: dict[str, Any]) -> str | None:
    pattern = _pattern(options)
    found = pattern.search(text)
    if found is None:
        return None
    return found[options.get("group", min(pattern.groups, 1))] or ""


def _replace(text: str, options: dict[str, Any]) -> str:
    def filled(match: re.Match[str]) -> str:
        return re.sub(r"\$(\$|\{[0-9]\})", lambda m: "$" if m[1] == "$" else match[int(m[1][1])] or "", options["with"])

    return _pattern(options).sub(filled, text)


def _as_int(value: Any) -> int | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else None
    if isinstance(value, int):
        return value
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value, re.ASCII) else None


def _as_float(value: Any) -> float | None:
    if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", value, re.ASCII):
        return None
    return finite(float(value))


def _as_text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
NUMERIC: dict[str, Callable[..., Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "**": _power,
    "negative": lambda x: fit(-x) if isinstance(x, int) else -x,
    "abs": lambda x: fit(abs(x)) if isinstance(x, int) else abs(x),
    "ln": lambda x: math.log(x) if x > 0 else None,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    "round": lambda x: float(round(x)),
    "least": min,
    "greatest": max,
}
STRICT: dict[str, Callable[..., Any]] = {
    "lower": lambda o, text: _lower(text),
    "trim": lambda o, text: text.strip(BLANK),
    "length": lambda o, value: len(value),
    "slice": lambda o, text, start, count=None: _slice(text, start, count),
    "truncate": lambda o, text, n: _truncate(text, n, o),
    "contains": lambda o, text, part: part in text,
    "starts_with": lambda o, text, part: text.startswith(part),
    "ends_with": lambda o, text, part: text.endswith(part),
    "extract": lambda o, text: _extract(text, o),
    "replace": lambda o, text: _replace(text, o),
    "matches": lambda o, text: _pattern(o).search(text) is not None,
    "has": lambda o, items, item: item in items,
    "join": lambda o, items: o["between"].join(items),
    "one_of": lambda o, value, *choices: value in choices,
    "as_int": lambda o, value: _as_int(value),
    "as_float": lambda o, value: _as_float(value),
    "as_text": lambda o, value: _as_text(value),
}


def apply(name: str, args: Sequence[Any], options: dict[str, Any], types: Sequence[Type]) -> Any:
    """A function of the registry on values (semantics 10, 11, 14, 16–21)."""
    match name:
        case "and":
            return False if False in args else None if None in args else True
        case "or":
            return True if True in args else None if None in args else False
        case "not":
            return None if args[0] is None else not args[0]
        case "concat":
            return "".join(a or "" for a in args)
        case "is_null":
            return args[0] is None
        case "is_empty":
            return not args[0]
        case "coalesce":
            found = next((a for a in args if a is not None), None)
            return found if found is None else _numbers([found], types)[0]
        case "if":
            chosen = args[1] if args[0] is True else args[2]
            return chosen if chosen is None else _numbers([chosen], types[1:])[0]
    if any(a is None for a in args):
        return None
    if name in COMPARE:
        return COMPARE[name](*_numbers(args, types))
    if name in NUMERIC:
        return NUMERIC[name](*_numbers(args, types))
    return STRICT[name](options, *(_numbers(args, types) if name == "one_of" else args))


# ---- window aggregates (semantics 12, 13, 15, 16) ----


def micro(x: float) -> int:
    """round_even(x · 10⁶)."""
    return fit(round(float(x) * 1e6)) if math.isfinite(float(x) * 1e6) else fit(2**63)


def total(values: Sequence[float]) -> int:
    return fit(sum(micro(v) for v in values))


def mean(values: Sequence[float]) -> float | None:
    return float(total(values)) / float(len(values) * MICRO) if values else None


def std(values: Sequence[float]) -> float | None:
    if not values:
        return None
    centre = float(total(values)) / float(len(values) * MICRO)
    squares = float(total([(float(v) - centre) * (float(v) - centre) for v in values])) / 1e6
    return math.sqrt(squares / float(len(values) - 1)) if len(values) > 1 else None


def median(values: Sequence[float]) -> float | None:
    ordered = sorted(map(float, values))
    middle = len(ordered) // 2
    if not ordered:
        return None
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def aggregate(name: str, values: Sequence[Any], type_: Type) -> Any:
    """One aggregate over the values of a group, nulls among them."""
    known = [v for v in values if v is not None]
    match name:
        case "count":
            return len(values)
        case "share":
            return known.count(True) / len(values)
        case "sum":
            return fit(sum(known)) if type_ is Type.INT else float(total(known)) / 1e6
        case "mean":
            return mean(known)
        case "std":
            return std(known)
        case "median":
            return median(known)
        case "min":
            return min(known, default=None)
        case "max":
            return max(known, default=None)
    raise AssertionError(name)


def rank(values: Sequence[Any], value: Any, descending: bool) -> int | None:
    """1 for the first; equal values share the smaller rank; null has none."""
    if value is None:
        return None
    return 1 + sum(1 for v in values if v is not None and (v > value if descending else v < value))
