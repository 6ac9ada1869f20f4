"""An external sort: records come part by part in any order and leave in the order of their positions.

A record goes to the file of its bucket (`position // size`); the buckets are then read one after the other and sorted
in memory. So what is held at once is one flush of incoming records or one bucket, whatever the size of the corpus; a
record is held as bytes, which are many times shorter than its lists of tokens.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

SIZE = 1024
_FLUSH = 64 << 20  # bytes of records held back before they are written
_HEAD = struct.Struct("<QQ")  # position, bytes of the record


class Buckets:
    """`add` everything, then iterate once. `size` is positions a bucket."""

    def __init__(self, folder: Path, size: int = SIZE) -> None:
        self._folder = folder
        self._size = size
        self._held: dict[int, list[tuple[int, bytes]]] = {}
        self._bytes = 0
        self._made: set[int] = set()
        self._encoder = msgspec.msgpack.Encoder()

    def add(self, position: int, record: dict[str, Any]) -> None:
        """Positions are distinct; a record is JSON-like."""
        raw = self._encoder.encode(record)
        self._held.setdefault(position // self._size, []).append((position, raw))
        self._bytes += len(raw)
        if self._bytes >= _FLUSH:
            self.flush()

    def flush(self) -> None:
        for bucket, records in self._held.items():
            # Opened for each flush: as many buckets as there may be are more than a process may keep open.
            with self._file(bucket).open("ab") as file:
                for position, raw in records:
                    file.write(_HEAD.pack(position, len(raw)))
                    file.write(raw)
            self._made.add(bucket)
        self._held.clear()
        self._bytes = 0

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self.flush()
        for bucket in sorted(self._made):
            file = self._file(bucket)
            for position, raw in sorted(_records(file)):
                yield position, msgspec.msgpack.decode(raw)
            file.unlink()

    def _file(self, bucket: int) -> Path:
        return self._folder / f"bucket-{bucket}"


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            position, length = _HEAD.unpack(head)
            yield position, file.read(length)
