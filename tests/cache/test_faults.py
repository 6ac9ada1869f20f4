"""Kills, several compiles at once, full disks, caches that cannot be written, damaged entries, edits of an output in
place: the output is always what a compile without a cache writes, or the former one."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from curatec.runtime import arrow_file
from curatec.runtime.cache import Cache, CacheError
from curatec.runtime.memo import files, keys, memo
from tests.cache.conftest import Desk
from tests.cache.test_unchanged import settle
from tests.cli.conftest import SPEC, Place, corpus, digests, strays, write_lines

EDITED = SPEC.replace("limit 2 per task", "limit 1 per task")


@pytest.fixture
def small(desk: Desk, all_kept: None) -> Desk:
    """A spec with `cold`, the output of a compile without a cache."""
    desk.write("s.curate", SPEC)
    write_lines(desk.root / "runs" / "a.jsonl", corpus(12))
    desk.compile("s.curate", "cold", no_cache=True)
    return desk


def entries(desk: Desk, name: str) -> list[Path]:
    """Files of a name in all entries."""
    return sorted((desk.root / ".cache").glob(f"??/*/{name}"))


# ---- processes ----


def test_a_kill_leaves_a_cache_that_serves(small: Desk) -> None:
    """Killed at twelve moments, each run begins where the cache left it."""
    place, chance = Place(small.root), random.Random(4)
    for _ in range(12):
        process = place.start("compile", "s.curate", "-o", "out")
        time.sleep(chance.uniform(0.2, 1.2))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    place("compile", "s.curate", "-o", "out", "-q")
    assert small.content() == small.content("cold")
    place("verify", "out")
    place("compile", "s.curate", "-o", "new", "-q")
    assert small.content("new") == small.content("cold")
    assert strays(small.root) == []


def test_compiles_at_once(small: Desk) -> None:
    """Of one spec and an edited one, into one output and into several."""
    small.write("t.curate", EDITED)
    small.compile("t.curate", "cold-t", no_cache=True)
    place = Place(small.root)
    outs = ["same", "same", "a", "b"]
    runs = [place.start("compile", spec, "-o", out) for spec in ("s.curate",) for out in outs]
    runs += [place.start("compile", "t.curate", "-o", out) for out in ("c", "d")]
    for process in runs:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    for out in ("same", "a", "b"):
        assert small.content(out) == small.content("cold")
    for out in ("c", "d"):
        assert small.content(out) == small.content("cold-t")


# ---- caches that take nothing ----


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("module", [arrow_file, files, memo])
def test_a_disk_that_is_full_for_the_cache(small: Desk, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """What is kept of steps and sinks is written after what is needed: the compile goes on without."""
    if module is arrow_file:
        monkeypatch.setattr("curatec.runtime.memo.checkpoint._write", full)
    elif module is files:
        monkeypatch.setattr("curatec.runtime.memo.written.link", full)
    else:
        put = Cache.put

        def once(self: Cache, key: str, fill: Callable[[Path], None], digests: Any = None) -> Path:
            if len(list(self.root.glob("??/*"))) > 2:
                raise CacheError(errno.ENOSPC, "No space left on device", str(self.root))
            return put(self, key, fill, digests)

        monkeypatch.setattr(Cache, "put", once)
    small.compile("s.curate")
    assert small.content() == small.content("cold")
    small.compile("s.curate")
    assert small.content() == small.content("cold")


def test_a_cache_that_can_only_be_read(small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    small.compile("s.curate")

    true = tempfile.mkdtemp

    def refused(*given: Any, **named: Any) -> str:
        if ".cache" in str(named.get("dir")):
            raise PermissionError(errno.EACCES, "Permission denied")
        return true(*given, **named)

    monkeypatch.setattr("curatec.runtime.cache.tempfile.mkdtemp", refused)
    monkeypatch.setattr("curatec.runtime.cache.os.utime", full)
    small.write("s.curate", EDITED)
    small.compile("s.curate")
    assert small.ran == ("few",)
    warm = small.content()
    monkeypatch.undo()
    small.compile("s.curate", "cold", no_cache=True)
    assert warm == small.content("cold")


def test_files_that_cannot_be_linked_are_copied(small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curatec.runtime.memo.files.os.link", full)
    monkeypatch.setattr(Cache, "beside", lambda *_: False)  # another file system
    for _ in range(2):
        small.compile("s.curate")
        assert small.content() == small.content("cold")
    assert small.ran == ()


# ---- damaged entries ----


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))


@pytest.mark.parametrize("damage", [cut, flipped, Path.unlink], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "name",
    ["about.json", "rows.arrow", "ledger.arrow", "part-0.arrow", "toolsets.arrow", "train.jsonl", ".account.json",
     ".ledger.arrow", "seal.json", "table.arrow"],
)  # fmt: skip
def test_damage_is_found(small: Desk, name: str, damage: Callable[[Path], None]) -> None:
    """Everywhere at once; then a sink is edited, so that what is left is read."""
    small.compile("s.curate")
    found = entries(small, name)
    assert found
    for path in found:
        damage(path)
    small.compile("s.curate", "out2")
    assert small.content("out2") == small.content("cold")
    for path in entries(small, name):
        damage(path)
    small.write("s.curate", EDITED)
    small.compile("s.curate")
    warm = small.content()
    small.compile("s.curate", "cold", no_cache=True)
    assert warm == small.content("cold")
    small.compile("s.curate")
    assert small.ran == ()  # what was damaged is whole again


def test_what_says_something_else_is_not_there(small: Desk) -> None:
    """Sealed anew by somebody who wrote it otherwise."""
    small.compile("s.curate")
    for path in entries(small, "about.json"):
        path.write_bytes(orjson.dumps({"base": None}))
        Cache(small.root / ".cache").put(path.parent.name + "x", lambda folder, old=path: reseal(folder, old))
        (path.parent / "seal.json").write_bytes(
            (path.parent.parent / (path.parent.name + "x") / "seal.json").read_bytes()
        )
    small.compile("s.curate")
    assert small.ran[0] == "split_task"
    assert small.content() == small.content("cold")


def reseal(folder: Path, about: Path) -> None:
    for path in about.parent.iterdir():
        if path.name != "seal.json":
            (folder / path.name).write_bytes(path.read_bytes())


def test_another_layout_is_not_read(small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    small.compile("s.curate")
    monkeypatch.setattr(keys, "LAYOUT", keys.LAYOUT + 1)
    small.compile("s.curate")
    assert len(small.ran) == 7
    assert small.content() == small.content("cold")


def test_parsed_parts_that_are_gone_are_parsed_again(small: Desk) -> None:
    small.compile("s.curate")
    for path in entries(small, "contents.json"):
        path.unlink()
    small.write("s.curate", EDITED)
    small.compile("s.curate")
    warm = small.content()
    small.compile("s.curate", "cold", no_cache=True)
    assert warm == small.content("cold")


# ---- outputs and cache share files ----


def test_an_output_that_is_edited_in_place_changes_no_other(small: Desk) -> None:
    for out in ("out", "second", "third"):
        small.compile("s.curate", out)
    for out in ("out", "second", "third"):
        with (small.root / out / "sft" / "train.jsonl").open("r+b") as file:
            file.write(b"X")
        rest = [name for name in ("out", "second", "third") if name != out]
        assert any(small.content(name) == small.content("cold") for name in rest)
        small.compile("s.curate", out)
        small.compile("s.curate", "fresh")
        assert small.content(out) == small.content("fresh") == small.content("cold")


def test_no_two_outputs_share_a_file(small: Desk) -> None:
    for out in ("out", "second", "out", "third", "second"):
        small.compile("s.curate", out)
    inodes = [
        {path.stat().st_ino for path in (small.root / out).rglob("*") if path.is_file()}
        for out in ("out", "second", "third")
    ]
    assert len(set.union(*inodes)) == sum(map(len, inodes))


def test_an_output_whose_cache_goes_stays(small: Desk) -> None:
    small.compile("s.curate")
    before = digests(small.root / "out")
    for path in (small.root / ".cache").glob("??/*/*"):
        path.unlink()
    assert digests(small.root / "out") == before
    Place(small.root)("verify", "out")


def test_why_is_the_same_from_the_cache(small: Desk) -> None:
    place = Place(small.root)
    small.compile("s.curate")
    settle(small.root / "runs")
    small.write("s.curate", SPEC.replace("crash:", "noise:").replace("harness noise", "noise of the harness"))
    small.compile("s.curate")
    assert small.ran == ()
    small.compile("s.curate", "cold", no_cache=True)
    run = json.loads((small.root / "out" / "sft" / "train.jsonl").read_text().splitlines()[0])["example_id"]
    for ask in (("why", run), ("why", "--label", "noise"), ("why", "--label", "once"), ("show", "--json")):
        told = [place(ask[0], out, *ask[1:]).out.replace("cold", "out") for out in ("out", "cold")]
        assert told[0] == told[1]
