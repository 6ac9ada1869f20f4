"""JSON values, hashes and draws of the reference, from their written definitions."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from xxhash import xxh3_64_intdigest, xxh3_128_hexdigest

EXACT = 2**53
INVALID = object()
NOTHING = (None, "null")


class Overflow(ArithmeticError):
    """A number that does not fit in 64 bits."""


def fit(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Overflow(value)
    return value


# ---- JSON (semantics 22) ----


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _constant(text: str) -> float:
    raise ValueError(text)


def _mended(value: Any) -> Any:
    match value:
        case str():
            return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value)
        case list():
            return [_mended(item) for item in value]
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case bool() | None:
            return value
        case int():
            return value if abs(value) <= EXACT else str(value)
        case float():
            return int(value) if value.is_integer() and abs(value) <= EXACT else value
    raise AssertionError(value)


def read(text: str | None) -> Any:
    """The canonical value of a JSON text, or INVALID. The last of equal keys counts."""
    if text is None:
        return INVALID
    try:
        return _mended(json.loads(text, parse_float=_float, parse_constant=_constant))
    except ValueError:
        return INVALID


def canonical(text: str) -> str | None:
    value = read(text)
    if value is INVALID:
        return None
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def at(text: str | None, steps: tuple[str | int, ...]) -> tuple[str | None, str]:
    """Text and kind of what stands at a path; objects and lists have no text."""
    value = read(text)
    if value is INVALID:
        return NOTHING
    for step in steps:
        try:
            inside = isinstance(value, dict if isinstance(step, str) else list)
            value = value[step] if inside else None
        except LookupError:
            return NOTHING
    match value:
        case None:
            return NOTHING
        case bool():
            return ("true" if value else "false"), "bool"
        case str():
            return value, "string"
        case int() | float():
            return repr(value), "number"
        case dict():
            return None, "object" if value else "empty"
    return None, "array" if value else "empty"


def call_text(call: dict[str, Any]) -> str:
    json_text, raw = call["args_json"], call["args_raw"]
    args = raw or ""
    if json_text is not None:
        args = canonical(json_text) or json_text
    return f"{call['name'] or ''}({args})"


# ---- hashes and draws (semantics 24, 25) ----


def micros(iso: str) -> int:
    """Microseconds since the epoch."""
    when = datetime.fromisoformat(iso)
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def encode(value: Any, time: bool = False) -> str:
    match value:
        case None:
            return "n;"
        case bool():
            return f"b{int(value)};"
        case int():
            return f"{'t' if time else 'i'}{value};"
        case float():
            return f"f{struct.unpack('<q', struct.pack('<d', value + 0.0))[0] if value else 0};"
        case str():
            return f"s{len(value.encode())}:{value}"
    return f"l{len(value)};" + "".join(encode(item) for item in value)


def key(values: list[Any], times: list[bool] | None = None) -> str:
    """32 hex digits over the canonical bytes of a tuple."""
    flags = times or [False] * len(values)
    return xxh3_128_hexdigest("".join(encode(v, t) for v, t in zip(values, flags, strict=True)).encode())


def draw(verb: str, seed: int, digest: str) -> int:
    """63 bits from verb, seed and digest."""
    text = f"s{len(verb)}:{verb}i{seed};s{len(digest.encode())}:{digest}"
    return xxh3_64_intdigest(text.encode()) // 2


def threshold(share: float) -> int:
    return int(share * 2.0**63)


def tokens(text: str | None) -> int:
    """The estimate: UTF-8 bytes / 4, rounded up."""
    return -(-len((text or "").encode()) // 4)
