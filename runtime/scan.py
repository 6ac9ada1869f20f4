"""What one pass over the bytes of an input file tells: its digest, and where a file of lines can be cut.

What was told of a large file is noted in the cache, and believed as long as the file's size, time of change and inode
are the same. A file that was changed in the two seconds before it was read is read again: another change in the same
tick of the clock would not show.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import xxhash

from .cache import Cache
from .formats.batches import line_ends

_FOLDER = "inputs"
_LEAST = 1 << 18  # bytes; a smaller file is read as fast as the note about it
_BLOCK = 1 << 20
_SETTLED = 2 * 10**9  # ns


@dataclass(frozen=True, slots=True)
class Scan:
    """`digest` is xxh3_128 (32 hex digits) of all bytes. `cuts` are offsets where a line begins, with its number: each
    is the first one that lies `every` bytes or more behind the cut before it."""

    digest: str
    cuts: tuple[tuple[int, int], ...]


def scan(path: Path, every: int) -> Scan:
    """Reads a file. Raises OSError."""
    digest = xxhash.xxh3_128()
    cuts: list[tuple[int, int]] = []
    at, line, wanted = 0, 1, every
    with path.open("rb", buffering=0) as stream:
        while data := stream.read(_BLOCK):
            digest.update(data)
            counted = 0
            while wanted <= at + len(data):
                end = data.find(b"\n", max(counted, wanted - at - 1)) + 1
                if not end:
                    break
                line += line_ends(data, counted, end)
                cuts.append((at + end, line))
                counted, wanted = end, at + end + every
            line += line_ends(data, counted, len(data))
            at += len(data)
    return Scan(digest.hexdigest(), tuple(cut for cut in cuts if cut[0] < at))


def scanned(path: Path, every: int, cache: Cache) -> Scan:
    """The same, from the note in the cache where the file is as it was. Raises OSError."""
    before = _stamp(path)
    if before[0] < _LEAST:
        return scan(path, every)
    note = cache.root / _FOLDER / f"{xxhash.xxh3_128_hexdigest(os.fsencode(path.resolve()))}.json"
    known = _noted(note, before, every)
    if known is not None:
        return known
    found = scan(path, every)
    if _stamp(path) == before and time.time_ns() - before[1] > _SETTLED:
        _write(note, {"stamp": before, "every": every, **asdict(found)})
    return found


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _noted(note: Path, stamp: list[int], every: int) -> Scan | None:
    try:
        said = orjson.loads(note.read_bytes())
        if said["stamp"] != stamp or said["every"] != every:
            return None
        return Scan(str(said["digest"]), tuple((int(offset), int(line)) for offset, line in said["cuts"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(note: Path, said: dict[str, Any]) -> None:
    """A cache that cannot be written has no notes."""
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        aside = note.with_suffix(f".{os.getpid()}")
        aside.write_bytes(orjson.dumps(said))
        aside.replace(note)
