"""`compile` and `plan` where nothing changed: OUT is not touched, no engine is loaded, and any change is seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SPEC, Place, corpus, digests, write_lines


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "small.curate").write_text(SPEC, encoding="utf-8")
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(6), broken='{"messages": [\n')
    made = Place(tmp_path)
    settle(tmp_path)
    made("compile", "small.curate", "-o", "out", "-q")
    return made


def settle(root: Path) -> None:
    """Files are older than the clock's tick, as they are in life."""
    for path in root.rglob("*"):
        if path.is_file() and ".cache" not in path.parts:
            stat = path.stat()
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - 10**9))


def stats(out: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in [out, *out.rglob("*")]}


def test_nothing_is_done_and_it_is_said(place: Place) -> None:
    before = stats(place.root / "out")
    said = "no changes: out is what this spec makes of these 24 runs\n"
    assert place("compile", "small.curate", "-o", "out").out == said
    assert place("plan", "small.curate", "-o", "out").out == said
    assert place("compile", "small.curate", "-o", "out", "-q").out == ""
    data = place("compile", "small.curate", "-o", "out", "--json").json
    assert (data["changes"], data["published"], data["out"]) == (False, False, "out")
    assert sum(data["sinks"]["sft"]["rows"].values()) > 0
    assert sorted(d["code"] for d in data["diagnostics"]) == ["C0616", "C0617"]
    assert stats(place.root / "out") == before


def test_no_engine_is_loaded(place: Place) -> None:
    script = (
        "import sys, curatec.runtime.cli.app as app\n"
        "code = app.run(['compile', 'small.curate', '-o', 'out'])\n"
        "assert not {'polars', 'pyarrow', 'duckdb', 'lark', 'numpy'} & sys.modules.keys()\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=place.root,
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout[:10]) == (0, "no changes"), done.stderr


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a comment": lambda root: append(root / "small.curate", "# more\n"),
    "a run more": lambda root: write_lines(root / "runs" / "b.jsonl", corpus(1)),
    "a run less": lambda root: write_lines(root / "runs" / "a.jsonl", corpus(5)),
    "a renamed file": lambda root: (root / "runs" / "a.jsonl").rename(root / "runs" / "c.jsonl"),
    "a row less": lambda root: os.truncate(root / "out" / "sft" / "train.jsonl", 10),
    "a row that says something else": lambda root: swap_byte(root / "out" / "sft" / "train.jsonl"),
    "a file less": lambda root: (root / "out" / "report.html").unlink(),
    "no output": lambda root: shutil.rmtree(root / "out"),
    "another manifest": lambda root: append(root / "out" / "manifest.json", " "),
    "no record": lambda root: shutil.rmtree(root / ".cache" / "compiled"),
    "a broken record": lambda root: [append(path, "x") for path in (root / ".cache" / "compiled").iterdir()],
}


def swap_byte(path: Path) -> None:
    """Another byte; size and time stay."""
    stat = path.stat()
    raw = bytearray(path.read_bytes())
    raw[40] ^= 1
    path.unlink()  # not in place: the time could be put back then
    path.write_bytes(bytes(raw))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(place: Place, change: str) -> None:
    """The compile after it runs, and the output is what a compile without a cache writes."""
    CHANGES[change](place.root)
    assert not place("compile", "small.curate", "-o", "out").out.startswith("no changes")
    place("verify", "out")
    place("compile", "small.curate", "-o", "fresh", "-q", "--no-cache")
    assert content(place.root / "out") == content(place.root / "fresh")


def content(out: Path) -> dict[str, object]:
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    del manifest["run"]
    return {**digests(out), "manifest.json": manifest}


@pytest.mark.parametrize(
    "arguments", [("-D", "most=1"), ("--limit", "3"), ("--only", "sft"), ("--no-cache",), ("--dry-run",)], ids=str
)
def test_another_request_is_another_matter(place: Place, arguments: tuple[str, ...]) -> None:
    assert not place("compile", "small.curate", "-o", "out", *arguments).out.startswith("no changes")


@pytest.mark.parametrize("arguments", [("--engine", "duckdb"), ("--threads", "1"), ("--memory", "1GB")], ids=str)
def test_what_changes_no_byte_changes_nothing(place: Place, arguments: tuple[str, ...]) -> None:
    assert place("compile", "small.curate", "-o", "out", *arguments).out.startswith("no changes")


def test_an_output_that_was_moved_back_is_read_and_known(place: Place) -> None:
    shutil.copytree(place.root / "out", place.root / "copy")
    shutil.rmtree(place.root / "out")
    (place.root / "copy").rename(place.root / "out")
    assert place("compile", "small.curate", "-o", "out").out.startswith("no changes")


def test_a_file_that_changed_a_moment_ago_is_not_trusted(place: Place) -> None:
    """It may change once more at the same moment by the file system's clock."""
    path = place.root / "runs" / "a.jsonl"
    path.write_bytes(path.read_bytes())
    future = path.stat().st_mtime_ns + 60 * 10**9
    os.utime(path, ns=(future, future))
    place("compile", "small.curate", "-o", "out", "-q")
    assert not place("compile", "small.curate", "-o", "out").out.startswith("no changes")
