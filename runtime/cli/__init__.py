"""The command line: the top floor, which nothing imports. Commands are loaded when they are called."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of `curatec`."""
    try:
        from curatec.runtime.cli.app import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:  # before or after what `run` guards
        code = 130
    except OSError:  # whoever read has gone
        code = 1
    # All files are closed by now. Taking millions of objects apart first would cost more than many a command.
    os._exit(code)
