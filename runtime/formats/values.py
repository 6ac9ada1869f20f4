"""Single values of a record: text, numbers, times, tool arguments and tool schemas."""

from __future__ import annotations

import ast
import threading
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from .json_text import Json, JsonError, NonFinite, Reader, Repeated, Spelled, encode, holds
from .model import Call

_LITERAL_LIMIT = 1_000_000  # characters; literal_eval needs about a hundred times as many bytes
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Local(threading.local):
    """One reader a thread: a reader's notes are not shared."""

    def __init__(self) -> None:
        self.reader = Reader()


_local = _Local()


def text_of(value: Json) -> str | None:
    """An identifier as text: strings as they are, numbers as spelled; anything else is null."""
    if isinstance(value, str):
        return value
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return None


def number_of(value: Json, notes: set[str] | None = None) -> float | None:
    """A finite number, zero without its sign; a boolean counts as 0 or 1. Anything else but null notes `bad_value`."""
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if isfinite(number):
            return number + 0.0
        return None  # the reader has noted `nan`
    if value is not None and notes is not None:
        notes.add("bad_value")
    return None


def integer_of(value: Json, notes: set[str] | None = None, bits: int = 63) -> int | None:
    """An integer of the given size; `2.0` counts, `2.5` does not and is noted as `bad_value`."""
    number = number_of(value, notes)
    if number is None:
        return None
    whole = value if isinstance(value, int) else int(number)
    if whole == number and abs(whole) < 2**bits:
        return int(whole)
    if notes is not None:
        notes.add("bad_value")
    return None


def flag_of(value: Json, notes: set[str] | None = None) -> bool | None:
    """A JSON boolean; anything else but null is noted as `bad_value`."""
    if isinstance(value, bool):
        return value
    if value is not None and notes is not None:
        notes.add("bad_value")
    return None


def time_of(value: Json, notes: set[str] | None = None) -> int | None:
    """Microseconds since the epoch from ISO 8601 text (UTC where it names no zone) or an epoch in s, ms, us or ns."""
    moment: int | None = None
    if isinstance(value, str) and value:
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            moment = None
        else:
            delta = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH
            moment = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    elif isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        size = abs(value)
        if size < 1e11:
            moment = round(value * 1_000_000)
        elif size < 1e14:
            moment = round(value * 1_000)
        elif size < 1e17:
            moment = int(value)
        elif size < 1e20:
            moment = int(value) // 1_000
    if moment is None and value is not None and value != "" and notes is not None:
        notes.add("bad_value")
    return moment


def call_of(name: Json, args: Json, call_id: Json, notes: set[str]) -> Call:
    """A call with its arguments read, and everything odd about it noted."""
    spelled = text_of(name)
    if not spelled:
        notes.add("missing_call_name")
    call = Call(text_of(call_id), spelled or None, None)
    _read_args(call, args, notes)
    return call


def _read_args(call: Call, args: Json, notes: set[str]) -> None:
    if args is None or args == "":
        call.args_state = "none"
        notes.add("missing_args")
    elif isinstance(args, str):
        _read_args_text(call, args, notes)
    elif isinstance(args, dict):
        if "nan" in notes and holds(args, NonFinite):
            call.args_state, call.args_raw = "invalid", encode(args, raw=True)
            notes.add("invalid_args")
        else:
            call.args_json = encode(args)
            if "duplicate_key" in notes and holds(args, Repeated):
                call.args_raw = encode(args, raw=True)
    else:
        call.args_state, call.args_raw = "invalid", encode(args, raw=True)
        notes.add("non_object_args")


def _read_args_text(call: Call, text: str, notes: set[str]) -> None:
    value, found = decode_text(text)
    if isinstance(value, dict) and "nan" not in found:
        call.args_json = text
        if found:  # a repeated key, half a surrogate pair: the text says more than its value
            call.args_json, call.args_raw = encode(value), text
            notes |= found
        return
    call.args_raw = text
    if isinstance(value, str):
        inner, inner_found = decode_text(value)
        if isinstance(inner, dict) and "nan" not in inner_found:
            call.args_json, call.args_state = encode(inner), "repaired"
            notes |= found | inner_found | {"double_encoded_args"}
            return
    if value is MISSING:
        literal = literal_of(text)
        if isinstance(literal, dict):
            call.args_json, call.args_state = encode(literal), "repaired"
            notes.add("repr_args")
            return
    call.args_state = "invalid"
    notes |= found
    notes.add("invalid_args" if value is MISSING or isinstance(value, dict) else "non_object_args")


class _Missing:
    """The type of MISSING: no value at all, which null is not."""


MISSING = _Missing()


def decode_text(text: str) -> tuple[Json, set[str]]:
    """The value of a JSON text inside a record, and the reader's notes; MISSING when it is not JSON, or too deep."""
    reader = _local.reader
    reader.notes = set()
    try:
        value = reader.decode(text)
        if isinstance(value, dict | list):
            encode(value, raw=True)
    except JsonError:
        return MISSING, set()
    return value, reader.notes


def literal_of(text: str) -> Any:
    """The JSON-like value of a Python literal; MISSING for anything else, sets and bytes included."""
    if len(text) > _LITERAL_LIMIT:
        return MISSING
    try:
        value = _json_like(ast.literal_eval(text.strip()))
        encode(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return MISSING
    return value


def _json_like(value: Any) -> Json:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else Spelled(str(value))
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json_like(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _json_like(item) for key, item in value.items()}
    raise TypeError("not a JSON value")


def tools_of(value: Json, notes: set[str]) -> str | None:
    """`tools_json`: a JSON list of {"type": "function", "function": {...}} from a list, or from its JSON text.

    A bare function object is wrapped, a tool of another type stays as it is; what is not a list of objects is noted as
    `invalid_tools`. No tools: null.
    """
    if isinstance(value, str):
        value = decode_text(value)[0] if value.strip() else None
    if value is None:
        return None
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        notes.add("invalid_tools")
        return None
    if not value:
        return None
    return encode([_wrapped(tool) if "name" in tool and "function" not in tool else tool for tool in value])


def _wrapped(tool: dict[str, Json]) -> dict[str, Json]:
    if tool.get("type") == "function":
        tool = {key: item for key, item in tool.items() if key != "type"}
    return {"type": "function", "function": tool}


def json_or_null(value: Json) -> str | None:
    """The value as JSON text; null stays null."""
    return None if value is None else encode(value)


def object_json(members: dict[str, Json]) -> str | None:
    """Left-over members as a JSON object, without those that are null; null when none is left."""
    kept = {key: item for key, item in members.items() if item is not None}
    return encode(kept) if kept else None
