"""`curatec plan`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import count, say, say_json, show_diagnostics, table, wrapped

if TYPE_CHECKING:
    from curatec.runtime.answers.planning import Change, Planned


@click.command("plan")
@options.spec_argument
@click.option("-o", "--out", metavar="OUT", type=click.Path(path_type=Path), help="The output to compare with.")
@options.strategy_option
@options.params_option
@options.allow_option
@options.json_option
def command(
    spec: str, out: Path | None, strategy: str | None, given: tuple[str, ...], allowed: tuple[Path, ...], as_json: bool
) -> int:
    """Say what a compile would do: runs of each source, steps whose result changes and why, model calls, time.

    Runs are parsed into the cache where they are not yet; nothing else is written.
    JSON: {"strategy", "out", "compared", "changes", "sources", "side", "steps", "sinks", "other", "notes",
    "model_calls", "usd", "last_seconds", "diagnostics"}; a change is {"branch", "name", "state", "why", "rows"}.
    """
    from curatec.runtime.cli.compile import no_changes
    from curatec.runtime.memo.unchanged import unchanged
    from curatec.runtime.request import Request, checked, chosen_plan, default_out

    request = Request(spec, strategy, out, options.params(given), allowed)
    same = unchanged(request) if not as_json else None
    if same is not None:
        say(no_changes(same))
        return 0
    from curatec.dsl.diagnostics import to_json
    from curatec.runtime.answers.planning import compare, lacking
    from curatec.runtime.cache import Cache
    from curatec.runtime.cli.progress import watching
    from curatec.runtime.inputs import read_inputs
    from curatec.runtime.side import read_side

    found = checked(request)
    whole = chosen_plan(found, request)
    with watching(not as_json) as watch:
        side = read_side(whole, found.program.project, allowed)
        rendered, missing = lacking(whole, found.program.project, allowed)
        inputs = read_inputs(whole.corpora, found.program.project, allowed, Cache(), watch.reading)
    planned = compare(whole, found, inputs, side, rendered, out or default_out(whole.strategy))
    diagnostics = (*found.diagnostics, *missing)
    if as_json:
        say_json(planned.data() | {"diagnostics": [to_json(d) for d in diagnostics]})
        return 0
    show_diagnostics(diagnostics)
    for line in _lines(planned):
        say(line)
    return 0


def _lines(p: Planned) -> Iterator[str]:
    runs = sum(source.rows or 0 for source in p.sources)
    if p.nothing:
        yield f"no changes: {p.out} is what this spec makes of these {count(runs)} runs"
        return
    yield f"strategy {p.strategy} → {p.out}" + ("" if p.compared else ", which is not there yet")
    yield ""
    rows = [(f"from {s.name}", count(s.rows), _state(s, p.compared)) for s in p.sources]
    yield table(("source", "runs", ""), rows, right=(1,))
    if p.side:
        yield ""
        yield table(
            ("beside", "rows", ""), [(s.name, count(s.rows), _state(s, p.compared)) for s in p.side], right=(1,)
        )
    yield ""
    if p.compared:
        yield from _compared(p)
    else:
        yield wrapped(f"{len(p.steps)} steps run over {count(runs)} runs, for {len(p.sinks)} sinks", "  ")
    for note in p.notes:
        yield wrapped(note)
    yield ""
    yield "  model calls 0, money 0 $"
    yield f"  last run {p.seconds:.1f} s" if p.seconds is not None else "  no earlier run to tell the time from"


def _compared(p: Planned) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    branch: object = ""
    for step in p.steps:
        if step.branch != branch:
            branch = step.branch
            rows.append((str(branch) if branch else "shared", ""))
        rows.append((f"  {step.name}", _state(step, True)))
    if rows:
        yield table(("step", "result"), rows)
        yield ""
    yield table(("sink", "rows now", "result"), [(s.name, count(s.rows), _state(s, True)) for s in p.sinks], right=(1,))
    for line in p.other:
        yield wrapped(f"also: {line}")


def _state(change: Change, compared: bool) -> str:
    if not compared:
        return ""
    word = {"same": "as before", "after": "runs again"}.get(change.state, change.state)
    return f"{word}: {change.why}" if change.why else word
