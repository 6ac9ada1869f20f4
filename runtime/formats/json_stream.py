"""Records out of JSON files of any size: lines, one array, one object, or an object around a long list.

A file's shape is decided by its content. Lines split at `\\n` only (U+2028 may stand inside a string). An array, and
the long list of an object such as tau2's `simulations`, is read one element at a time: memory is bounded by the largest
element, not by the file. A damaged line or element is given back as `Broken` and reading goes on after it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO, Literal

from .json_text import Json, JsonError, Reader
from .model import Container

RAW_LIMIT = 64 * 1024  # characters of a broken record that are kept
CHUNK = 1 << 20
WHOLE_LIMIT = 64 << 20  # an object up to this size is decoded in one piece
_LINE_LIMIT = 64 << 20  # a first line longer than this is not looked at whole
_LINES_TRIED = 20
_DOUBT_LIMIT = 16 << 20
_BOM = codecs.BOM_UTF8
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?P<close>"?)|[\[\]{},]', re.DOTALL)  # an open string is one token: no rescans

Open = Callable[[], BinaryIO]
Shape = Literal["empty", "lines", "array", "object"]


@dataclass(slots=True)
class Record:
    """One decoded record. `line` is its line, or its 1-based place in an array; `size` is its text in characters."""

    line: int
    value: Json
    notes: set[str]
    size: int
    container: Container
    document: dict[str, Json] | None = None


@dataclass(slots=True)
class Broken:
    """Text that could not be read as a record. Line 0 stands for the file as a whole."""

    line: int
    reason: str
    raw: str = ""


Item = Record | Broken


def cap(raw: str) -> str:
    """Raw text as a reject keeps it: at most 64 K characters, with a marker that says how much is missing."""
    if len(raw) <= RAW_LIMIT:
        return raw
    return f"{raw[:RAW_LIMIT]}…[{len(raw) - RAW_LIMIT} more characters]"


def read_json(open_file: Open, elements: frozenset[str]) -> Iterator[Item]:
    """The records of a JSON file, in order. `elements` are the members whose lists hold records. Raises OSError."""
    with open_file() as stream:
        shape = shape_of(stream)
    if shape == "lines":
        with open_file() as stream:
            yield from _lines(stream)
    elif shape == "array":
        with open_file() as stream:
            yield from _array(_Window(stream))
    elif shape == "object":
        yield from _objects(open_file, elements)


def shape_of(stream: BinaryIO) -> Shape:
    """How the file lays out its records; looks at the first lines, at all of it only where those leave a doubt."""
    first = _filled_line(stream, first=True)
    if not first:
        return "empty"
    document: Shape = "array" if first[:1] == b"[" else "object"
    if first[:1] not in (b"[", b"{"):
        return "lines"
    if len(first) >= _LINE_LIMIT or first in (b"[", b"{"):
        return document  # one after the other, objects are read the same way as lines
    second = _filled_line(stream)
    if not second:
        return document
    if _complete(first):
        return "lines"
    if document == "array" and _complete(first[1:].rstrip(b",").strip()):
        return "array"
    seen = [second, *islice(iter(lambda: _filled_line(stream), b""), _LINES_TRIED)]
    rest = stream.read(_DOUBT_LIMIT)
    if len(rest) < _DOUBT_LIMIT and _complete(b"\n".join([first, *seen, rest])):
        return document
    return "lines" if any(line[:1] in (b"{", b"[") and len(line) > 2 and _complete(line) for line in seen) else document


def _filled_line(stream: BinaryIO, first: bool = False) -> bytes:
    """The next line that is not blank, stripped; empty at the end of the file."""
    while line := stream.readline(_LINE_LIMIT):
        if first and line.startswith(_BOM):
            line = line[len(_BOM) :]
        if stripped := line.strip(b" \t\r\n"):
            return stripped
    return b""


def _complete(text: bytes) -> bool:
    try:
        value = Reader().decode(text.decode("utf-8", "surrogateescape"))
    except JsonError:
        return False
    return isinstance(value, dict | list)


def _lines(stream: BinaryIO) -> Iterator[Item]:
    reader = Reader()
    for number, line in enumerate(stream, 1):
        item = line_item(number, line, reader)
        if item is not None:
            yield item


def line_item(number: int, line: bytes, reader: Reader) -> Item | None:
    """What stands in one line of a file, given with its end; null where it is blank."""
    body = line[len(_BOM) :] if number == 1 and line.startswith(_BOM) else line
    text = _decoded(body).strip(" \t\r\n")
    if not text:
        return None
    reader.notes = set()
    try:
        value = reader.decode(text)
    except JsonError as error:
        torn = error.cut and not line.endswith(b"\n")
        return Broken(number, "torn last line" if torn else _at(error), cap(_shown(text)))
    return Record(number, value, reader.notes, len(body), "lines")


def _decoded(data: bytes) -> str:
    """The text; bytes that are not UTF-8 become half surrogates, which the reader replaces and notes."""
    return data.decode("utf-8", "surrogateescape")


def _shown(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _at(error: JsonError) -> str:
    return f"{error.reason} at character {error.position + 1}" if error.position else error.reason


class _TooLong(Exception):
    """A value did not end within the allowed length."""


class _Window:
    """A moving window of decoded text over a stream. `text[at:]` has not been read yet."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self.reader = Reader()
        self.text = ""
        self.at = 0
        self.ended = False
        if self.grow() and self.text.startswith("\ufeff"):
            self.at = 1

    def grow(self) -> bool:
        """Reads on, at least doubling what is unread so that retries stay linear; false at the end of the file."""
        if self.ended:
            return False
        kept = self.text[self.at :]
        data = self._stream.read(max(CHUNK, len(kept)))
        self.ended = not data
        self.text = kept + self._decode(data, not data)
        self.at = 0
        return not self.ended

    def peek(self) -> str:
        """The next character that is no white space, not consumed; empty at the end of the file."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.grow() and self.at >= len(self.text):
                return ""

    def value(self, limit: int | None = None) -> tuple[Json, set[str], int]:
        """The value at the window's start, the reader's notes and its length. Raises JsonError, _TooLong."""
        while True:
            self.reader.notes = set()
            try:
                value, end = self.reader.decode_at(self.text, self.at)
            except JsonError as error:
                if self.ended or not error.cut:
                    raise
            else:
                # `1.` and `1e` are a number with more to come, though the decoder stops before the point
                if self.ended or isinstance(value, dict | list | str) or end < len(self.text) - 3:
                    size, self.at = end - self.at, end
                    return value, self.reader.notes, size
            if limit is not None and len(self.text) - self.at > limit:
                raise _TooLong
            self.grow()

    def skip(self) -> str | None:
        """Passes over a damaged value by its brackets; its raw text, or null when its end cannot be found."""
        depth = 0
        position = self.at
        while True:
            for token in _TOKEN.finditer(self.text, position):
                mark = token.group()
                if mark[0] == '"' and not token["close"]:
                    break
                if depth == 0 and mark in ",]}":
                    return self._cut(token.start())
                if mark in "[{":
                    depth += 1
                elif mark in "]}":
                    depth -= 1
                    if depth == 0:
                        return self._cut(token.end())
                position = token.end()
            consumed = self.at
            if len(self.text) - self.at > WHOLE_LIMIT or not self.grow():
                return None
            position -= consumed

    def _cut(self, end: int) -> str:
        raw, self.at = self.text[self.at : end], end
        return raw

    def rest(self) -> str:
        """What is unread of the window, capped for a reject; the stream is not read further."""
        return cap(_shown(self.text[self.at : self.at + RAW_LIMIT * 2]))


@dataclass(slots=True)
class _State:
    """Whether a list was read to its closing bracket."""

    closed: bool = field(default=False)


def _array(window: _Window) -> Iterator[Item]:
    state = _State()
    window.peek()
    yield from _elements(window, "array", None, state)
    if state.closed and window.peek():
        yield Broken(0, "text after the end of the array", window.rest())


def _elements(window: _Window, container: Container, document: dict[str, Json] | None, state: _State) -> Iterator[Item]:
    """The elements of the list at the window's start, each read and given back on its own."""
    window.at += 1
    place = 0
    while True:
        mark = window.peek()
        if mark == "]":
            window.at += 1
            state.closed = True
            return
        if place and mark == ",":
            window.at += 1
            mark = window.peek()
        elif place and mark:
            yield Broken(place + 1, f"expected a comma or the end of the array before {mark!r}", window.rest())
            return
        place += 1
        if not mark:
            yield Broken(place, "truncated: the array is never closed")
            return
        try:
            value, notes, size = window.value()
        except JsonError as error:
            raw = window.skip() if not (error.cut and window.ended) else None
            if raw is None:
                reason = "truncated: the last record is torn" if error.cut else _at(error)
                yield Broken(place, reason, window.rest())
                return
            yield Broken(place, error.reason, cap(_shown(raw)))
        else:
            yield Record(place, value, notes, size, container, document)


def _objects(open_file: Open, elements: frozenset[str]) -> Iterator[Item]:
    """One object, or several one after the other; the records inside it where it holds a known list of them."""
    with open_file() as stream:
        window = _Window(stream)
        place = 0
        while window.peek():
            place += 1
            try:
                value, notes, size = window.value(WHOLE_LIMIT)
            except JsonError as error:
                reason = "truncated: the object is never closed" if error.cut else _at(error)
                yield Broken(place, reason, window.rest())
                return
            except _TooLong:
                break
            yield from _inside(value, notes, size, elements, place)
        else:
            return
    yield from _long_object(open_file, elements)


def _inside(value: Json, notes: set[str], size: int, elements: frozenset[str], place: int) -> Iterator[Item]:
    member = next((key for key in elements if isinstance(value, dict) and isinstance(value.get(key), list)), None)
    if member is None:
        yield Record(place, value, notes, size, "object")
        return
    document = {key: item for key, item in value.items() if key != member}
    records = value[member]
    for index, record in enumerate(records, 1):
        yield Record(index, record, set(notes), size // len(records), "object", document)


def _long_object(open_file: Open, elements: frozenset[str]) -> Iterator[Item]:
    """An object too long to decode whole: one pass for what stands around the list, one for the list's elements."""
    document: dict[str, Json] = {}
    with open_file() as stream:
        for key, item in _members(_Window(stream), elements, {}):
            if isinstance(item, Broken):
                yield item
                return
            if key not in elements:
                document[key] = item.value
    with open_file() as stream:
        found = False
        for key, item in _members(_Window(stream), elements, document):
            if key in elements:
                found = True
                yield item
    if not found:
        yield Record(1, document, set(), 0, "object")


def _members(window: _Window, elements: frozenset[str], document: dict[str, Json]) -> Iterator[tuple[str, Item]]:
    """The members of the object at the window's start; those of `elements` one element at a time."""
    window.peek()
    window.at += 1
    while True:
        mark = window.peek()
        if mark == ",":
            window.at += 1
            continue
        if mark == "}":
            return
        try:
            key = window.value()[0] if mark == '"' else None
            if key is None or window.peek() != ":":
                raise JsonError("truncated: the object is never closed" if not mark else "expected a member")
            window.at += 1
            if window.peek() == "[" and key in elements:
                state = _State()
                for item in _elements(window, "object", document, state):
                    yield key, item
                if not state.closed:
                    return
                continue
            value, notes, size = window.value()
        except JsonError as error:
            yield "", Broken(1, error.reason, window.rest())
            return
        yield key, Record(1, value, notes, size, "object")
