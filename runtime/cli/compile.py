"""`curatec compile`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import say, say_json, show_diagnostics, tell

if TYPE_CHECKING:
    from curatec.runtime.compile import Compiled
    from curatec.runtime.request import Request


@click.command("compile")
@options.spec_argument
@click.option("-o", "--out", metavar="OUT", type=click.Path(path_type=Path), help="Where to; out/STRATEGY by default.")
@options.strategy_option
@options.params_option
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Only the N runs with the lowest hashes.")
@click.option("--only", metavar="SINK", multiple=True, help="Only this sink; may be repeated.")
@click.option("--no-cache", is_flag=True, help="Parse the runs anew and keep nothing of it.")
@click.option("--dry-run", is_flag=True, help="Do everything but publish.")
@options.allow_option
@options.engine_option
@click.option(
    "--threads", metavar="N", type=click.IntRange(1, 4096), help="Threads of the engine; all cores by default."
)
@click.option(
    "--memory",
    metavar="SIZE",
    help="What the run may hold, about: fewer turns stay in memory, and duckdb writes to disk what it sorts and joins.",
)
@click.option("--trust", is_flag=True, help="Run the code that a spec names (there is none in this version).")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@options.json_option
def command(
    spec: str,
    out: Path | None,
    strategy: str | None,
    given: tuple[str, ...],
    limit: int | None,
    only: tuple[str, ...],
    no_cache: bool,
    dry_run: bool,
    allowed: tuple[Path, ...],
    engine: str,
    threads: int | None,
    memory: str | None,
    trust: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Make the training data that SPEC asks for.

    OUT is replaced as a whole, or stays as it was: a failure, Ctrl-C or a crash never leaves half of it. The same runs
    and spec give the same bytes. SPEC may be REV:path, as in git.

    JSON: {"out", "published", "strategy", "partial", "inputs", "steps", "sinks", "conservation", "expectations",
    "seconds", "diagnostics"}; the parts are those of OUT/manifest.json.
    """
    bytes_ = options.size(memory)
    if threads is not None:
        os.environ["POLARS_MAX_THREADS"] = str(threads)  # read when polars is imported
    if trust and not as_json and not quiet:
        tell("note: `--trust` changes nothing: this version runs no code that a spec names")
    from curatec.runtime.request import Request

    request = Request(
        spec,
        strategy,
        out,
        options.params(given),
        allowed,
        limit,
        only,
        no_cache,
        engine=engine,
        memory=bytes_,
        threads=threads,
    )
    compiled = compiling(request, shown=not quiet and not as_json, dry_run=dry_run)
    if as_json:
        say_json(as_data(compiled, published=not dry_run))
    elif not quiet:
        from curatec.runtime.cli.summary import next_commands, summary

        say(summary(compiled.manifest))
        if compiled.warnings:
            tell("")
            show_diagnostics(compiled.warnings)
        say()
        say("nothing was published (--dry-run)" if dry_run else next_commands(compiled))
    return 0


def compiling(request: Request, *, shown: bool, dry_run: bool = False) -> Compiled:
    """Compile with progress on a terminal. With `dry_run` the output is made elsewhere and thrown away.

    Raises CuratecError, and Interrupted with what became of the output.
    """
    import tempfile
    from contextlib import nullcontext
    from dataclasses import replace

    from curatec.runtime.cli.guard import interruptible
    from curatec.runtime.cli.progress import watching
    from curatec.runtime.compile import compile_spec

    place = tempfile.TemporaryDirectory(prefix="curatec-") if dry_run else nullcontext(None)
    kept = "nothing is kept" if dry_run or request.trial else f"{request.out or 'the output'} is as it was"
    with interruptible(f"interrupted; {kept}"), place as folder, watching(shown) as watch:
        asked = request if folder is None else replace(request, out=Path(folder) / "out")
        return compile_spec(asked, watch)


def as_data(compiled: Compiled, *, published: bool) -> dict[str, object]:
    from curatec.dsl.diagnostics import to_json

    parts = ("strategy", "partial", "inputs", "steps", "sinks", "conservation", "expectations")
    return {
        "out": str(compiled.out) if published else None,
        "published": published,
        **{name: compiled.manifest[name] for name in parts},
        "seconds": compiled.manifest["run"]["seconds"],
        "diagnostics": [to_json(d) for d in compiled.warnings],
    }
