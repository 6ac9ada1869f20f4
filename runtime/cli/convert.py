"""`curatec convert`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import count, say, say_json, tell, wrapped

if TYPE_CHECKING:
    from curatec.dsl.diagnostics import CuratecError
    from curatec.runtime.convert import Converted
    from curatec.runtime.ingest import Corpus

# As in `runtime/targets`, which is not imported to print help.
TARGETS = ("trl", "openai", "sharegpt", "llamafactory", "verl", "atif")
_ENDINGS = (".jsonl", ".ndjson", ".json", ".parquet")


@click.command("convert")
@click.argument("paths", metavar="RUNS...", nargs=-1, required=True)
@click.option("--to", "name", type=click.Choice(TARGETS), required=True, help="The form to write.")
@click.option(
    "-o", "--out", metavar="FILE", type=click.Path(path_type=Path), required=True,
    help="A .jsonl, .json or .parquet file, or - for JSON lines on stdout.",
)  # fmt: skip
@click.option("--from", "format", metavar="FORMAT", help="The format of RUNS; recognised by content when left out.")
@click.option("--rejects", metavar="FILE", type=click.Path(path_type=Path), help="Write what gave no row, and why.")
@click.option("--force", is_flag=True, help="Replace files that are there; never one of RUNS.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@options.json_option
def command(
    paths: tuple[str, ...],
    name: str,
    out: Path,
    format: str | None,
    rejects: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Write runs of any known format in another form, without a spec.

    RUNS are files, folders or patterns. Every run gives one row, in the order of the files, or is refused with a reason
    that is counted; what the form changes on the way is told. FILE is written whole or not at all.

    JSON: {"out", "format", "runs", "rows", "refused": {reason: runs}, "unreadable", "formats", "about",
    "diagnostics"}.
    """
    _refuse(out, rejects, as_json, force)
    found = _convert(paths, name, out, rejects, format, shown=not quiet and not as_json)
    if rejects is not None:
        from curatec.runtime.convert import write_rejects

        write_rejects(found, rejects)
    if as_json:
        say_json(_data(found, out))
    elif not quiet:
        _summary(found, out, rejects)
    return 0


def _refuse(out: Path, rejects: Path | None, as_json: bool, force: bool) -> None:
    """What is wrong with the places, before anything is read."""
    if str(out) == "-":
        if as_json:
            raise click.UsageError("`--json` and `-o -` would both write to stdout")
    elif out.suffix.lower() not in _ENDINGS:
        raise click.UsageError(f"`-o {out}` ends with none of {', '.join(_ENDINGS)}")
    elif out.is_dir():
        raise click.UsageError(f"`-o {out}` is a folder; name a file in it")
    if rejects is not None and rejects.resolve() == out.resolve():
        raise click.UsageError("`-o` and `--rejects` name the same file")
    for file in (out, rejects):
        if file is not None and file.is_file() and not force:
            raise _there(file, "is there already", "name another file; `--force` replaces what no runs are read from")


def _spare(corpus: Corpus, base: Path, *written: Path | None) -> None:
    """Runs are never written over, whatever the user says: what a form cannot express would be lost."""
    read = {(base / name).resolve() for name in corpus.files}
    for file in written:
        if file is not None and file.resolve() in read:
            raise _there(file, "is one of the files that are read", "name another file")


def _there(file: Path, what: str, help: str) -> CuratecError:
    from curatec.dsl.diagnostics import CuratecError

    return CuratecError.of("C0626", f"`{file}` {what}", help=help, place=str(file))


def _convert(
    paths: tuple[str, ...], name: str, out: Path, rejects: Path | None, format: str | None, *, shown: bool
) -> Converted:
    from curatec.runtime.cli.guard import interruptible

    stdout = str(out) == "-"
    with interruptible("interrupted" if stdout else f"interrupted; {out} is as it was"):
        from curatec.runtime.answers.inspect import read
        from curatec.runtime.cli.progress import watching
        from curatec.runtime.convert import convert
        from curatec.runtime.targets import target

        base = Path.cwd()
        with watching(shown) as watch:
            corpus = read(paths, base, format=format, on_progress=lambda p: watch.reading("runs", p))
        _spare(corpus, base, None if stdout else out, rejects)
        return convert(corpus, target(name), out, sys.stdout.buffer if stdout else None)


def _data(found: Converted, out: Path) -> dict[str, object]:
    return {
        "out": str(out),
        "format": found.target.name,
        "runs": found.runs,
        "rows": found.rows,
        "refused": found.refused,
        "unreadable": len(found.unreadable),
        "formats": found.formats,
        "about": found.target.about,
        "diagnostics": [],
    }


def _summary(found: Converted, out: Path, rejects: Path | None) -> None:
    """One line of what was written; beside it what was not, and what the form changes."""
    from curatec.runtime.targets import REASONS

    read = ", ".join(f"{name} {count(n)}" for name, n in found.formats.items())
    line = f"{count(found.rows)} of {count(found.runs)} runs ({read}) written to {out} as {found.target.name}"
    (tell if str(out) == "-" else say)(line)
    for reason, n in found.refused.items():
        tell(wrapped(f"refused {count(n)}: {reason}, {REASONS.get(reason, reason)}"))
    if found.unreadable:
        first = found.unreadable[0]
        where = f"{first.file}:{first.line}: {first.reason}"
        tell(wrapped(f"not read {count(len(found.unreadable))}, the first at {where}"))
    if found.refused or found.unreadable:
        told = f"all of them are in {rejects}" if rejects is not None else "`--rejects FILE` writes all of them"
        tell(wrapped(told))
    tell(wrapped(f"note: {found.target.about}", ""))
