"""The command line: the top floor, which nothing imports. Commands are loaded when they are called."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `curatec`."""
    from curatec.runtime.cli.app import run

    sys.exit(run(sys.argv[1:]))
