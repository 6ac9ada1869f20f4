"""What one process reads at a time, and the process that does: `python -m curatec.runtime.formats.worker`.

A worker takes a task a line from its standard input and answers with lines of JSON: how far it is, and how it ended. It
ends with its input, so none is left behind when the process that started it is gone.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

import msgspec

from . import adapters
from .parse import Contents, Piece, Progress, parse_group, parse_piece


@dataclass(frozen=True, slots=True)
class Task:
    """Files to read into `directory`, or a piece of the only one. `format` names an adapter; null: each file tells."""

    files: tuple[str, ...]
    directory: str
    format: str | None
    piece: Piece | None = None


class Answer(msgspec.Struct, omit_defaults=True):
    """A line of a worker. The last one to a task has its contents, an error of the system, or a fault of our own."""

    progress: tuple[int, int, int] | None = None
    contents: Contents | None = None
    error: tuple[int | None, str | None, str | None] | None = None
    fault: str | None = None


def perform(task: Task, progress: Progress) -> Contents:
    """Raises OSError."""
    adapter = adapters()[task.format] if task.format is not None else None
    files = [Path(name) for name in task.files]
    if task.piece is None:
        return parse_group(files, adapter, Path(task.directory), progress)
    assert adapter is not None
    return parse_piece(files[0], task.piece, adapter, Path(task.directory), progress)


def _answered(line: bytes, answers: BinaryIO) -> Answer:
    def tell(*progress: int) -> None:
        _write(Answer(progress=progress), answers)  # type: ignore[arg-type]

    try:
        return Answer(contents=perform(msgspec.json.decode(line, type=Task), tell))
    except OSError as error:
        name = os.fsdecode(error.filename) if error.filename is not None else None
        return Answer(error=(error.errno, error.strerror or str(error), name))
    except Exception:
        return Answer(fault=traceback.format_exc())


def _write(answer: Answer, answers: BinaryIO) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()


def main() -> None:
    # What an adapter prints must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    assert isinstance(sys.stdout, TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)  # the process is ended without being asked
    for line in sys.stdin.buffer:
        _write(_answered(line, answers), answers)


if __name__ == "__main__":
    main()
