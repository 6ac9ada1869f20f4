"""An external sort: rows come part by part in any order and leave in the order of their positions.

What comes is held back until there is enough of it, then sorted and written as one file, whose record batches are
buckets of neighbouring positions. In the end the buckets are read one after the other, each from all files. So what
is held at once is one file to be or one bucket, whatever the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

SIZE = 1024
POSITION = "position"  # the column that gives the order: whole numbers, each at most once
_FLUSH = 64 << 20  # bytes that are held back
_PORTION = 1 << 20  # bytes of records that become a frame


class Sorted:
    """`add` everything, then iterate once. `size` is positions a bucket."""

    def __init__(self, folder: Path, size: int = SIZE) -> None:
        self._folder = folder
        self._size = size
        self._held: list[pl.DataFrame] = []
        self._bytes = 0
        self._files: list[tuple[Path, dict[int, int]]] = []  # with the number of the batch that holds a bucket

    def add(self, rows: pl.DataFrame) -> None:
        """Rows with a POSITION; all frames have the same columns."""
        if rows.is_empty():
            return
        self._held.append(rows)
        self._bytes += int(rows.estimated_size())
        if self._bytes >= _FLUSH:
            self._flush()

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Frames of neighbouring rows, in order."""
        if not self._files:
            yield from (rows for _, rows in self._buckets())
            return
        if self._held:
            self._flush()
        for bucket in sorted({bucket for _, batches in self._files for bucket in batches}):
            pieces = [_read(path, batches[bucket]) for path, batches in self._files if bucket in batches]
            yield pl.concat(pieces).sort(POSITION)
        for path, _ in self._files:
            path.unlink()

    def _flush(self) -> None:
        path = self._folder / f"sorted-{len(self._files)}"
        batches: dict[int, int] = {}
        writer: Any = None
        with path.open("wb") as file:
            for bucket, rows in self._buckets():
                table = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
                writer = writer or pa.ipc.new_file(file, table.schema)
                writer.write_table(table)
                batches[bucket] = len(batches)
            writer.close()
        self._files.append((path, batches))
        self._held.clear()
        self._bytes = 0

    def _buckets(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """What is held, by bucket."""
        if not self._held:
            return
        rows = pl.concat(self._held).sort(POSITION)
        for (bucket,), own in rows.group_by(pl.col(POSITION) // self._size, maintain_order=True):
            yield int(bucket), own


def _read(path: Path, batch: int) -> pl.DataFrame:
    with pa.OSFile(str(path)) as file:
        found = pl.from_arrow(pa.ipc.open_file(file).get_batch(batch))
    assert isinstance(found, pl.DataFrame)
    return found


class Buckets:
    """The same for records, which are JSON-like: held as bytes, many times shorter than their lists of tokens."""

    def __init__(self, folder: Path, size: int = SIZE) -> None:
        self._sorted = Sorted(folder, size)
        self._held: list[tuple[int, bytes]] = []
        self._bytes = 0
        self._encoder = msgspec.msgpack.Encoder()

    def add(self, position: int, record: dict[str, Any]) -> None:
        """Positions are distinct."""
        raw = self._encoder.encode(record)
        self._held.append((position, raw))
        self._bytes += len(raw)
        if self._bytes >= _PORTION:
            self._flush()

    def _flush(self) -> None:
        schema = {POSITION: pl.UInt64, "record": pl.Binary}
        self._sorted.add(pl.DataFrame(self._held, schema=schema, orient="row"))
        self._held.clear()
        self._bytes = 0

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self._flush()
        for rows in self._sorted:
            for position, record in rows.iter_rows():
                yield position, msgspec.msgpack.decode(record)
