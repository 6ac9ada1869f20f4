"""JSON values of `args` and `meta`: the canonical form, paths into it, and the text of calls.

What is trained on and exported is the source's own text; this form is for comparing and for paths. It differs from
plain JSON where two parsers would not agree:

- a number that is no finite double (NaN, Infinity, 1e400) makes the whole text invalid, as does any syntax error and
  nesting deeper than `MAX_DEPTH`;
- of duplicate keys the last one counts;
- an integer (no fraction, no exponent) beyond 2**53 on either side of 0 is the string of its digits;
- a lone surrogate, in a key or a string, is U+FFFD.

A number has one spelling: an integral value up to 2**53 is a plain integer (1.0, 1e0 and 1 are `1`, -0.0 is `0`), any
other the shortest digits that read back as the same double (`0.1`, `1e-07`, `1e+17`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import polars as pl

MAX_DEPTH: Final = 256
MAX_EXACT: Final = 2**53

KIND: Final = pl.Enum(["null", "string", "number", "bool", "object", "array", "empty"])
"""What stands at a path. `null`: JSON null, nothing there, or no valid document; `empty`: `{}` or `[]`."""

# --- paths ----------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r'\.?(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<index>[0-9]{1,9})\]|\[(?P<key>"(?:[^"\\]|\\.)*")\]')


class PathSyntaxError(ValueError):
    """A path that cannot be read; `start` is the offset, in code points, of what is wrong."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Steps into a JSON value: a `str` enters an object, an `int` (from 0) a list. No steps: the value itself."""

    steps: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        """The path as a spec writes it, `x.y["k-1"][0]`; `$` without any step."""
        return "".join(map(_step_text, self.steps)).removeprefix(".") or "$"


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def parse_path(text: str) -> JsonPath:
    """Read what follows `args` or `meta` in a spec: `x.y["k-1"][0]`, `.x`, `["k"].y`, or `$` for the value itself.

    The inverse of `str(path)`. Raises PathSyntaxError.
    """
    if text == "$":
        return JsonPath()
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (at > 0 and match["name"] and text[at] != "."):
            raise PathSyntaxError(f'expected .name, ["key"] or [0] at {text[at : at + 12]!r}', at)
        try:
            steps.append(int(match["index"]) if match["index"] else match["name"] or _mend(json.loads(match["key"])))
        except json.JSONDecodeError as error:
            raise PathSyntaxError(f"a key is a JSON string: {error.msg}", at + 1 + error.pos) from None
        at = match.end()
    if not steps:
        raise PathSyntaxError("a path needs a step", 0)
    return JsonPath(tuple(steps))


# --- reading --------------------------------------------------------------------------------------------------------

_INVALID: Final = object()
# orjson reads an integer of 20 digits as a double and refuses lone surrogates; such texts take the slow way.
_LONG_DIGITS = re.compile("[0-9]{19}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")


def _depth(text: str) -> int:
    deepest = depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _finite(spelling: str) -> float:
    value = float(spelling)
    if value in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return value


def _whole(spelling: str) -> int | str:
    # Never int() of thousands of digits: Python limits it, and the result would be a string anyway.
    if len(spelling) > 17 or abs(value := int(spelling)) > MAX_EXACT:
        return spelling
    return value


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_slow_decoder = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_refuse)


def _mend(value: Any) -> Any:
    """Replace lone surrogates; the decoder has already joined the pairs."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def _read_slowly(text: str) -> Any:
    try:
        return _mend(_slow_decoder.decode(text))
    except ValueError:
        return _INVALID


def _read(text: str, long_digits: bool | None = None) -> Any:
    """The value of a text, or `_INVALID`; integers beyond 2**53 may still be ints, floats are finite.

    `long_digits`: whether it has `_LONG_DIGITS`, where the caller knows.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return _INVALID
    if _LONG_DIGITS.search(text) if long_digits is None else long_digits:
        return _read_slowly(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _read_slowly(text) if "\\u" in text else _INVALID


def _number(value: float) -> float | int | str:
    """The canonical form of an int or float: what `json` then writes is its one spelling."""
    if abs(value) <= MAX_EXACT:
        return int(value) if value == int(value) else value
    return str(value) if isinstance(value, int) else value


def _canonical_value(value: Any) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is dict:
        return {key: _canonical_value(item) for key, item in value.items()}
    if kind is list:
        return [_canonical_value(item) for item in value]
    return _number(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def canonical(text: str, long_digits: bool | None = None) -> str | None:
    """The canonical text of a JSON text, None when it is invalid: equal values have equal canonical texts.

    Keys are sorted by code point (their order says nothing), no white space, numbers in their one spelling, only what
    JSON must escape is escaped. It is a fixed point: `canonical(canonical(t)) == canonical(t)`.
    """
    value = _read(text, long_digits)
    return None if value is _INVALID else _encode(_canonical_value(value))


def canonical_series(texts: pl.Series) -> pl.Series:
    """`canonical` of each text: String -> String; null stays null and invalid texts become null."""
    return _each_once(texts, lambda text, long: (canonical(text, long),), {"canonical": pl.String})["canonical"]


def defects(text: str) -> tuple[str, ...]:
    """What the canonical form had to settle, sorted; for adapters, not for hot loops.

    `invalid_json` alone, or any of `big_integer`, `duplicate_key`, `lone_surrogate`.
    """
    if _read(text) is _INVALID:
        return ("invalid_json",)
    found: set[str] = set()

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(items)) < len(items):
            found.add("duplicate_key")
        return dict(items)

    def whole(spelling: str) -> int | str:
        value = _whole(spelling)
        if isinstance(value, str):
            found.add("big_integer")
        return value

    value = json.loads(text, object_pairs_hook=pairs, parse_int=whole)
    if _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        found.add("lone_surrogate")
    return tuple(sorted(found))


# --- extraction -----------------------------------------------------------------------------------------------------


def _each_once(
    texts: pl.Series, kernel: Callable[[str, bool], tuple[Any, ...]], schema: dict[str, Any]
) -> pl.DataFrame:
    """Apply a kernel to every distinct text once: one row a text, in order, all null for a null text.

    Texts with long runs of digits are found for all at once: that search is most of what reading one would cost.
    """
    known = texts.drop_nulls().unique()
    rows = list(map(kernel, known.to_list(), known.str.contains(_LONG_DIGITS.pattern).to_list()))
    names = list(schema)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    results = pl.DataFrame(
        [pl.Series(name, list(c), dtype=schema[name]) for name, c in zip(names, columns, strict=True)]
    ).with_columns(known.alias("\0text"))
    frame = pl.DataFrame({"\0text": texts})
    return frame.join(results, on="\0text", how="left", maintain_order="left").select(names)


def _scalar(value: Any) -> tuple[str | None, str]:
    """Text and kind of a value at a path."""
    if value is None:
        return None, "null"
    kind = type(value)
    if kind is str:
        return value, "string"
    if kind is bool:
        return ("true" if value else "false"), "bool"
    if kind is dict:
        return None, "object" if value else "empty"
    if kind is list:
        return None, "array" if value else "empty"
    number = _number(value)
    return (number, "string") if isinstance(number, str) else (repr(number), "number")


def _walk(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(step, str):
            if type(value) is not dict:
                return None
            value = value.get(step)
        elif isinstance(step, int) and type(value) is list and step < len(value):
            value = value[step]
        else:
            return None
    return value


def kind_column(path: JsonPath) -> str:
    """The name of the column that holds the kind at a path; its text is in the column `str(path)`."""
    return f"{path}#kind"


def extract(texts: pl.Series, paths: Sequence[JsonPath]) -> pl.DataFrame:
    """Everything a spec reads from one JSON column, in one pass: String -> two columns per path, rows as given.

    For each path `str(path)`: String, the scalar as text (a string as itself, a number in its one spelling, `true` or
    `false`), null for anything else; and `kind_column(path)`: KIND, never null. A text that repeats is parsed once.
    A null text, an invalid one and a path that leads nowhere all have the kind `null`. Raises ValueError when a path
    comes twice.
    """
    if len(set(paths)) < len(paths):
        raise ValueError("a path comes twice")
    steps = [path.steps for path in paths]
    nothing = (None, "null") * len(paths)

    def kernel(text: str, long_digits: bool) -> tuple[str | None, ...]:
        value = _read(text, long_digits)
        if value is _INVALID:
            return nothing
        return tuple([part for way in steps for part in _scalar(_walk(value, way))])

    schema: dict[str, Any] = {}
    for path in paths:
        schema |= {str(path): pl.String, kind_column(path): KIND}
    frame = _each_once(texts, kernel, schema) if paths else pl.DataFrame(height=len(texts))
    return frame.with_columns(pl.col(kind_column(path)).fill_null("null") for path in paths)


def as_number(text: pl.Expr, kind: pl.Expr) -> pl.Expr:
    """The Float64 of an extracted value for a comparison with a number: null unless its kind is `number`."""
    return pl.when(kind == "number").then(text).cast(pl.Float64)


def as_int(text: pl.Expr, kind: pl.Expr | None = None) -> pl.Expr:
    """`as int` of an extracted value, or of a plain text when there is no `kind`: -> Int64.

    A string of the form `[+-]?[0-9]{1,18}`, or a JSON number that is integral and below 10**18 in size; else null.
    """
    written = pl.when(text.str.contains(r"^[+-]?[0-9]{1,18}$")).then(text.str.strip_prefix("+")).cast(pl.Int64)
    if kind is None:
        return written
    number = as_number(text, kind)
    integral = pl.when((number == number.floor()) & (number.abs() < 1e18)).then(number).cast(pl.Int64)
    return pl.when(kind == "string").then(written).when(kind == "number").then(integral)


def is_null(kind: pl.Expr) -> pl.Expr:
    """`is null` of a path."""
    return kind == "null"


def is_empty(text: pl.Expr, kind: pl.Expr) -> pl.Expr:
    """`is empty` of a path: "", `{}` or `[]`; false for null."""
    return (kind == "empty") | ((kind == "string") & (text == "")).fill_null(False)


# --- calls ----------------------------------------------------------------------------------------------------------


def call_text(name: str | None, args_json: str | None, args_raw: str | None = None) -> str:
    """One call as text: `name({"a":1})` with canonical arguments, `name()` without any.

    Arguments that are not valid JSON stand as the source wrote them, so that two such calls can still be equal.
    """
    args = (None if args_json is None else canonical(args_json) or args_json) or args_raw or ""
    return f"{name or ''}({args})"


def calls_text(calls: pl.Series) -> pl.Series:
    """The calls of each turn as text: List(Struct{name, args_json[, args_raw]}) -> String "calls_text".

    The `call_text` of every call in order, joined by newlines; null when there is no call. Joining the non-null texts
    of turns by newlines gives the text of a trajectory. Each distinct argument text is parsed once.
    """
    rows = pl.DataFrame({"row": pl.int_range(len(calls), dtype=pl.UInt32, eager=True), "call": calls})
    flat = rows.explode("call", empty_as_null=False, keep_nulls=False).unnest("call")
    raw = pl.col("args_raw") if "args_raw" in flat.columns else pl.lit(None, dtype=pl.String)
    args = pl.coalesce(canonical_series(flat["args_json"]), "args_json", raw, pl.lit(""))
    texts = flat.select("row", text=pl.concat_str(pl.col("name").fill_null(""), pl.lit("("), args, pl.lit(")")))
    joined = texts.group_by("row", maintain_order=True).agg(calls_text=pl.col("text").str.join("\n"))
    return rows.select("row").join(joined, on="row", how="left", maintain_order="left")["calls_text"]


def calls_text_of(calls: Iterable[tuple[str | None, str | None]]) -> str | None:
    """The plain-Python reference of `calls_text` for one list of (name, args_json)."""
    return "\n".join(call_text(name, args) for name, args in calls) or None
