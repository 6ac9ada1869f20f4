"""`curatec fmt`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json, show_diagnostics, tell

if TYPE_CHECKING:
    from curatec.dsl.diagnostics import Diagnostic
    from curatec.dsl.fmt import Formatted


@dataclass(frozen=True)
class _File:
    name: str
    text: str
    formatted: Formatted


@click.command("fmt")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 where a file would change.")
@click.option("--diff", "as_diff", is_flag=True, help="Write nothing; print what would change, and exit 1 if anything.")
@options.json_option
def command(files: tuple[str, ...], only_check: bool, as_diff: bool, as_json: bool) -> int:
    """Lay out specs in the one style, in place; comments stay where they are and no meaning changes.

    A FILE may be a folder (all .curate files below it), or `-`: standard input, formatted to standard output.
    JSON: {"files": [{"file", "changed", "written"}], "diagnostics": [...]}; of standard input also "text".
    """
    from curatec.dsl.diagnostics import to_json

    problems: list[Diagnostic] = []
    done = [f for name in _names(files) if (f := _format(name, problems)) is not None]
    problems += [d for f in done for d in f.formatted.diagnostics]
    dry = only_check or as_diff
    changed = [f for f in done if f.formatted.changed]
    if not dry:
        for file in changed:
            if file.name != "-":
                _replace(Path(file.name), file.formatted.text)
    if as_json:
        told = [_told(file, dry) for file in done]
        say_json({"files": told, "diagnostics": [to_json(d) for d in problems]})
    else:
        show_diagnostics(problems)
        _print(done, only_check=only_check, as_diff=as_diff)
    wrong = any(d.severity == "error" for d in problems)
    return 1 if wrong or (dry and changed) else 0


def _told(file: _File, dry: bool) -> dict[str, object]:
    facts = {"file": file.name, "changed": file.formatted.changed}
    if file.name == "-":
        return facts | {"written": False, "text": file.formatted.text}
    return facts | {"written": file.formatted.changed and not dry}


def _print(done: list[_File], *, only_check: bool, as_diff: bool) -> None:
    from curatec.dsl.fmt import diff

    for file in done:
        if as_diff and file.formatted.changed:
            sys.stdout.write(diff(file.text, file.formatted.text, "stdin" if file.name == "-" else file.name))
        elif only_check and file.formatted.changed:
            say(f"would change {file.name}")
        elif file.name == "-" and not only_check and not as_diff:
            sys.stdout.write(file.formatted.text)
        elif file.formatted.changed and not as_diff:
            say(f"formatted {file.name}")
    unchanged = sum(not f.formatted.changed and not f.formatted.diagnostics for f in done)
    if not as_diff and unchanged and any(f.name != "-" for f in done):
        tell(f"{unchanged} {'file is' if unchanged == 1 else 'files are'} in the style already")


def _names(given: tuple[str, ...]) -> Iterator[str]:
    """Files as given, the specs below folders, each once."""
    seen: set[str] = set()
    for name in given:
        path = Path(name)
        found = sorted(str(p) for p in path.rglob("*.curate") if p.is_file()) if path.is_dir() else [name]
        yield from (f for f in found if f not in seen)
        seen.update(found)


def _format(name: str, problems: list[Diagnostic]) -> _File | None:
    from curatec.dsl.diagnostics import Diagnostic
    from curatec.dsl.fmt import format_text
    from curatec.dsl.parse import decode, read_source

    shown = "<stdin>" if name == "-" else name
    source = decode(sys.stdin.buffer.read(), shown) if name == "-" else read_source(Path(name))
    if isinstance(source, Diagnostic):
        problems.append(source)
        return None
    return _File(name, source.text, format_text(source.text, shown))


def _replace(path: Path, text: str) -> None:
    """All of the new text or all of the old one, under the same rights; a link stays a link."""
    from curatec.dsl.diagnostics import CuratecError
    from curatec.runtime.publish import full_disk

    target = path.resolve()
    made: str | None = None
    try:
        number, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(made, target.stat().st_mode & 0o7777)
        os.replace(made, target)
        made = None
    except OSError as error:
        if full_disk(error):
            raise
        help_ = "the file is as it was; see what is right now with `--diff`"
        raise CuratecError.of("C0602", f"`{path}` cannot be written: {error.strerror}", help=help_) from None
    finally:
        if made is not None:
            Path(made).unlink(missing_ok=True)
