"""The cache: hits, kills, damage, concurrent writers, eviction, and disks that cannot be written."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from curatec.runtime.cache import Cache, CacheError, default_root
from curatec.runtime.formats.openai import OpenAi
from curatec.runtime.formats.part import write as write_part
from curatec.runtime.formats.rows import Gathered
from curatec.runtime.ingest import IngestError, ingest

from .conftest import USER, chat, lines, rows_of

KEY = "ab12cd34"


def write(text: str) -> object:
    def fill(directory: Path) -> None:
        (directory / "one").write_text(text)
        (directory / "two").write_text(text * 2)

    return fill


def test_put_then_get(cache: Cache) -> None:
    assert cache.get(KEY) is None
    put = cache.put(KEY, write("x"))  # type: ignore[arg-type]
    assert cache.get(KEY) == put
    assert (put / "two").read_text() == "xx"


def test_keys_cannot_leave_the_cache(cache: Cache) -> None:
    for key in ("../../x", "", "a/b"):
        with pytest.raises(ValueError, match="not a cache key"):
            cache.get(key)


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "seal", "no seal"])
def test_damage_is_found_and_mended(cache: Cache, damage: str) -> None:
    entry = cache.put(KEY, write("x" * 100))  # type: ignore[arg-type]
    if damage == "flip":
        (entry / "one").write_text("y" * 100)
    elif damage == "cut":
        os.truncate(entry / "two", 5)
    elif damage == "remove":
        (entry / "two").unlink()
    elif damage == "seal":
        (entry / "seal.json").write_text("{")
    else:
        (entry / "seal.json").unlink()
    assert cache.get(KEY) is None
    assert (cache.put(KEY, write("z")) / "one").read_text() == "z"  # type: ignore[arg-type]
    assert cache.get(KEY) is not None


def test_a_kill_between_the_halves_leaves_nothing(cache: Cache) -> None:
    class Killed(BaseException):
        pass

    def fill(directory: Path) -> None:
        (directory / "one").write_text("half")
        raise Killed

    with pytest.raises(Killed):
        cache.put(KEY, fill)
    assert cache.get(KEY) is None
    assert [path.name for path in cache.root.iterdir()] == []


def _write_many(root: str, number: int) -> None:
    cache = Cache(Path(root))
    for round_ in range(20):
        found = cache.get(KEY + str(round_))
        if found is None:
            found = cache.put(KEY + str(round_), write("same"))  # type: ignore[arg-type]
        assert (found / "two").read_text() == "samesame", number


def test_concurrent_writers_agree(cache: Cache) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(str(cache.root), number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert all(cache.get(KEY + str(round_)) for round_ in range(20))
    assert not list(cache.root.glob(".*"))


def test_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    for number in range(3):
        entry = cache.put(f"key{number}", write("x" * 100))  # type: ignore[arg-type]
        old = time.time() - 10_000 + number
        os.utime(entry / "seal.json", (old, old))
    assert cache.get("key0") is not None  # now the youngest
    cache.bound = 700
    cache.put("key3", write("x" * 100))  # type: ignore[arg-type]
    assert [cache.get(f"key{number}") is not None for number in range(4)] == [True, False, False, True]


def test_entries_in_use_stay_even_over_the_bound(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c", bound=1)
    for number in range(3):
        cache.put(f"key{number}", write("x"))  # type: ignore[arg-type]
    assert all(cache.get(f"key{number}") for number in range(3))


def test_the_place_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CURATEC_CACHE_DIR", str(tmp_path / "named"))
    assert default_root() == tmp_path / "named"
    monkeypatch.delenv("CURATEC_CACHE_DIR")
    assert default_root().name == "curatec"


def test_a_cache_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.raises(CacheError):
        cache.put(KEY, write("x"))  # type: ignore[arg-type]
    (tmp_path / "a.json").write_text(json.dumps(chat(USER)))
    with pytest.raises(IngestError) as caught:
        ingest([tmp_path / "a.json"], base=tmp_path, cache=cache)
    assert caught.value.kind == "cache"
    assert "CURATEC_CACHE_DIR" in caught.value.help


def test_a_full_disk_is_a_clear_error(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("curatec.runtime.formats.parse.write", full)
    (tmp_path / "a.json").write_text(json.dumps(chat(USER)))
    with pytest.raises(IngestError, match="No space left") as caught:
        ingest([tmp_path / "a.json"], base=tmp_path, cache=cache)
    assert caught.value.kind == "cache"


def test_ingest_reads_a_file_once_whatever_its_name(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text(lines(chat(USER), {"bad": 1}))
    first = ingest([tmp_path / "a.jsonl"], base=tmp_path, cache=cache)
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")

    def never(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("curatec.runtime.ingest.perform", never)
    second = ingest([tmp_path / "b.jsonl"], base=tmp_path, cache=cache)
    assert second.parts[0].runs == first.parts[0].runs
    assert (first.parts[0].files, second.parts[0].files) == (("a.jsonl",), ("b.jsonl",))
    assert [(reject.file, reject.line, reject.reason) for reject in second.rejects] == [
        ("b.jsonl", 2, "no `messages` list")
    ]
    assert str(tmp_path).encode() not in b"".join(path.read_bytes() for path in first.parts[0].runs.parent.iterdir())


def test_a_new_version_or_another_format_reads_again(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(chat(USER)))
    paths = [tmp_path / "a.json"]
    parts = [ingest(paths, base=tmp_path, cache=cache).parts[0].runs]
    parts.append(ingest(paths, base=tmp_path, cache=cache, format="openai").parts[0].runs)
    monkeypatch.setattr(OpenAi, "version", 999)
    parts.append(ingest(paths, base=tmp_path, cache=cache).parts[0].runs)
    assert len(set(parts)) == 3


def test_a_damaged_part_is_read_again(tmp_path: Path, cache: Cache) -> None:
    (tmp_path / "a.json").write_text(json.dumps(chat(USER)))
    first = ingest([tmp_path / "a.json"], base=tmp_path, cache=cache)
    first.parts[0].turns.unlink()
    again = ingest([tmp_path / "a.json"], base=tmp_path, cache=cache)
    assert len(rows_of(again)[0]["turns"]) == 1


def _die_half_way(root: str) -> None:
    def fill(directory: Path) -> None:
        (directory / "one").write_text("half")
        os._exit(9)

    Cache(Path(root)).put(KEY, fill)


def test_a_killed_process_leaves_no_entry_and_its_rest_is_swept_later(cache: Cache) -> None:
    worker = multiprocessing.get_context("fork").Process(target=_die_half_way, args=(str(cache.root),))
    worker.start()
    worker.join()
    assert worker.exitcode == 9
    assert cache.get(KEY) is None
    (left,) = cache.root.glob(".new-*")
    cache.put(KEY, write("x"))  # type: ignore[arg-type]
    assert left.exists()  # it may belong to a process that is still writing
    os.utime(left, (1, 1))
    Cache(cache.root).put("other", write("x"))  # type: ignore[arg-type]
    assert not left.exists()


def test_a_file_that_changes_while_it_is_read_is_not_cached(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curatec.runtime.formats.worker import perform

    path = tmp_path / "a.json"
    path.write_text(json.dumps(chat(USER)))

    def meddle(*args: object) -> object:
        found = perform(*args)  # type: ignore[arg-type]
        path.write_text(json.dumps(chat(USER, USER)))
        return found

    monkeypatch.setattr("curatec.runtime.ingest.perform", meddle)
    with pytest.raises(IngestError, match="changed while it was read"):
        ingest([path], base=tmp_path, cache=cache)
    assert not list(cache.root.glob("??/*"))


def test_a_failed_parquet_write_is_an_error_of_the_system() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(OSError, match="No space left"):
        write_part(Gathered().rows(), Path("/dev/full"), Path("/dev/full"))
