"""`curatec init`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json


@click.command("init")
@click.argument("folder", metavar="[DIR]", required=False, default=".", type=click.Path(path_type=Path))
@click.option("--from", "runs", metavar="RUNS", help="Fit the spec to these runs: a file, a folder or a pattern.")
@options.json_option
def command(folder: Path, runs: str | None, as_json: bool) -> int:
    """Write a first spec into DIR, which compiles as it is. Nothing that exists is overwritten.

    With --from the spec is fitted to your runs: source settings and filters, each with its reason. Without it a few
    invented runs are written beside the spec.
    JSON: {"spec", "files", "next", "diagnostics"}.
    """
    from curatec.runtime.answers.starter import start

    made = start(folder, runs)
    allow = f" --allow-path {shlex.quote(str(made.outside))}" if made.outside is not None else ""
    commands = [f"curatec {verb} {shlex.quote(str(made.spec))}{allow}" for verb in ("try", "compile")]
    if as_json:
        say_json({"spec": str(made.spec), "files": [str(f) for f in made.files], "next": commands, "diagnostics": []})
        return 0
    for file in made.files:
        say(f"wrote {file}")
    for line in commands:
        say(f"  {line}")
    return 0
