"""JSON read and written without losing anything a spec could ask for.

Key order is kept, numbers keep their spelling (`1.0`, `1e5`, integers of any length), and what JSON does not allow but
files hold is read and noted: NaN, repeated keys, half surrogate pairs. The standard library's C scanner does the work;
its hooks see every object and every number, which faster readers do not offer.

Source of the notes: the names are those of `defects.DEFECTS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isinf
from typing import Any

import orjson

Json = Any
"""A decoded value: None, bool, int, float, str, list, dict; a number with an unusual spelling is a `Spelled`."""

TOO_DEEP = "nested too deeply"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ESCAPE = re.compile("[\udc80-\udcff]+")


class JsonError(ValueError):
    """Text that is not JSON. `position` is an offset in code points; `cut`: the text may merely be incomplete."""

    def __init__(self, reason: str, position: int = 0, cut: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.cut = cut


class Spelled(float):
    """A number that keeps its source text, because a float or a 64-bit integer would write it otherwise."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Spelled:
        number = float.__new__(cls, text)
        number.text = text
        return number


class NonFinite(Spelled):
    """NaN, an infinity, or a number too large for a double: null everywhere but in raw text."""

    __slots__ = ()


class Repeated(dict[str, Json]):
    """An object in which a key stands more than once: the last one counts, `pairs` has all of them in order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _float(text: str) -> float:
    number = float(text)
    if isinf(number):
        return NonFinite(text)
    # Both writers agree with repr() where it uses no exponent; everything else keeps its own text.
    return number if repr(number) == text and "e" not in text else Spelled(text)


def _int(text: str) -> int | Spelled:
    if len(text) < 19 and text != "-0":
        return int(text)
    if len(text) <= 20 and -(2**63) <= int(text) < 2**64 and text != "-0":
        return int(text)
    return Spelled(text)


class Reader:
    """A decoder that notes defects. `notes` collects them until the caller clears it. Not to be shared by threads."""

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._pairs, parse_float=self._noted_float, parse_int=_int, parse_constant=self._constant
        )

    def decode(self, text: str) -> Json:
        """The one value that `text` holds. Raises JsonError."""
        return self._finish(text, self._guard(self._decoder.decode, text))

    def decode_at(self, text: str, position: int) -> tuple[Json, int]:
        """The value that starts at `position`, and where it ends. Raises JsonError."""
        value, end = self._guard(self._decoder.raw_decode, text, position)
        return self._finish(text, value, position, end), end

    def _guard(self, decode: Callable[..., Any], text: str, *position: int) -> Any:
        try:
            return decode(text, *position)
        except json.JSONDecodeError as error:
            cut = error.pos >= len(text) - 12 or error.msg.startswith("Unterminated string")
            raise JsonError(error.msg[:1].lower() + error.msg[1:], error.pos, cut) from None
        except RecursionError:
            raise JsonError(TOO_DEEP) from None

    def _finish(self, text: str, value: Json, start: int = 0, end: int | None = None) -> Json:
        stop = len(text) if end is None else end
        if _SURROGATE_ESCAPE.search(text, start, stop) or (not text.isascii() and _SURROGATE.search(text, start, stop)):
            try:
                return _mend(value, self.notes)
            except RecursionError:
                raise JsonError(TOO_DEEP) from None
        return value

    def _pairs(self, pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.notes.add("duplicate_key")
        return Repeated(pairs)

    def _noted_float(self, text: str) -> float:
        number = _float(text)
        if isinstance(number, NonFinite):
            self.notes.add("nan")
        return number

    def _constant(self, name: str) -> NonFinite:
        self.notes.add("nan")
        return NonFinite(name)


def mend_text(text: str, notes: set[str]) -> str:
    """`text` with lone surrogates replaced by U+FFFD. U+DC80 to U+DCFF stand for bytes that are no UTF-8."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    if _BYTE_ESCAPE.search(text):
        notes.add("invalid_utf8")
        text = _BYTE_ESCAPE.sub("�", text)
        if not _SURROGATE.search(text):
            return text
    notes.add("lone_surrogate")
    return _SURROGATE.sub("�", text)


def _mend(value: Json, notes: set[str]) -> Json:
    if isinstance(value, str):
        return mend_text(value, notes)
    if isinstance(value, list):
        return [_mend(item, notes) for item in value]
    if isinstance(value, Repeated):
        return Repeated([(mend_text(key, notes), _mend(item, notes)) for key, item in value.pairs])
    if isinstance(value, dict):
        return {mend_text(key, notes): _mend(item, notes) for key, item in value.items()}
    return value


def _spell(value: object) -> orjson.Fragment:
    if isinstance(value, NonFinite):
        return orjson.Fragment(b"null")
    if isinstance(value, Spelled):
        return orjson.Fragment(value.text)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def _spell_raw(value: object) -> orjson.Fragment:
    if isinstance(value, Spelled):
        return orjson.Fragment(value.text)
    if isinstance(value, Repeated):
        members = (f"{encode(key)}:{encode(item, raw=True)}" for key, item in value.pairs)
        return orjson.Fragment("{" + ",".join(members) + "}")
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def encode(value: Json, *, raw: bool = False) -> str:
    """Compact JSON text of a decoded value, numbers as in the source. With `raw`, NaN and repeated keys stay too.

    Raises JsonError when the value is nested more than 250 levels deep.
    """
    try:
        if raw:
            return orjson.dumps(value, default=_spell_raw, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
        return orjson.dumps(value, default=_spell).decode()
    except TypeError as error:
        reason = TOO_DEEP if "ecursion" in str(error) else str(error)
        raise JsonError(reason) from None


def holds(value: Json, kind: type[NonFinite | Repeated]) -> bool:
    """True when a value of that kind (a NaN, a repeated key) stands anywhere in the value."""
    if isinstance(value, kind):
        return True
    if isinstance(value, list):
        return any(holds(item, kind) for item in value)
    return isinstance(value, dict) and any(holds(item, kind) for item in value.values())
