"""What a whole process costs, its children included."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.05  # seconds
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU time in seconds, the largest memory in MB at any sample."""

    wall: float
    cpu: float
    peak: float


class Failed(Exception):
    """The process ended with another code than 0; `code`, and what it wrote to standard error."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit code {code}: {said.strip()}")
        self.code = code
        self.said = said


def cost(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> Cost:
    """Runs a command. CPU is user and system time of the process and of all children that were waited for; memory is
    the resident set of one process, and the sum of the proportional shares where there are several."""
    with (cwd / "stderr.txt").open("w+b") as errors:
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        sampler = _Sampler(process.pid)
        sampler.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        sampler.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise Failed(process.returncode, errors.read().decode(errors="replace"))
    # A spike between two samples is in the kernel's own account of the largest process.
    peak = max(sampler.peak, used.ru_maxrss * 1024)
    return Cost(wall, used.ru_utime + used.ru_stime, peak / 1e6)


class _Sampler(threading.Thread):
    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._root = root
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(EVERY):
            self.peak = max(self.peak, _memory(self._root))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _memory(root: int) -> int:
    """Bytes of the processes at and below `root`."""
    tree = list(_tree(root))
    share = _resident if len(tree) == 1 else _proportional
    total = 0
    for pid in tree:
        try:
            total += share(pid)
        except (OSError, ValueError):  # it has ended
            continue
    return total


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        below = [child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    except OSError:
        return
    for child in below:
        yield from _tree(int(child))


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def _proportional(pid: int) -> int:
    """Pages that several processes share count once among them."""
    rolled = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(rolled.partition("\nPss:")[2].split(maxsplit=1)[0]) * 1024
