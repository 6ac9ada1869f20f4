"""`curatec compile`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import count, say, say_json, show_diagnostics, tell

if TYPE_CHECKING:
    from curatec.runtime.compile import Compiled
    from curatec.runtime.memo.unchanged import Unchanged
    from curatec.runtime.request import Request


@click.command("compile")
@options.spec_argument
@click.option("-o", "--out", metavar="OUT", type=click.Path(path_type=Path), help="Where to; out/STRATEGY by default.")
@options.strategy_option
@options.params_option
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Only the N runs with the lowest hashes.")
@click.option("--only", metavar="SINK", multiple=True, help="Only this sink; may be repeated.")
@click.option("--no-cache", is_flag=True, help="Compute all anew and keep nothing of it.")
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
    and spec give the same bytes. What was computed before is taken from the cache; where nothing changed at all since
    the last compile, OUT is not touched. SPEC may be REV:path, as in git.

    JSON: {"out", "published", "changes", "strategy", "partial", "inputs", "steps", "sinks", "conservation",
    "expectations", "seconds", "diagnostics"}; the parts are those of OUT/manifest.json.
    """
    bytes_ = options.size(memory)
    if threads is not None:
        os.environ["POLARS_MAX_THREADS"] = str(threads)  # read when polars is imported
    if trust and not as_json and not quiet:
        tell("note: `--trust` changes nothing: this version runs no code that a spec names")
    from curatec.runtime.memo.unchanged import unchanged
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
    same = unchanged(request) if not dry_run else None
    if same is not None:
        if as_json:
            say_json(data_of(same.manifest) | {"out": str(same.out), "published": False, "changes": False})
        elif not quiet:
            say(no_changes(same))
        return 0
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
        asked = request if folder is None else replace(request, out=Path(folder) / "out", fleeting=True)
        return compile_spec(asked, watch)


def no_changes(same: Unchanged) -> str:
    """What `compile` and `plan` say where there is nothing to do."""
    return f"no changes: {same.out} is what this spec makes of these {count(same.runs)} runs"


def as_data(compiled: Compiled, *, published: bool) -> dict[str, object]:
    from curatec.dsl.diagnostics import to_json

    told = {"diagnostics": [to_json(d) for d in compiled.warnings]}
    where = {"out": str(compiled.out) if published else None, "published": published, "changes": True}
    return where | data_of(compiled.manifest) | told


def data_of(manifest: dict[str, Any]) -> dict[str, object]:
    """What is told of a compile, or of one that had nothing to do: parts of the manifest."""
    parts = ("strategy", "partial", "inputs", "steps", "sinks", "conservation", "expectations")
    told = {"seconds": manifest["run"]["seconds"], "diagnostics": manifest["lints"]}
    return {name: manifest[name] for name in parts} | told
