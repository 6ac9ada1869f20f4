"""`curatec inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import count, say, say_json, table, wrapped

if TYPE_CHECKING:
    from curatec.runtime.answers.inspect import Profile


@click.command("inspect")
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@options.json_option
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """Say what is in raw files: formats, runs, turns, tools, outcomes, defects, what cannot be read; hints for a spec.

    PATHS are files, folders or patterns. JSON: the same numbers, "hints", and "diagnostics".
    """
    from curatec.runtime.answers.inspect import profile, read

    found = profile(read(paths, Path.cwd()))
    if as_json:
        say_json(found.data() | {"diagnostics": []})
    else:
        for line in _lines(found):
            say(line)
    return 0


def _lines(p: Profile) -> Iterator[str]:
    from curatec.runtime.answers.inspect import hints
    from curatec.runtime.formats.defects import DEFECTS

    yield f"{count(p.runs)} runs in {count(p.files)} files ({_counted(p.formats)})"
    if p.empty_files:
        yield f"  {count(p.empty_files)} files hold no record"
    facts = [
        ("turns", f"{count(p.turns)}{_spread(p.turns_per_run, ' a run')}"),
        ("calls", f"{count(p.calls)} of {count(len(p.tools))} tools"),
        ("tools", _counted(p.tools, 12)),
        (
            "results",
            f"{count(p.results)}, {count(p.failed_results)} errors among {count(p.judged_results)} that say so",
        ),
        ("outcomes", _counted(p.outcomes)),
        ("reward", _spread(p.rewards, "").strip(" :") or "none"),
        ("tasks", f"{count(p.tasks)}, {p.attempts:g} runs each" if p.tasks else "no task ids"),
        ("models", _counted(p.models) or "none named"),
        ("domains", _counted(p.domains) or "none named"),
        ("schemas", f"in {count(p.schemas)} of {count(p.runs)} runs"),
        ("licences", _counted(p.licenses) or "none named"),
    ]
    yield table(("", ""), facts).partition("\n")[2]
    if p.defects:
        yield ""
        yield table(
            ("defect", "runs", "meaning"),
            [(n, count(c), DEFECTS.get(n, "")) for n, c in p.defects.most_common()],
            right=(1,),
        )
    if p.rejected:
        yield ""
        yield f"{count(p.rejected)} records could not be read"
        for reject in p.rejects:
            yield wrapped(f"{reject['file']}:{reject['line']}: {reject['reason']}")
        if p.rejected > len(p.rejects):
            yield f"  and {count(p.rejected - len(p.rejects))} more"
    found = list(hints(p))
    if found:
        yield ""
        yield "hints for a spec (`curatec init --from` writes one)"
        for hint in found:
            yield wrapped(f"- {hint}").replace("\n  ", "\n    ")


def _results(p: Profile) -> str:
    if not p.judged_results:
        return f"{count(p.results)}; none says whether it is an error"
    return f"{count(p.results)}; {count(p.failed_results)} are errors among {count(p.judged_results)} that say so"


def _counted(counter: Counter[str], most: int = 8) -> str:
    shown = ", ".join(f"{name} {count(n)}" for name, n in counter.most_common(most))
    return shown + (f" and {len(counter) - most} more" if len(counter) > most else "")


def _spread(spread: dict[str, float], of: str) -> str:
    if not spread:
        return ""
    return f": {spread['min']:g} to {spread['max']:g}{of}, median {spread['median']:g}, mean {spread['mean']:g}"
