"""`curatec why`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json

if TYPE_CHECKING:
    from curatec.runtime.answers.output import Output


@click.command("why")
@options.out_argument
@click.argument("name", metavar="[ID]", required=False)
@click.option("--turn", "number", metavar="N", type=int, help="One turn of the run, as numbered in the source.")
@click.option("--label", metavar="L", help="The runs that a step, or a rule of a sink, took out.")
@click.option("--sink", metavar="SINK", help="Only what concerns this sink.")
@click.option("--sample", metavar="N", type=click.IntRange(1), help="How many runs to show; 5 by default.")
@options.json_option
def command(
    out: Path,
    name: str | None,
    number: int | None,
    label: str | None,
    sink: str | None,
    sample: int | None,
    as_json: bool,
) -> int:
    """Say why a run or a turn was kept, dropped or edited, step by step and for every sink.

    ID is the beginning of a run's id, an example id, the record's own id, or FILE:LINE of a record that could not be
    read. Without it: the steps with their counts, or with --label the runs that one of them took out.

    JSON: {"runs": [{"id", "facts", "sinks": [{"sink", "outcome", "by", "reason", "steps", "examples", "notes"}],
    "parent", "operator"}]} (the last two for a row that a step made),
    with --turn {"turns": [...]}, with --label {"labels": [...]}, of a rejected record {"reject": {...}}, without any
    {"steps", "sinks"}; always "diagnostics".
    """
    from curatec.runtime.answers.output import open_output

    if number is not None and name is None:
        raise click.UsageError("`--turn` needs the ID of a run")
    if name is not None and label is not None:
        raise click.UsageError("give either an ID or `--label`")
    output = open_output(out)
    sinks = (output.sink(sink),) if sink is not None else ()
    if name is not None:
        data, lines = _named(output, name, number, sinks, sample or 5)
    elif label is not None or sample is not None:
        data, lines = _labels(output, label, sink, sample or 5)
    else:
        data, lines = _overview(output, sink)
    if as_json:
        say_json(data | {"diagnostics": []})
        return 0
    for line in lines:
        say(line)
    return 0


Answer = tuple[dict[str, Any], Iterator[str]]


def _named(output: Output, name: str, number: int | None, sinks: tuple[str, ...], sample: int) -> Answer:
    from curatec.runtime.answers import why, why_turn
    from curatec.runtime.answers.lookup import find
    from curatec.runtime.cli import why_text

    found = find(output, name)
    if found.reject is not None:
        return {"reject": found.reject}, why_text.reject(found.reject)
    if number is not None:
        fates = {run: why_turn.turn(output, run, number, sinks) for run in found.runs[:sample]}
        turns = [{"id": run, "turn": number, **asdict(fate)} for run, own in fates.items() for fate in own]
        return {"turns": turns}, why_text.turns(fates, number)
    accounts = [why.account(output, run, sinks) for run in found.runs[:sample]]
    runs = [asdict(account) for account in accounts]
    return {"example": found.example, "runs": runs}, why_text.accounts(found, accounts)


def _labels(output: Output, label: str | None, sink: str | None, sample: int) -> Answer:
    from curatec.runtime.answers import why
    from curatec.runtime.cli import why_text

    wanted = [label] if label is not None else why.dropping(output, sink)
    found = [one for name in wanted for one in why.labelled(output, name, sink, sample)]
    return {"labels": [asdict(one) for one in found]}, why_text.labels(found)


def _overview(output: Output, sink: str | None) -> Answer:
    from curatec.runtime.cli import why_text

    steps = output.steps_of(sink) if sink is not None else output.steps
    sinks = {name: own for name, own in output.sinks.items() if sink in (None, name)}
    return {"steps": steps, "sinks": sinks}, why_text.overview(output, steps, sinks)
