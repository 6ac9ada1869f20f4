"""The same work on many things: several at a time, results in order, few of them waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import polars as pl

T = TypeVar("T")
R = TypeVar("R")
_MOST = 4  # each thread holds what it works on


def workers() -> int:
    """How many threads work: as many as polars may use, but not more parts in memory than a laptop holds."""
    return min(_MOST, pl.thread_pool_size())


def mapped(work: Callable[[T], R], things: Iterable[T]) -> Iterator[R]:
    """`work` of each thing, in order. Threads pay where the work lets go of the interpreter, as polars does. What it
    raises is raised here, for the first thing in order; nothing later is begun then."""
    threads = workers()
    given = list(things)
    if threads == 1 or len(given) < 2:
        yield from map(work, given)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: deque[Future[R]] = deque()
        try:
            for thing in given:
                running.append(pool.submit(work, thing))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
