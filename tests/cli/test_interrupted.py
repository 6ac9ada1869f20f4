"""Ctrl-C, SIGTERM, kill -9 and a full disk: the former output stays whole, and the next compile cleans up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CURATEC, SPEC, Place, corpus, digests, strays, write_lines

TASKS = 1500  # enough for a compile that a signal can hit


@pytest.fixture(scope="module")
def bigger(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A corpus that takes some seconds, with an output made from a part of it."""
    root = tmp_path_factory.mktemp("bigger")
    (root / "small.curate").write_text(SPEC, encoding="utf-8")
    write_lines(root / "runs" / "a.jsonl", corpus(TASKS, tool="x" * 400))
    place = Place(root)
    place("compile", "small.curate", "-o", "out", "-q", "--limit", "40")
    return place


def _wait_for_stage(place: Place, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not strays(place.root):
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
def test_interrupt_leaves_the_former_output(bigger: Place, number: signal.Signals, delay: float) -> None:
    before = digests(bigger.root / "out")
    process = bigger.start("compile", "small.curate", "-o", "out", "--no-cache")
    _wait_for_stage(bigger, process)
    time.sleep(delay)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, out, err)
    assert "interrupted; out is as it was" in err
    assert "Traceback" not in err
    assert digests(bigger.root / "out") == before
    assert strays(bigger.root) == []


def test_interrupted_first_compile_leaves_nothing(bigger: Place) -> None:
    process = bigger.start("compile", "small.curate", "-o", "new/deep/out", "--no-cache")
    while process.poll() is None and not (bigger.root / "new").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not (bigger.root / "new").exists()


def test_kill_at_random_moments(bigger: Place) -> None:
    """Whole old bytes, or whole new ones where the kill came after the exchange."""
    draw = random.Random(7)
    old = digests(bigger.root / "out")
    for _ in range(6):
        process = bigger.start("compile", "small.curate", "-o", "out")
        _wait_for_stage(bigger, process)
        time.sleep(draw.uniform(0, 1.2))
        process.kill()
        process.communicate(timeout=60)
        now = digests(bigger.root / "out")
        if now != old:
            bigger("verify", "out")
            old = now
    bigger("compile", "small.curate", "-o", "out", "-q")
    assert strays(bigger.root) == []
    bigger("verify", "out")


# ---- a full disk ----


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _fill(disk: Path, leave: int = 0) -> None:
    """Takes all room but some bytes."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(b"\0" * (free - leave))


def test_full_disk_keeps_the_former_output(bigger: Place, small_disk: Path) -> None:
    out = small_disk / "out"
    write_lines(bigger.root / "few" / "a.jsonl", corpus(4))
    (bigger.root / "few.curate").write_text(SPEC.replace("runs/*", "few/*"), encoding="utf-8")
    bigger("compile", "few.curate", "-o", out, "-q")
    before = digests(out)
    ran = bigger("compile", "small.curate", "-o", out, code=1)
    assert "C0613" in ran.err
    assert "disk is full" in ran.err
    assert digests(out) == before
    assert strays(small_disk) == []
    assert bigger("compile", "small.curate", "-o", out, "--json", code=1).json["diagnostics"][0]["code"] == "C0613"


def test_full_disk_under_the_cache(bigger: Place, small_disk: Path) -> None:
    _fill(small_disk, 64 << 10)
    ran = bigger("compile", "small.curate", "-o", "elsewhere", code=1, CURATEC_CACHE_DIR=str(small_disk / "cache"))
    assert "C0607" in ran.err or "C0613" in ran.err
    assert not (bigger.root / "elsewhere").exists()


def test_full_disk_for_the_formatter(place: Place, small_disk: Path) -> None:
    spec = small_disk / "s.curate"
    spec.write_text("curate 1\nparam a=1 in 0..2\n", encoding="utf-8")
    before = spec.read_bytes()
    _fill(small_disk)
    assert "C0613" in place("fmt", spec, code=1).err
    assert spec.read_bytes() == before
    assert sorted(p.name for p in small_disk.iterdir()) == ["filler", "s.curate"]


# ---- a reader that has seen enough ----


def _shell(place: Place, line: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, cwd=place.root, env=place.environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["why out", "show out", "show out --json", "verify out", "explain small.curate"])
def test_closed_pipe_is_quiet(finished: Place, command: str) -> None:
    line = f"{' '.join(CURATEC)} {command} | head -n 1"
    done = _shell(finished, line)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams(finished: Place, closed: str) -> None:
    line = f"{' '.join(CURATEC)} why out {closed}"
    done = _shell(finished, line)
    assert (done.returncode, done.stderr) == (0, "")


def test_full_device_is_told(finished: Place) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    line = f"{' '.join(CURATEC)} why out > /dev/full"
    done = _shell(finished, line)
    assert done.returncode == 1
    assert "C0613" in done.stderr
    assert "Traceback" not in done.stderr
