"""One pass over a file: digest and cuts against plain Python, and when a note about it is believed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime import scan as module
from curatec.runtime.cache import Cache
from curatec.runtime.formats import batches
from curatec.runtime.formats.parse import pieces
from curatec.runtime.scan import Scan, scan, scanned

EVERY = 1 << 20


def cut(data: bytes, every: int) -> list[list[bytes]]:
    """The lines of each piece: a piece ends with the line that fills it."""
    found: list[list[bytes]] = [[]]
    for line in data.splitlines(keepends=True):
        if sum(map(len, found[-1])) >= every:
            found.append([])
        found[-1].append(line)
    return found


@given(st.lists(st.sampled_from([b"a", b"bcd", b"\n"]), min_size=1, max_size=40).map(b"".join), st.integers(1, 20))
def test_pieces_are_whole_lines_and_as_long_as_asked(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, every: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "file"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 3)
        found = scan(path, every)
    assert found.digest == xxhash.xxh3_128_hexdigest(data)
    made = list(pieces(found.cuts, len(data)))
    assert [data[piece.start :][: piece.length] for piece in made] == [b"".join(lines) for lines in cut(data, every)]
    assert [piece.line for piece in made] == [1 + data.count(b"\n", 0, piece.start) for piece in made]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that was written long ago."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 999 + b"\n" + b"y" * (1 << 20))
    age(path, 1_000)
    return path


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def never(*_: object) -> Scan:
    raise AssertionError("read again")


def test_a_file_that_is_as_it_was_is_not_read_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    first = scanned(file, 500, cache)
    assert first == scan(file, 500)
    link = tmp_path / "link"
    link.symlink_to(file)
    monkeypatch.setattr(module, "scan", never)
    assert scanned(file, 500, cache) == scanned(link, 500, cache) == first
    for other in ((file, 501, cache), (file, 500, Cache(tmp_path / "other"))):
        with pytest.raises(AssertionError, match="read again"):
            scanned(*other)


def test_any_change_is_seen(file: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    before = scanned(file, EVERY, cache).digest
    size, moment = file.stat().st_size, file.stat().st_mtime
    file.write_bytes(b"z" * size)
    age(file, 500)
    assert scanned(file, EVERY, cache).digest == xxhash.xxh3_128_hexdigest(b"z" * size) != before
    other = tmp_path / "new"
    other.write_bytes(b"w" * size)
    os.utime(other, (moment, moment))
    age(file, 500)
    other.replace(file)  # the same size and time as when it was read first, another inode
    assert scanned(file, EVERY, cache).digest == xxhash.xxh3_128_hexdigest(b"w" * size)


def test_a_file_that_was_just_written_is_not_believed(file: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    age(file, 0)
    scanned(file, EVERY, cache)
    assert not list((tmp_path / "cache").glob("inputs/*"))


def test_a_damaged_note_and_a_cache_that_cannot_be_written_do_no_harm(file: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    found = scanned(file, EVERY, cache)
    (note,) = (tmp_path / "cache" / "inputs").iterdir()
    for damage in (b"", b"[]", b'{"stamp":1}', b"{"):
        note.write_bytes(damage)
        assert scanned(file, EVERY, cache) == found
    assert scanned(file, EVERY, Cache(file / "cache")) == found


@given(st.binary(max_size=50).map(lambda data: data.replace(b"\x00", b"\n")), st.integers(0, 9), st.integers(0, 60))
def test_line_ends_are_counted(data: bytes, start: int, end: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_FEW", 3)
        assert batches.line_ends(data, start, end) == data[start:end].count(b"\n")
