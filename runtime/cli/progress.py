"""How far a compile has come: bars on a terminal's stderr, nothing in a pipe or a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from curatec.runtime.request import Watch

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from curatec.runtime.ingest import Progress as ReadProgress


@contextmanager
def watching(shown: bool) -> Iterator[Watch]:
    """Bytes, files and runs read with the time that is left; then the name of each step."""
    if not shown or not sys.stderr.isatty():
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield _watch(bars)


def _watch(bars: Progress) -> Watch:
    sources: dict[str, TaskID] = {}
    steps: list[TaskID] = []

    def reading(source: str, now: ReadProgress) -> None:
        if source not in sources:
            sources[source] = bars.add_task(f"reading {source}", total=None, told="")
        told = f"{now.files_done:,}/{now.files_total:,} files  {_size(now.bytes_done)}  {now.runs:,} runs"
        bars.update(sources[source], total=now.bytes_total, completed=now.bytes_done, told=told)

    def phase(name: str) -> None:
        if not steps:
            steps.append(bars.add_task("", total=None, told=""))
        bars.update(steps[0], description=name)

    return Watch(reading, phase)


def _size(number: int) -> str:
    value, unit = float(number), "B"
    for bigger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, bigger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
