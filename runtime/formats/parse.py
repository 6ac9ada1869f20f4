"""A group of files read into the parts of one cache entry.

A part is a pair of parquet files with the rows of at most `PART_TEXT` bytes of raw text (or of one record, if that is
longer), so that memory is bounded whatever the size of the files. What else was found (rejects, files without a record,
files of no known format) is written to `contents.json`. Files are named by their index in the group: no path is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from . import BUILT_IN, adapters, near_misses, recognise
from .containers import peeked, read_records
from .json_stream import Broken, Item, Record, cap
from .json_text import TOO_DEEP, Json, JsonError, encode
from .model import Adapter, Context, Sample, Unreadable
from .rows import Rows, settle, wrong_type

PART_TEXT = 48 << 20  # bytes of raw text
CONTENTS = "contents.json"
_SAMPLE = 16  # records
_RAW_KEPT = 64 << 20  # characters of raw text kept for the rejects of one group; after that, the first of each
_RAW_SHORT = 256


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
        return cls(**orjson.loads((directory / CONTENTS).read_bytes()))


def element_names() -> frozenset[str]:
    """The members of an object document that hold a list of records, over all adapters."""
    return frozenset(adapter.elements for adapter in adapters().values() if adapter.elements)


def parse_group(
    files: Sequence[Path], forced: Adapter | None, directory: Path, progress: Callable[[int, int, int], None]
) -> None:
    """Reads the files and writes parts and contents into `directory`.

    `forced` is the adapter that the source names, null to recognise each file by its content. `progress` is told the
    files done, the bytes of text read of the next one, and the runs so far. Raises OSError.
    """
    group = _Group(directory, progress)
    for index, path in enumerate(files):
        group.read(index, path, forced)
        group.files_done, group.text = index + 1, 0
        progress(group.files_done, 0, group.runs)
    group.close()


class _Group:
    """The parts that are being written, and what was found so far."""

    def __init__(self, directory: Path, progress: Callable[[int, int, int], None]) -> None:
        self.directory = directory
        self.progress = progress
        self.contents = Contents()
        self.rows = Rows()
        self.raw_kept = 0
        self.files_done = 0
        self.text = 0
        self.runs = 0

    def read(self, index: int, path: Path, forced: Adapter | None) -> None:
        head, items = peeked(read_records(path, element_names()), _SAMPLE)
        if not head:
            self.contents.empty.append(index)
            return
        sample = _sample(head)
        if forced is not None:
            found = (forced, forced.recognise(sample)) if sample else None
        else:
            found = recognise(sample) if sample else None
        if found is None:
            self._read_unknown(index, items, sample)
            return
        adapter, match = found
        if match.whole:
            items = _as_one(items)
        before = self.runs
        shared: dict[str, Any] = {}
        for item in items:
            self._take(index, item, adapter, shared)
        read = self.runs - before
        if read:
            self.contents.formats[adapter.name] = self.contents.formats.get(adapter.name, 0) + read

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

    def _take(self, index: int, item: Item, adapter: Adapter, shared: dict[str, Any]) -> None:
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
            self.rows.add(run, index, item.line)
        self.runs += len(runs)
        self.rows.text += item.size
        self.text += item.size
        if self.rows.text >= PART_TEXT:
            self._flush()

    def _reject(self, index: int, line: int, reason: str, raw: str) -> None:
        if self.raw_kept > _RAW_KEPT and len(raw) > _RAW_SHORT:
            raw = f"{raw[:_RAW_SHORT]}…[{len(raw) - _RAW_SHORT} more characters]"
        self.raw_kept += len(raw)
        self.contents.rejects.append((index, line, reason, raw))

    def _flush(self) -> None:
        if not self.rows.n_runs:
            return
        number = len(self.contents.parts)
        names = f"runs-{number:05}.parquet", f"turns-{number:05}.parquet"
        self.rows.write(self.directory / names[0], self.directory / names[1])
        self.contents.parts.append(
            {"runs": names[0], "turns": names[1], "n_runs": self.rows.n_runs, "n_turns": self.rows.n_turns}
        )
        self.rows = Rows()
        self.progress(self.files_done, self.text, self.runs)

    def close(self) -> None:
        self._flush()
        (self.directory / CONTENTS).write_bytes(orjson.dumps(self.contents))


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
