"""Processes that read at the same time.

They are plain child processes behind pipes: nothing is inherited but the environment, so the program that called may be
a script without a `__main__` guard, and threads of the engines do not meet a fork.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Lock

import msgspec

from .parse import Contents, Progress
from .worker import Answer, Task

_COMMAND = ("-P", "-m", "curatec.runtime.formats.worker")
_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",  # there is a process for each core
    # Memory that is freed is soon wanted again: it is kept, by the allocators of polars and of Python.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
}
_MOST = 8  # processes: each holds the rows of a part


class Died(Exception):
    """A reading process ended before its task did; the message says how."""


class Stopped(Exception):
    """The pool was stopped before a task was done: because of something else."""


def cores() -> int:
    """The processes that reading makes use of."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, _MOST) if sys.executable else 1


class Pool:
    """Up to `size` processes, each started when there is work for it. Leaving the context ends all of them."""

    def __init__(self, size: int) -> None:
        self._threads = ThreadPoolExecutor(size)
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._lock = Lock()
        self._started: list[subprocess.Popen[bytes]] | None = []  # null: no more are started

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def submit(self, task: Task, progress: Progress) -> Future[Contents]:
        """What the task gives, or OSError, Died or Stopped. `progress` is called on another thread. Raises Stopped."""
        try:
            return self._threads.submit(self._perform, task, progress)
        except RuntimeError:  # it takes no more
            raise Stopped from None

    def stop(self) -> None:
        """Ends the processes, whatever they are at."""
        with self._lock:
            started, self._started = self._started or [], None
        for process in started:
            process.kill()
        self._threads.shutdown()
        for process in started:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not pipe.closed:
                    with contextlib.suppress(OSError):  # of what was never read
                        pipe.close()

    def _perform(self, task: Task, progress: Progress) -> Contents:
        try:
            process = self._idle.get_nowait()
        except Empty:
            process = self._start()
        try:
            answer = _ask(process, task, progress)
        except Died:
            if self._started is None:
                raise Stopped from None
            raise
        self._idle.put(process)
        if answer.error is not None:
            raise OSError(*answer.error)
        if answer.contents is None:
            raise RuntimeError(f"a reading process failed\n{answer.fault}")
        return answer.contents

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._started is None:
                raise Stopped
            process = subprocess.Popen(
                (sys.executable, *_COMMAND),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | _ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is for the process that asks
            )
            self._started.append(process)
            return process


def _ask(process: subprocess.Popen[bytes], task: Task, progress: Progress) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):  # it has ended; what it said before stands in its output
        process.stdin.write(msgspec.json.encode(task) + b"\n")
        process.stdin.flush()
    for line in process.stdout:
        answer = msgspec.json.decode(line, type=Answer)
        if answer.progress is None:
            return answer
        progress(*answer.progress)
    raise Died(_end(process))


def _end(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    return f"it was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
