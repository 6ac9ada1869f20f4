"""`curatec check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json, show_diagnostics

if TYPE_CHECKING:
    from curatec.compiler.check.program import Checked
    from curatec.dsl.diagnostics import Diagnostic


@click.command("check")
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@options.params_option
@options.allow_option
@options.json_option
def command(specs: tuple[str, ...], given: tuple[str, ...], allowed: tuple[Path, ...], as_json: bool) -> int:
    """Find all errors of specs, in one pass and without reading any data.

    Prints what compiling may do beyond reading its own files. A SPEC may be REV:path, as in git.
    JSON: {"specs": [{"spec", "ok", "strategies", "effects"}], "diagnostics": [...]}.
    """
    from curatec.dsl.diagnostics import to_json

    params = options.params(given)
    found = [_one(spec, params, allowed) for spec in specs]
    ok = all(_clean(diagnostics) for _, _, diagnostics in found)
    if as_json:
        problems = [to_json(d) for _, _, own in found for d in own]
        say_json({"specs": [_summary(*one) for one in found], "diagnostics": problems})
        return 0 if ok else 1
    for spec, checked, diagnostics in found:
        show_diagnostics(diagnostics)
        for line in _lines(spec, checked, diagnostics):
            say(line)
    return 0 if ok else 1


def _clean(diagnostics: tuple[Diagnostic, ...]) -> bool:
    return not any(d.severity == "error" for d in diagnostics)


def _one(
    spec: str, params: dict[str, str], allowed: tuple[Path, ...]
) -> tuple[str, Checked | None, tuple[Diagnostic, ...]]:
    from curatec.compiler.check.program import check
    from curatec.compiler.load import load
    from curatec.dsl.diagnostics import CuratecError
    from curatec.runtime.cli.guard import USAGE, exit_code

    try:
        checked = check(load(spec, allowed), params, allowed)
    except CuratecError as error:
        if exit_code(error) == USAGE:
            raise
        return spec, None, error.diagnostics
    return spec, checked, checked.diagnostics


def _summary(spec: str, checked: Checked | None, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    return {
        "spec": spec,
        "ok": _clean(diagnostics),
        "strategies": list(checked.strategies) if checked else [],
        "effects": _effects(checked) if checked else {},
    }


def _effects(checked: Checked) -> dict[str, Any]:
    """What compiling touches: the files that it reads, and everything beyond them."""
    reads: dict[str, list[str]] = {}
    for plan in checked.plans.values():
        reads |= {corpus.name: list(corpus.path) for corpus in plan.corpora}
        reads |= {table.name: list(table.path) for table in plan.tables}
        reads |= {sealed.name: list(sealed.path) for sealed in plan.sealed}
    return {"reads": reads, "beyond": list(checked.effects)}


def _lines(spec: str, checked: Checked | None, diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    errors = sum(d.severity == "error" for d in diagnostics)
    warnings = sum(d.severity == "warning" for d in diagnostics)
    told = [_plural(errors, "error"), *([_plural(warnings, "warning")] if warnings else [])]
    head = f"{spec}: {', '.join(told)}" if errors or warnings else f"{spec}: no errors"
    if checked is None or errors:
        return [head]
    effects = _effects(checked)
    strategies = ", ".join(checked.strategies) or "none"
    reads = "; ".join(f"{name}: {', '.join(paths)}" for name, paths in effects["reads"].items()) or "nothing"
    beyond = ", ".join(effects["beyond"]) or "none: no model call, no tool, no Python, no network"
    return [head, f"  strategies  {strategies}", f"  reads       {reads}", f"  effects     {beyond}"]


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
