"""The command line: the top floor, which nothing imports. Commands are loaded when they are called."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def main() -> None:
    """Entry point of `curatec`."""
    try:
        from curatec.runtime.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before or after what `run` guards
        code = 130
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever read has gone, and `run` has told it
            stream.flush()
    # All files are closed by now. Taking millions of objects apart first would cost more than many a command.
    os._exit(code)
