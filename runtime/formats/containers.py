"""What a file is, by its first bytes: JSON text (plain, gzip or zstandard), parquet or Arrow; and its records.

Arrow is what `datasets` writes with `save_to_disk`, as a stream; Arrow files are read as well. Rows of both are given
back as objects. Arrow pads a struct with the keys that other rows have: below the turn level a null member is therefore
dropped (a real null in an argument cannot be told from padding). The row's own columns and the members of its messages
keep theirs. Values of Arrow's JSON type (the `Json` feature of `datasets`) are decoded, and keep all that they hold.
"""

from __future__ import annotations

import base64
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from .json_stream import Broken, Item, Record, read_json, shape_of
from .json_text import Json, JsonError, NonFinite, Reader, Spelled, mend_text

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".parquet", ".arrow")
PACKED = (".gz", ".zst")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how files begin
_PARQUET, _STREAM, _ARROW = b"PAR1", b"\xff\xff\xff\xff", b"ARROW1"
_BATCH = 64  # rows; a row of an agent corpus is easily 100 KB
_TURN_LEVEL = 2
Shaped = Callable[[Any, Reader], Json]


def is_data_file(path: Path) -> bool:
    """True for the names that a directory is searched for; an explicitly named file may be called anything."""
    name = path.name.lower()
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name.endswith(SUFFIXES) and not name.startswith(".")


def read_records(path: Path, elements: frozenset[str]) -> Iterator[Item]:
    """The records of a file. A damaged file gives what could be read and one `Broken`. Raises OSError."""
    with path.open("rb") as stream:
        magic = stream.read(6)
    if magic[:4] == _PARQUET:
        return _rows(_parquet(path), "parquet")
    if magic[:4] == _STREAM or magic == _ARROW:
        return _rows(_arrow(path, stream=magic != _ARROW), "Arrow")
    return _guarded(read_json(lambda: text_stream(path), elements))


def is_lines(path: Path) -> bool:
    """Whether a file is text with one record a line. Raises OSError."""
    with path.open("rb") as stream:
        magic = stream.read(6)
    if magic[:4] in (_PARQUET, _STREAM) or magic == _ARROW:
        return False
    try:
        with text_stream(path) as text:
            return shape_of(text) == "lines"
    except Exception as error:
        if not is_damage(error):
            raise
        return False


def is_packed(path: Path) -> bool:
    """Whether a file is compressed as a whole. Raises OSError."""
    with path.open("rb") as stream:
        magic = stream.read(4)
    return magic[:2] == _GZIP or magic == _ZSTD


def text_stream(path: Path) -> BinaryIO:
    """The bytes of a text file, unpacked where they are gzip or zstandard. Raises OSError."""
    with path.open("rb") as start:
        magic = start.read(4)
    if magic[:2] == _GZIP:
        return cast(BinaryIO, gzip.open(path, "rb"))
    if magic == _ZSTD:
        return io.BufferedReader(_Unpacked(path.open("rb")), 1 << 20)
    return path.open("rb", buffering=1 << 20)


class _Unpacked(io.RawIOBase):
    """The content of zstandard frames. A stream that ends inside one raises EOFError: the library's own reader would
    take it for the end."""

    def __init__(self, packed: BinaryIO) -> None:
        import zstandard

        self._packed = packed
        self._library = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._packed.read(1 << 14)
            if not data:
                if self._frame is not None:
                    raise EOFError("the stream ends before its end mark")
                return 0
            self._ready = memoryview(b"".join(self._unpack(data)))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpack(self, data: bytes) -> Iterator[bytes]:
        while data:
            frame = self._frame or self._library.decompressobj()
            yield frame.decompress(data)
            self._frame, data = (None, frame.unused_data) if frame.eof else (frame, b"")

    def close(self) -> None:
        self._packed.close()
        super().close()


def is_damage(error: Exception) -> bool:
    """Whether a compressed stream ends early or is damaged."""
    return isinstance(error, EOFError | gzip.BadGzipFile | zlib.error) or type(error).__name__ == "ZstdError"


def _guarded(items: Iterator[Item]) -> Iterator[Item]:
    """Turns a compressed stream that ends early or is damaged into a `Broken`; other errors of the system pass."""
    last = 0
    try:
        for item in items:
            last = item.line
            yield item
    except Exception as error:
        if not is_damage(error):
            raise
        yield Broken(last + 1, f"damaged compressed data: {error}")


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as table:
        yield from table.iter_batches(batch_size=_BATCH)


def _arrow(path: Path, *, stream: bool) -> Iterator[pa.RecordBatch]:
    """Batches of an Arrow stream or file. Not memory-mapped: a file that is cut meanwhile would end the process."""
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as source:
        if stream:
            with pa.ipc.open_stream(source) as reader:
                yield from reader
        else:
            with pa.ipc.open_file(source) as reader:
                yield from map(reader.get_batch, range(reader.num_record_batches))


def _rows(batches: Iterator[pa.RecordBatch], kind: str) -> Iterator[Item]:
    import pyarrow as pa

    place = 0
    reader = Reader()
    try:
        for whole in batches:
            row_of = _shaped(pa.struct(whole.schema), 0)
            for start in range(0, whole.num_rows, _BATCH):
                batch = whole.slice(start, _BATCH)
                size = batch.nbytes // max(1, batch.num_rows)
                for row in batch.to_pylist(maps_as_pydicts="lossy"):
                    place += 1
                    reader.notes = set()
                    yield Record(place, row_of(row, reader), reader.notes, size, "rows")
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield Broken(place + 1, f"damaged {kind}: {str(error).splitlines()[0]}")


def _shaped(dtype: pa.DataType, depth: int) -> Shaped:
    """How values of an Arrow type become JSON. `depth` counts structs: 0 the row, 1 a message; below, nulls go."""
    import pyarrow as pa

    if isinstance(dtype, pa.JsonType):
        return _decoded
    if isinstance(dtype, pa.BaseExtensionType):
        return _shaped(dtype.storage_type, depth)
    if pa.types.is_dictionary(dtype):
        return _shaped(dtype.value_type, depth)
    if pa.types.is_struct(dtype):
        return _members({field.name: _shaped(field.type, depth + 1) for field in dtype}, depth)
    if pa.types.is_map(dtype):
        return _members(_Same(_shaped(dtype.item_type, depth + 1)), depth)
    if pa.types.is_nested(dtype) and hasattr(dtype, "value_type"):
        item = _shaped(dtype.value_type, depth)
        return lambda value, reader: None if value is None else [item(entry, reader) for entry in value]
    return _scalar


class _Same(dict[str, "Shaped"]):
    """The members of a map, which are all alike."""

    def __init__(self, shaped: Shaped) -> None:
        super().__init__()
        self._shaped = shaped

    def __missing__(self, key: str) -> Shaped:
        return self._shaped


def _members(shaped: dict[str, Shaped], depth: int) -> Shaped:
    def members(value: dict[str, Any] | None, reader: Reader) -> Json:
        if value is None:
            return None
        kept = value.items() if depth < _TURN_LEVEL else ((k, v) for k, v in value.items() if v is not None)
        return {str(key): shaped[key](item, reader) for key, item in kept}

    return members


def _decoded(text: str | None, reader: Reader) -> Json:
    """A value of the JSON type; a text that is no JSON stays a text."""
    if text is None:
        return None
    try:
        return reader.decode(text)
    except JsonError:
        return mend_text(text, reader.notes)


def _scalar(value: Any, reader: Reader) -> Json:
    if isinstance(value, str):
        return mend_text(value, reader.notes)
    if isinstance(value, float) and not isfinite(value):
        reader.notes.add("nan")
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
