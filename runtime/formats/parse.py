"""A group of files, or a piece of a long one, read into parts of one cache entry.

A part holds the rows of at most `PART_TEXT` bytes of raw text (or of one record, if that is longer), so that memory is
bounded whatever the size of the files. What else was found (rejects, files without a record, files of no known format)
is told by `Contents`. Files are named by their index in the group: no path is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from . import BUILT_IN, adapters, fast, near_misses, recognise
from .batches import Batch, of_file, of_lines
from .containers import is_damage, is_lines, is_packed, peeked, read_records, text_stream
from .fast.chat import ChatReader
from .json_stream import Broken, Item, Record, cap, line_item
from .json_text import TOO_DEEP, Json, JsonError, Reader, encode
from .model import Adapter, Context, Match, Sample, Unreadable
from .part import Rows, by_line, together, write
from .rows import Gathered, settle, wrong_type

PART_TEXT = 48 << 20  # bytes of raw text
FAST_LEAST = 1 << 18  # bytes of lines; below, reading by columns costs more than it saves
_CONTENTS = "contents.json"
_SAMPLE = 16  # records
_RAW_KEPT = 64 << 20  # characters of raw text kept for the rejects of one group; after that, the first of each
_RAW_SHORT = 256
Progress = Callable[[int, int, int], None]


@dataclass(slots=True)
class Contents:
    """What one group gave. `rejects` are (file, line, reason, raw); `unknown` are (file, message, help)."""

    parts: list[dict[str, Any]] = field(default_factory=list)
    formats: dict[str, int] = field(default_factory=dict)
    rejects: list[tuple[int, int, str, str]] = field(default_factory=list)
    unknown: list[tuple[int, str, str]] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    @classmethod
    def load(cls, directory: Path) -> Contents:
        """Reads the contents of an entry back. Raises OSError, ValueError, TypeError."""
        return cls(**orjson.loads((directory / _CONTENTS).read_bytes()))

    def save(self, directory: Path) -> None:
        """Raises OSError."""
        (directory / _CONTENTS).write_bytes(orjson.dumps(self))

    def add(self, other: Contents) -> None:
        """Takes in what the next task of the same group gave."""
        self.parts += other.parts
        self.rejects += other.rejects
        self.unknown += other.unknown
        self.empty += other.empty
        for name, runs in other.formats.items():
            self.formats[name] = self.formats.get(name, 0) + runs


def element_names() -> frozenset[str]:
    """The members of an object document that hold a list of records, over all adapters."""
    return frozenset(adapter.elements for adapter in adapters().values() if adapter.elements)


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a long file: the piece's number in the file, its bytes, and the number of its first line."""

    number: int
    start: int
    length: int
    line: int


def parse_group(files: Sequence[Path], forced: Adapter | None, directory: Path, progress: Progress) -> Contents:
    """Reads the files and writes their parts into `directory`.

    `forced` is the adapter that the source names, null to recognise each file by its content. `progress` is told the
    files done, the bytes of text read of the next one, and the runs so far. Raises OSError.
    """
    reading = _Reading(directory, 0, progress)
    for index, path in enumerate(files):
        reading.read(index, path, forced)
        reading.file_done()
    reading.flush()
    return reading.contents


def parse_piece(path: Path, piece: Piece, adapter: Adapter, directory: Path, progress: Progress) -> Contents:
    """Reads lines of a file of a known format, and writes them as the part of that number. Raises OSError."""
    reading = _Reading(directory, piece.number, progress)
    with path.open("rb", buffering=0) as stream:
        stream.seek(piece.start)
        reading.take_lines(0, of_file(stream, piece.length), piece.line, adapter)
    reading.flush()
    reading.piece_done()
    return reading.contents


def format_of(path: Path, forced: Adapter | None) -> Adapter | None:
    """The adapter for a file that can be read in pieces: plain lines of a known format. Else null. Raises OSError."""
    if is_packed(path) or not is_lines(path):
        return None
    head, _ = peeked(read_records(path, element_names()), _SAMPLE)
    found = _recognised(_sample(head), forced)
    return None if found is None else found[0]


def pieces(cuts: Sequence[tuple[int, int]], size: int) -> Iterator[Piece]:
    """The pieces of a file of so many bytes, cut at offsets before lines with these numbers."""
    starts = [(0, 1), *cuts]
    ends = [*(offset for offset, _ in cuts), size]
    for number, ((start, line), end) in enumerate(zip(starts, ends, strict=True)):
        yield Piece(number, start, end - start, line)


def _recognised(sample: Sample | None, forced: Adapter | None) -> tuple[Adapter, Match] | None:
    if sample is None:
        return None
    return recognise(sample) if forced is None else (forced, forced.recognise(sample))


class _Reading:
    """The part that is being gathered, and what was found so far. `number` is that of the first part."""

    def __init__(self, directory: Path, number: int, progress: Progress) -> None:
        self.directory = directory
        self.contents = Contents()
        self._number = number
        self._progress = progress
        self._pieces: list[Rows] = []
        self._gathered = Gathered()  # behind the pieces
        self._part_text = 0
        self._raw_kept = 0
        self._files_done = 0
        self._file_text = 0
        self._runs = 0

    def read(self, index: int, path: Path, forced: Adapter | None) -> None:
        """Takes in a whole file."""
        head, items = peeked(read_records(path, element_names()), _SAMPLE)
        if not head:
            self.contents.empty.append(index)
            return
        sample = _sample(head)
        found = _recognised(sample, forced)
        if found is None:
            self._read_unknown(index, items, sample)
            return
        adapter, match = found
        if fast.reader_of(adapter) is not None and is_lines(path):
            with text_stream(path) as lines:
                self.take_lines(index, of_lines(lines), 1, adapter)
            return
        shared: dict[str, Any] = {}
        for item in _as_one(items) if match.whole else items:
            self._take(index, item, adapter, shared, self._gathered)
            self._told(item.size if isinstance(item, Record) else 0)

    def take_lines(self, index: int, batches: Iterator[Batch], line: int, adapter: Adapter) -> None:
        """Takes in lines of a file; `line` is the number of the first."""
        reader = fast.reader_of(adapter)
        shared: dict[str, Any] = {}
        try:
            for batch in batches:
                self._take_batch(index, batch, line, adapter, reader, shared)
                line += batch.count
                self._told(batch.size)
        except Exception as error:
            if not is_damage(error):
                raise
            self._reject(index, line, f"damaged compressed data: {error}", "")

    def _take_batch(
        self, index: int, batch: Batch, line: int, adapter: Adapter, reader: ChatReader | None, shared: dict[str, Any]
    ) -> None:
        """Regular lines by columns and the others one by one, put together in their order."""
        if reader is None or batch.size < FAST_LEAST:
            lines = enumerate(map(bytes, batch.lines()))
            self._take_singly(index, lines, line, adapter, shared, self._gathered)
            return
        found = reader.read(batch)
        gathered = Gathered()
        self._take_singly(index, found.left.items(), line, adapter, shared, gathered)
        runs = found.rows.runs.with_columns(pl.lit(index, dtype=pl.UInt32).alias("file"), pl.col("line") + line)
        self._count(runs.height, adapter)
        rows = Rows(runs, found.rows.turns)
        if gathered.n_runs:
            rows = by_line(rows, gathered.rows())
        if rows.runs.height:
            self._settle()
            self._pieces.append(rows)

    def _take_singly(
        self,
        index: int,
        lines: Iterable[tuple[int, bytes]],
        line: int,
        adapter: Adapter,
        shared: dict[str, Any],
        gathered: Gathered,
    ) -> None:
        reader = Reader()
        for number, text in lines:
            item = line_item(line + number, text, reader)
            if item is not None:
                self._take(index, item, adapter, shared, gathered)

    def _settle(self) -> None:
        """What was gathered one by one becomes a piece."""
        if self._gathered.n_runs:
            self._pieces.append(self._gathered.rows())
            self._gathered = Gathered()

    def file_done(self) -> None:
        self._files_done, self._file_text = self._files_done + 1, 0
        self._progress(self._files_done, 0, self._runs)

    def piece_done(self) -> None:
        self._progress(0, self._file_text, self._runs)

    def _told(self, size: int) -> None:
        """So many bytes of text have been taken in."""
        self._part_text += size
        self._file_text += size
        if self._part_text >= PART_TEXT:
            self.flush()
            self._progress(self._files_done, self._file_text, self._runs)

    def _read_unknown(self, index: int, items: Iterator[Item], sample: Sample | None) -> None:
        """A file of no known format is one reject; one in which not a single value could be read, all its rejects."""
        if sample is not None:
            message, help_text = _what_was_seen(sample)
            self.contents.unknown.append((index, message, help_text))
            self._reject(index, 0, message, "")
            return
        for item in items:
            if isinstance(item, Broken):
                self._reject(index, item.line, item.reason, item.raw)
            else:
                self._reject(index, item.line, f"{_kind(item.value)} is not a record", _raw(item.value))

    def _take(self, index: int, item: Item, adapter: Adapter, shared: dict[str, Any], gathered: Gathered) -> None:
        if isinstance(item, Broken):
            self._reject(index, item.line, item.reason, item.raw)
            return
        if not isinstance(item.value, dict | list):
            self._reject(index, item.line, f"{_kind(item.value)} is not a record", _raw(item.value))
            return
        context = Context(item.container, item.document, item.notes, shared)
        try:
            runs = adapter.read(item.value, context)
            for run in runs:
                settle(run, context.notes, call_ids=adapter.call_ids)
            if adapter not in BUILT_IN and (wrong := next(filter(None, map(wrong_type, runs)), None)):
                raise TypeError(wrong)
        except RecursionError:
            self._reject(index, item.line, TOO_DEEP, _raw(item.value))
            return
        except (Unreadable, JsonError) as error:
            self._reject(index, item.line, str(error), _raw(item.value))
            return
        except Exception as error:  # an adapter's own fault must not lose the rest of the corpus
            self._reject(index, item.line, f"{adapter.name} failed: {type(error).__name__}: {error}", _raw(item.value))
            return
        for run in runs:
            gathered.add(run, index, item.line)
        self._count(len(runs), adapter)

    def _count(self, runs: int, adapter: Adapter) -> None:
        if runs:
            self.contents.formats[adapter.name] = self.contents.formats.get(adapter.name, 0) + runs
            self._runs += runs

    def _reject(self, index: int, line: int, reason: str, raw: str) -> None:
        if self._raw_kept > _RAW_KEPT and len(raw) > _RAW_SHORT:
            raw = f"{raw[:_RAW_SHORT]}…[{len(raw) - _RAW_SHORT} more characters]"
        self._raw_kept += len(raw)
        self.contents.rejects.append((index, line, reason, raw))

    def flush(self) -> None:
        """Writes what has been gathered as a part."""
        self._settle()
        if self._pieces:
            names = f"runs-{self._number:05}.arrow", f"turns-{self._number:05}.arrow"
            rows = together(self._pieces)
            write(rows, self.directory / names[0], self.directory / names[1])
            told = {"n_runs": rows.runs.height, "n_turns": rows.turns.height}
            self.contents.parts.append({"runs": names[0], "turns": names[1], **told})
            self._number += 1
        self._pieces, self._part_text = [], 0


def _sample(head: list[Item]) -> Sample | None:
    """The sample of a file, null when none of its first values is an object or a list."""
    records = [item for item in head if isinstance(item, Record) and isinstance(item.value, dict | list)]
    if not records:
        return None
    return Sample(tuple(record.value for record in records), records[0].container, records[0].document)


def _as_one(items: Iterator[Item]) -> Iterator[Item]:
    """The elements of an array put together as one record; broken as a whole when one of them is."""
    values: list[Json] = []
    notes: set[str] = set()
    size = 0
    for item in items:
        if isinstance(item, Broken):  # a list with a hole in it is not the conversation that was had
            yield Broken(1, f"element {item.line}: {item.reason}", item.raw)
            return
        values.append(item.value)
        notes |= item.notes
        size += item.size
    yield Record(1, values, notes, size, "array")


def _what_was_seen(sample: Sample) -> tuple[str, str]:
    first = sample.records[0]
    seen = f"an object with the keys {_keys(first)}" if isinstance(first, dict) else f"a list of {len(first)} values"
    if sample.document is not None:
        seen += f", inside an object with the keys {_keys(sample.document)}"
    close = [(adapter.name, match) for adapter, match in near_misses(sample)]
    hints = "; ".join(f"{name}: {match.why}" for name, match in close[:3])
    return f"no known format: the first record is {seen}", f"the formats that came closest are {hints}"


def _keys(value: dict[str, Json]) -> str:
    names = [f"`{key[:40]}`" for key in list(value)[:12]]
    return ", ".join(names) + (f" and {len(value) - 12} more" if len(value) > 12 else "") if names else "(none)"


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return "a string" if isinstance(value, str) else "a number"


def _raw(value: Json) -> str:
    try:
        return cap(encode(value, raw=True))
    except JsonError as error:
        return f"({error.reason})"
