"""An external sort: records come part by part in any order and leave in the order of their positions.

A record goes to the file of its bucket (`position // size`); the buckets are then read one after the other and sorted
in memory. So what is held at once is one flush of incoming records or one bucket, whatever the size of the corpus.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

SIZE = 1024
_FLUSH = 64 << 20  # bytes of records held back before they are written
_LENGTH = struct.Struct("<Q")


class Buckets:
    """`add` everything, then iterate once. `size` is positions a bucket."""

    def __init__(self, folder: Path, size: int = SIZE) -> None:
        self._folder = folder
        self._size = size
        self._held: dict[int, list[bytes]] = {}
        self._bytes = 0
        self._made: set[int] = set()
        self._encoder = msgspec.msgpack.Encoder()

    def add(self, position: int, record: dict[str, Any]) -> None:
        """Positions are distinct; a record is JSON-like."""
        raw = self._encoder.encode((position, record))
        self._held.setdefault(position // self._size, []).append(raw)
        self._bytes += len(raw)
        if self._bytes >= _FLUSH:
            self.flush()

    def flush(self) -> None:
        for bucket, records in self._held.items():
            # Opened for each flush: as many buckets as there may be are more than a process may keep open.
            with self._file(bucket).open("ab") as file:
                for raw in records:
                    file.write(_LENGTH.pack(len(raw)))
                    file.write(raw)
            self._made.add(bucket)
        self._held.clear()
        self._bytes = 0

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self.flush()
        for bucket in sorted(self._made):
            file = self._file(bucket)
            yield from sorted(_records(file), key=lambda record: record[0])
            file.unlink()

    def _file(self, bucket: int) -> Path:
        return self._folder / f"bucket-{bucket}"


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    decoder = msgspec.msgpack.Decoder(tuple[int, dict[str, Any]])
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            yield decoder.decode(file.read(_LENGTH.unpack(head)[0]))
