"""`curatec compile`: a spec and its corpus → OUT, whole or not at all."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from curatec.compiler import plan
from curatec.compiler.check.program import Checked
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime import expectations, manifest, sinks
from curatec.runtime.cache import Cache, DamagedEntry
from curatec.runtime.data_lints import data_lints
from curatec.runtime.engines import opened, refuse_missing
from curatec.runtime.execute import Executed, execute
from curatec.runtime.inputs import Input, read_inputs
from curatec.runtime.ledger import LINEAGE, Ledger
from curatec.runtime.memo.memo import Memo, memo_for
from curatec.runtime.memo.reading import read_by
from curatec.runtime.memo.unchanged import remember
from curatec.runtime.memo.written import Sunk
from curatec.runtime.publish import MANIFEST, full_disk, publish, staging
from curatec.runtime.report import card, page
from curatec.runtime.request import Request, Watch, checked, chosen_plan, default_out
from curatec.runtime.side import read_side
from curatec.runtime.sinks.written import Written
from curatec.runtime.steps.render import read_renderer

__all__ = ["Compiled", "Request", "Watch", "checked", "chosen_plan", "compile_spec", "default_out"]
RUN_COLUMNS = (
    "id", "source", "task", "domain", "model", "trial", "reward", "success", "outcome", "attempts", "pass_rate",
    "split", "license", "agent", "record_id", "format", "defects",
)  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    out: Path
    manifest: dict[str, Any]
    warnings: tuple[Diagnostic, ...]


@contextmanager
def told() -> Iterator[None]:
    """A full disk is said in words, whichever library met it."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        if not full_disk(error):
            raise
        raise CuratecError.of(
            "C0613",
            "the disk is full",
            help=(
                "the former output is untouched",
                "free some space, or write elsewhere with `-o`; the cache lies in CURATEC_CACHE_DIR",
            ),
        ) from None


@contextmanager
def cache_for(request: Request) -> Iterator[Cache]:
    """The shared cache, or with `--no-cache` one that is gone afterwards."""
    if not request.no_cache:
        yield Cache()
        return
    with tempfile.TemporaryDirectory(prefix="curatec-") as folder:
        yield Cache(Path(folder))


def compile_spec(request: Request, watch: Watch | None = None) -> Compiled:
    """Everything from the spec's text to a published OUT. Raises CuratecError; nothing is published then."""
    began = time.time_ns()
    found = checked(request)
    whole = chosen_plan(found, request)
    out = request.out or default_out(whole.strategy)
    target = out.resolve() if out.is_symlink() else out  # a link stays a link
    refuse_missing(whole, request.engine)
    with told(), cache_for(request) as cache:
        lasting = not request.no_cache and not request.fleeting
        read = read_by(request.spec, found.program, whole, began) if lasting else None
        compiled = None
        while compiled is None:
            with suppress(DamagedEntry):  # it is not found any more: what it held is computed again
                compiled = _compiled(request, found, whole, cache, out, target, watch or Watch())
        if lasting:
            remember(request, read, target, digests_of(compiled.manifest), cache)
    return compiled


def _compiled(
    request: Request, found: Checked, whole: plan.Plan, cache: Cache, out: Path, target: Path, watch: Watch
) -> Compiled:
    """One try. Raises DamagedEntry as well, when a file of the cache is not what it was."""
    started = datetime.now(UTC)
    project, allowed = found.program.project, request.allowed
    with staging(target) as stage, opened(request.engine, request.memory, request.threads, stage) as engine:
        watch.phase("reading")
        side = read_side(whole, project, allowed)
        renderer = read_renderer(whole, project, allowed)
        inputs = read_inputs(whole.corpora, project, allowed, cache, watch.reading)
        memo = None if request.no_cache else memo_for(whole, inputs, side, renderer, request.limit, cache)
        made = stage / "out"
        made.mkdir()
        with scratch_for(stage, memo) as scratch:
            executed = execute(
                whole,
                inputs,
                scratch,
                side=side,
                renderer=renderer,
                limit=request.limit,
                progress=watch.phase,
                engine=engine,
                memo=memo,
            )
            watch.phase("writing")
            sunk = {branch.name: sink(executed, branch, made, target, memo) for branch in whole.sinks}
            written = {name: one.written for name, one in sunk.items()}
            executed.ledger.settle()
            outcomes = expectations.ask(executed, written)
            failed = expectations.failures(outcomes)
            if failed and not request.trial:
                raise CuratecError(failed)
            lints = [*(d for d in found.diagnostics if d.severity != "error"), *data_lints(executed, written, inputs)]
            summary = manifest.build(
                executed,
                spec_name=request.spec,
                spec_text=found.program.root.parsed.source.text,
                modules=[(m.parsed.source.name, m.parsed.source.text) for m in found.program.modules],
                written=written,
                expectations=outcomes,
                lints=lints,
                partial=request.limit is not None,
                started=started,
            )
            watch.phase("report")
            with ThreadPoolExecutor(1) as beside:
                tables = beside.submit(_write_tables, executed, written, inputs, made)
                (made / "README.md").write_text(card.render(summary), encoding="utf-8")
                (made / "report.html").write_text(page.render(executed, written, summary), encoding="utf-8")
                tables.result()
        if memo is not None:
            summary["run"]["keys"] = memo.keys.data(whole, memo.kept)
            summary["run"]["cached"] = {"steps": executed.cached, "sinks": [n for n, one in sunk.items() if one.cached]}
        manifest.seal(summary, made, started, {file: d for one in sunk.values() for file, d in one.digests.items()})
        manifest.write(summary, made / MANIFEST)
        publish(made, target)
    return Compiled(out, summary, tuple(lints))


def digests_of(summary: dict[str, Any]) -> dict[str, str]:
    """All files of an output but its manifest, with their digests."""
    rejects = {manifest.REJECTS: summary["run"]["rejects"]} if summary["run"]["rejects"] else {}
    return {name: told["digest"] for name, told in {**summary["files"], **rejects}.items()}


@contextmanager
def scratch_for(stage: Path, memo: Memo | None) -> Iterator[Path]:
    """An empty folder for turns that steps write: beside OUT, or where the cache can take them over as they are."""
    with memo.scratch(stage) if memo is not None else nullcontext() as given:
        scratch = given or stage / "scratch"
        scratch.mkdir(exist_ok=True)
        yield scratch


def sink(executed: Executed, branch: plan.Branch, made: Path, target: Path, memo: Memo | None) -> Sunk:
    """A sink's files below `made`, from the cache where it wrote the same before. Its rows join the ledger."""
    kept = memo.lend(branch.name, made, target) if memo is not None else None
    if kept is not None:
        executed.ledger.frames.extend(kept.ledger)
        return kept
    own = replace(executed, ledger=Ledger())
    written = sinks.write(own, branch, made)
    executed.ledger.frames.extend(own.ledger.frames)
    digests = memo.keep_sink(written, own.ledger.frames, made / branch.name) if memo is not None else {}
    return Sunk(written, own.ledger.frames, digests)


def _write_tables(executed: Executed, written: dict[str, Written], inputs: Sequence[Input], made: Path) -> None:
    """Ledger, lineage, runs and rejects. One writer serves every engine (semantics 13)."""
    _parquet(executed.ledger.table(), made / "ledger.parquet")
    made_by = [*executed.ledger.lineage, *(w.lineage for w in written.values())]
    lineage = pl.concat(made_by) if made_by else pl.DataFrame(schema=LINEAGE)
    _parquet(lineage.sort("out", "ordinal"), made / "lineage.parquet")
    start = executed.start.rows
    if executed.splits is not None:
        start = start.join(executed.splits, on="id", how="left")
    _parquet(start.select(name for name in RUN_COLUMNS if name in start.columns).sort("id"), made / "runs.parquet")
    with (made / manifest.REJECTS).open("w", encoding="utf-8") as file:
        for given in inputs:
            for reject in given.parsed.rejects:
                row = {
                    "source": given.corpus.name,
                    "file": reject.file,
                    "line": reject.line,
                    "reason": reject.reason,
                    "raw": reject.raw,
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _parquet(frame: pl.DataFrame, path: Path) -> None:
    plain = frame.with_columns(
        pl.col(name).cast(pl.String) for name, dtype in frame.schema.items() if isinstance(dtype, pl.Enum)
    )
    pq.write_table(plain.to_arrow(), path, compression="zstd", row_group_size=100_000)
