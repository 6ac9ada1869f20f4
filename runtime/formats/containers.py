"""What a file is, by its first bytes: JSON text (plain, gzip or zstandard) or parquet; and the records inside it.

Parquet rows are given back as objects. Arrow pads a struct with the keys that other rows have: below the turn level a
null member is therefore dropped (a real null in an argument cannot be told from padding). The row's own columns and the
members of its messages keep theirs.
"""

from __future__ import annotations

import base64
import gzip
import io
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, cast

from .json_stream import Broken, Item, Record, read_json
from .json_text import Json, NonFinite, Spelled, mend_text

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".parquet")
PACKED = (".gz", ".zst")
_BATCH = 64  # rows; a row of an agent corpus is easily 100 KB
_TURN_LEVEL = 2


def is_data_file(path: Path) -> bool:
    """True for the names that a directory is searched for; an explicitly named file may be called anything."""
    name = path.name.lower()
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name.endswith(SUFFIXES) and not name.startswith(".")


def read_records(path: Path, elements: frozenset[str]) -> Iterator[Item]:
    """The records of a file. A damaged file gives what could be read and one `Broken`. Raises OSError."""
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic == b"PAR1":
        return _rows(path)
    return _guarded(read_json(lambda: _text_stream(path, magic), elements))


def _text_stream(path: Path, magic: bytes) -> BinaryIO:
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if magic == b"\x28\xb5\x2f\xfd":
        import zstandard

        stream = path.open("rb")
        unpacked = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True, closefd=True)
        return io.BufferedReader(cast(io.RawIOBase, unpacked), 1 << 20)
    return path.open("rb", buffering=1 << 20)


def _guarded(items: Iterator[Item]) -> Iterator[Item]:
    """Turns a compressed stream that ends early or is damaged into a `Broken`; other errors of the system pass."""
    last = 0
    try:
        for item in items:
            last = item.line
            yield item
    except Exception as error:
        if not isinstance(error, EOFError | gzip.BadGzipFile | zlib.error) and type(error).__name__ != "ZstdError":
            raise
        yield Broken(last + 1, f"damaged compressed data: {error}")


def _rows(path: Path) -> Iterator[Item]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = 0
    try:
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=_BATCH):
                size = batch.nbytes // max(1, batch.num_rows)
                for row in batch.to_pylist(maps_as_pydicts="lossy"):
                    place += 1
                    notes: set[str] = set()
                    yield Record(place, _plain(row, 0, notes), notes, size, "rows")
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield Broken(place + 1, f"damaged parquet: {str(error).splitlines()[0]}")


def _plain(value: Any, depth: int, notes: set[str]) -> Json:
    """An Arrow value as JSON. `depth` counts structs: 0 the row, 1 a message; deeper ones lose their nulls."""
    if isinstance(value, dict):
        return {
            str(key): _plain(item, depth + 1, notes)
            for key, item in value.items()
            if item is not None or depth < _TURN_LEVEL
        }
    if isinstance(value, list):
        return [_plain(item, depth, notes) for item in value]
    if isinstance(value, str):
        return mend_text(value, notes)
    if isinstance(value, float) and not isfinite(value):
        notes.add("nan")
        return NonFinite("NaN")
    if isinstance(value, Decimal):
        return Spelled(str(value)) if value.is_finite() else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def peeked(items: Iterator[Item], count: int) -> tuple[list[Item], Iterator[Item]]:
    """The first items, and an iterator that still gives all of them."""
    head = list(islice(items, count))
    return head, chain(head, items)
