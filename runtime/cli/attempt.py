"""`curatec try`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json, show_diagnostics

if TYPE_CHECKING:
    from curatec.runtime.answers.output import Output


@click.command("try")
@options.spec_argument
@click.option("--rows", metavar="N", type=click.IntRange(1), default=100, help="How many runs; 100 by default.")
@options.strategy_option
@options.params_option
@options.allow_option
@options.json_option
def command(
    spec: str, rows: int, strategy: str | None, given: tuple[str, ...], allowed: tuple[Path, ...], as_json: bool
) -> int:
    """Compile the N runs with the lowest hashes, show every step's count and two runs in detail, and keep nothing.

    An expectation that does not hold over so few runs is told, and stops nothing.
    JSON: that of `compile` and "examples": [what `why ID --json` says of a run].
    """
    from curatec.runtime.answers.output import open_output
    from curatec.runtime.answers.why import account
    from curatec.runtime.cli.compile import as_data, compiling
    from curatec.runtime.cli.summary import summary
    from curatec.runtime.request import Request

    with tempfile.TemporaryDirectory(prefix="curatec-try-") as folder:
        out = Path(folder) / "out"
        request = Request(spec, strategy, out, options.params(given), allowed, rows, trial=True, fleeting=True)
        compiled = compiling(request, shown=not as_json)
        output = open_output(out)
        examples = [account(output, run) for run in _examples(output)]
    if as_json:
        say_json(as_data(compiled, published=False) | {"examples": [asdict(example) for example in examples]})
        return 0
    from curatec.runtime.cli import why_text

    say(summary(compiled.manifest))
    for example in examples:
        say()
        for line in why_text.account(example):
            say(line)
    show_diagnostics(compiled.warnings)
    return 0


def _examples(output: Output) -> Iterator[str]:
    """A run that a sink has kept and one that a step took out, each with the lowest id."""
    ledger = output.ledger.filter(output.ledger["turn"].is_null())
    kept = ledger.filter(ledger["action"] == "kept")["traj_id"].sort()
    gone = ledger.filter(ledger["action"] == "dropped")["traj_id"]
    gone = gone.filter(~gone.is_in(kept.implode())).sort()
    for ids in (kept, gone):
        if len(ids):
            yield _told(output, ids[0])


def _told(output: Output, id_: str) -> str:
    """Whose account tells of a row: its own, or that of what a sink made it from."""
    while id_ in output.first_parents and id_ not in output.made:
        id_ = output.first_parents[id_]
    return id_
