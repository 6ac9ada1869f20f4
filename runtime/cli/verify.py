"""`curatec verify`."""

from __future__ import annotations

from pathlib import Path

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json, show_diagnostics


@click.command("verify")
@options.out_argument
@options.json_option
def command(out: Path, as_json: bool) -> int:
    """Check an output against its manifest: digests, row counts, sums of the ledger, lineage, splits, ids.

    Exit 1, and every fault named, when something is off.
    JSON: {"out", "ok", "checks": [...], "files", "diagnostics": [...]}.
    """
    from curatec.dsl.diagnostics import to_json
    from curatec.runtime.answers.output import open_output
    from curatec.runtime.answers.verify import verify

    output = open_output(out)
    checks, faults = verify(output)
    files = len(output.manifest["files"])
    if as_json:
        told = {"out": str(out), "ok": not faults, "checks": checks, "files": files}
        say_json(told | {"diagnostics": [to_json(d) for d in faults]})
    else:
        show_diagnostics(faults)
        for check in checks:
            say(f"  {check}")
        say(f"{out}: {len(faults)} faults" if faults else f"{out}: {files} files are whole, nothing is off")
    return 1 if faults else 0
