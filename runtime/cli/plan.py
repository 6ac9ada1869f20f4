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
    """Say what a compile would do: which steps it would run and which results it would take from the cache, and why.

    Runs are parsed into the cache where they are not yet; nothing else is written.
    JSON: {"strategy", "out", "compared", "changes", "sources", "side", "steps", "sinks", "other", "notes",
    "model_calls", "usd", "last_seconds", "diagnostics"}; a change is {"branch", "name", "state", "why", "rows", "runs",
    "because"}.
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
        renderer, missing = lacking(whole, found.program.project, allowed)
        cache = Cache()
        inputs = read_inputs(whole.corpora, found.program.project, allowed, cache, watch.reading)
    planned = compare(whole, found, inputs, side, renderer, out or default_out(whole.strategy), cache)
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
    yield from _work(p)
    for note in p.notes:
        yield wrapped(note)
    yield ""
    yield "  model calls 0, money 0 $"
    yield f"  last run {p.seconds:.1f} s" if p.seconds is not None else "  no earlier run to tell the time from"


def _work(p: Planned) -> Iterator[str]:
    """What runs and what does not; one line where nothing is known of any of it."""
    if not p.compared and all(change.runs is not False for change in (*p.steps, *p.sinks)):
        runs = sum(source.rows or 0 for source in p.sources)
        told = f"{len(p.steps)} steps run over {count(runs)} runs, for {len(p.sinks)} sinks: the cache holds nothing"
        yield wrapped(f"{told} of them", "  ")
        return
    rows: list[tuple[str, ...]] = []
    branch: object = ""
    for step in p.steps:
        if step.branch != branch:
            branch = step.branch
            rows.append((str(branch) if branch else "shared", ""))
        rows.append((f"  {step.name}", _told(step, p.compared)))
    if rows:
        yield table(("step", "result"), rows)
        yield ""
    sinks = [(s.name, count(s.rows) if p.compared else "", _told(s, p.compared)) for s in p.sinks]
    yield table(("sink", "rows now" if p.compared else "", "result"), sinks, right=(1,))
    for line in p.other:
        yield wrapped(f"also: {line}")


def _told(change: Change, compared: bool) -> str:
    """Whether a step or sink runs, and why; what it was, where it is another now."""
    if change.runs is None:
        return _state(change, compared)
    word = "from the cache" if not change.runs else "runs again" if compared else "runs"
    said = [change.because, change.why if change.state in ("same", "changed") else ""]
    why = "; ".join(part for part in said if part)
    return f"{word}: {why}" if why else word


def _state(change: Change, compared: bool) -> str:
    if not compared:
        return ""
    word = {"same": "as before", "after": "runs again"}.get(change.state, change.state)
    return f"{word}: {change.why}" if change.why else word
