"""The lines of a file, some megabytes at a time: whole lines with their ends, the last one perhaps without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

BATCH = 16 << 20  # bytes


def of_file(stream: BinaryIO, length: int) -> Iterator[bytes]:
    """The lines of the next `length` bytes, about `BATCH` at once. Raises OSError."""
    held: list[bytes] = []
    while length and (data := stream.read(min(BATCH, length))):
        length -= len(data)
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join((*held, data[:end]))
            held = []
        held.append(data[end:])
    if rest := b"".join(held):
        yield rest


def of_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines one by one put together; what `lines` raises comes behind those before it."""
    held: list[bytes] = []
    size = 0
    try:
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= BATCH:
                yield b"".join(held)
                held, size = [], 0
    except Exception:
        if held:
            yield b"".join(held)
        raise
    if held:
        yield b"".join(held)
