"""`curatec explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json, show_diagnostics, wrapped

_CODE = re.compile(r"[Cc][0-9]{4}")


@click.command("explain")
@click.argument("what", metavar="CODE|SPEC")
@options.strategy_option
@options.params_option
@options.allow_option
@click.option("--engine", type=click.Choice(["polars", "duckdb"]), help="Show what this engine runs for each step.")
@options.json_option
def command(
    what: str,
    strategy: str | None,
    given: tuple[str, ...],
    allowed: tuple[Path, ...],
    engine: str | None,
    as_json: bool,
) -> int:
    """Explain a code such as C0203, or how a SPEC will be run.

    Of a spec: its steps with all names resolved and parameters filled in, where turns are read, and what is measured
    in which pass; with `--engine duckdb` the SQL of each step, with `--engine polars` its expressions.
    JSON: {"code", "title", "page"}, or {"strategy", "plan_digest", "params", "sources", "branches", "expectations"}.
    """
    if _CODE.fullmatch(what) and not Path(what).exists():
        return _code(what.upper(), as_json)
    from curatec.dsl.diagnostics import to_json
    from curatec.runtime.answers.explain import as_data
    from curatec.runtime.request import Request, checked, chosen_plan

    request = Request(what, strategy, None, options.params(given), allowed)
    found = checked(request)
    data = as_data(chosen_plan(found, request), engine)
    if as_json:
        say_json(data | {"diagnostics": [to_json(d) for d in found.diagnostics]})
        return 0
    show_diagnostics(d for d in found.diagnostics if d.severity == "error")
    for line in _lines(data):
        say(line)
    if engine == "duckdb":
        for line in _macros(data):
            say(line)
    return 0


def _code(code: str, as_json: bool) -> int:
    from curatec.dsl.codes import page, titles
    from curatec.dsl.diagnostics import CuratecError, did_you_mean

    text = page(code)
    known = titles()
    if text is None:
        close = did_you_mean(code, known)
        raise CuratecError.of(
            "C0625",
            f"there is no page for {code}",
            help=close or f"there are {len(known)} codes, from {min(known)} to {max(known)}",
        )
    if as_json:
        say_json({"code": code, "title": known[code], "page": text, "diagnostics": []})
    else:
        say(text.rstrip("\n"))
    return 0


def _lines(data: dict[str, Any]) -> Iterator[str]:
    yield f"strategy {data['strategy']}  (plan {data['plan_digest'][:12]})"
    if data["params"]:
        yield wrapped("parameters: " + ", ".join(f"{name} = {value}" for name, value in data["params"].items()))
    for source in data["sources"]:
        yield f"  from {source['name']}: {', '.join(source['path'])}"
        for name, value in source["settings"].items():
            yield f"    {name} {value}"
    for table in data["tables"]:
        yield f"  table {table['name']}: {', '.join(table['path'])}, by {table['key']}"
    for sealed in data["test_sets"]:
        yield f"  test set {sealed['name']}: {', '.join(sealed['path'])}"
    number = 0
    for branch in data["branches"]:
        if branch["kind"] == "shared" and not branch["steps"]:
            continue
        yield ""
        yield _head(branch)
        for step in branch["steps"]:
            number += 1
            yield from _step(number, step)
        for name, value in branch["settings"].items():
            yield wrapped(f"    {name}: {value}", "")
        yield from _runs(branch.get("runs", []), "    ")
    if data["expectations"]:
        yield ""
        yield from (f"  {text}" for text in data["expectations"])


def _head(branch: dict[str, Any]) -> str:
    if branch["kind"] == "shared":
        return "shared steps, once for all sinks"
    kind = "stage" if branch["kind"] == "stage" else "sink"
    return f"{kind} {branch['name']}, from {branch['from'] or 'the shared rows'}"


def _step(number: int, step: dict[str, Any]) -> Iterator[str]:
    yield wrapped(f"{number:>3}  {step['label']}: {step['says']}", "").replace("\n", "\n       ")
    if step["writes_turns"]:
        yield "       reads all turns that are left, writes them again"
    elif step["measures"]:
        yield "       reads turns once and measures:"
        for text in step["measures"]:
            yield wrapped(text, "         ")
    elif step["reads_turns"]:
        yield "       reads turns"
    if step["because"]:
        yield wrapped(f"because {step['because']}", "       ")
    yield from _runs(step.get("runs", []), "       ", f"{step['label']}: ")


def _runs(pieces: list[dict[str, str]], margin: str, label: str = "") -> Iterator[str]:
    """What the engine runs, each text below a comment that says what for."""
    for piece in pieces:
        for line in wrap(f"{label}{piece['purpose']}", 90):
            yield f"{margin}-- {line}"
        yield from (f"{margin}{line}" for line in piece["text"].splitlines())


def _macros(data: dict[str, Any]) -> Iterator[str]:
    """What SQL has no word for, as far as it is used here."""
    from curatec.compiler.duckdb.layout import macros

    told = [*(step for branch in data["branches"] for step in branch["steps"]), *data["branches"]]
    found = macros(piece["text"] for one in told for piece in one.get("runs", []))
    if found:
        yield ""
        yield "words that these statements use, defined once"
        yield from (f"  {line}" for line in found)
