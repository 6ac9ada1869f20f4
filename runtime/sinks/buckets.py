"""An external sort: rows come part by part in any order and leave in the order of their positions.

What comes is held back until there is enough of it, then sorted: a stretch. The first stretches stay in memory, others
go to a file each. A stretch is cut into buckets of neighbouring positions; in the end the buckets are read one after
the other, each from all stretches. So what is held at once is bounded, whatever the size of the corpus.
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
KEPT = 128 << 20  # bytes of stretches that stay in memory: to write a file and to read it costs as much as to make it
_FLUSH = 64 << 20  # bytes of a stretch
_PORTION = 1 << 20  # bytes of records that become a frame


class Sorted:
    """`add` everything, then iterate once. `size` is positions a bucket."""

    def __init__(self, folder: Path, size: int = SIZE) -> None:
        self._folder = folder
        self._size = size
        self._held: list[pl.DataFrame] = []
        self._bytes = 0
        self._kept = 0
        self._stretches: list[dict[int, pl.DataFrame] | _File] = []

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
        self._flush()
        for bucket in sorted({bucket for stretch in self._stretches for bucket in stretch}):
            yield pl.concat(own.pop(bucket) for own in self._stretches if bucket in own).sort(POSITION)

    def _flush(self) -> None:
        if not self._held:
            return
        rows = pl.concat(self._held).sort(POSITION)
        grouped = rows.group_by(pl.col(POSITION) // self._size, maintain_order=True)
        buckets = ((int(bucket), own) for (bucket,), own in grouped)
        if self._kept + self._bytes <= KEPT:
            self._kept += self._bytes
            self._stretches.append(dict(buckets))
        else:
            self._stretches.append(_File(self._folder / f"stretch-{len(self._stretches)}", buckets))
        self._held.clear()
        self._bytes = 0


class _File:
    """The buckets of one stretch on disk, each a record batch; the file goes with the last of them."""

    def __init__(self, path: Path, buckets: Iterator[tuple[int, pl.DataFrame]]) -> None:
        self._path = path
        self._batches: dict[int, int] = {}
        writer: Any = None
        with path.open("wb") as file:
            for bucket, rows in buckets:
                table = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
                writer = writer or pa.ipc.new_file(file, table.schema)
                writer.write_table(table)
                self._batches[bucket] = len(self._batches)
            writer.close()

    def __iter__(self) -> Iterator[int]:
        return iter(self._batches)

    def __contains__(self, bucket: object) -> bool:
        return bucket in self._batches

    def pop(self, bucket: int) -> pl.DataFrame:
        # Opened for each bucket: as many files as there may be are more than a process may keep open.
        with pa.OSFile(str(self._path)) as file:
            found = pl.from_arrow(pa.ipc.open_file(file).get_batch(self._batches.pop(bucket)))
        if not self._batches:
            self._path.unlink()
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
