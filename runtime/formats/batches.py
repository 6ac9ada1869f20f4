"""The lines of a file, some megabytes at a time: whole lines with their ends, the last one perhaps without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

BATCH = 24 << 20  # bytes
_FEW = 1_000


def line_ends(data: bytes | bytearray, start: int, end: int) -> int:
    """How many line ends there are. The lines of agents are long: looking for them is faster than at each byte."""
    found = 0
    while found < _FEW and (following := data.find(b"\n", start, end) + 1):
        found, start = found + 1, following
    return found + data.count(b"\n", start, end) if found == _FEW else found


@dataclass(frozen=True, slots=True)
class Batch:
    """The first `size` bytes of a buffer, until the next batch is asked for."""

    buffer: bytes | bytearray
    size: int

    @property
    def count(self) -> int:
        """The line ends."""
        return line_ends(self.buffer, 0, self.size)

    def lines(self) -> list[memoryview]:
        """Each line with its end."""
        view = memoryview(self.buffer)
        found: list[memoryview] = []
        start = 0
        while start < self.size:
            end = self.buffer.find(b"\n", start, self.size) + 1 or self.size
            found.append(view[start:end])
            start = end
        return found


def of_file(stream: BinaryIO, length: int) -> Iterator[Batch]:
    """The lines of the next `length` bytes of an unbuffered file, in a buffer that is used again. Raises OSError."""
    buffer = bytearray(min(BATCH, length))
    held = 0  # bytes of an unfinished line, at the buffer's beginning
    while True:
        size = held + (stream.readinto(memoryview(buffer)[held : held + length]) or 0)  # type: ignore[attr-defined]
        if size == held:
            break
        length -= size - held
        end = buffer.rfind(b"\n", held, size) + 1
        if end:
            yield Batch(buffer, end)
            buffer[: size - end] = buffer[end:size]
        elif size == len(buffer) and length:
            buffer = buffer + bytes(min(len(buffer), length))
        held = size - end
    if held:
        yield Batch(buffer, held)


def of_lines(lines: Iterable[bytes]) -> Iterator[Batch]:
    """Lines one by one put together; what `lines` raises comes behind those before it."""
    held: list[bytes] = []
    size = 0
    try:
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= BATCH:
                yield Batch(b"".join(held), size)
                held, size = [], 0
    except Exception:
        if held:
            yield Batch(b"".join(held), size)
        raise
    if held:
        yield Batch(b"".join(held), size)
