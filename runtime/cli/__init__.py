"""The command line: the top floor, which nothing imports. Commands are loaded when they are called."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `curatec`."""
    try:
        from curatec.runtime.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before or after what `run` guards
        code = 130
    sys.exit(code)
