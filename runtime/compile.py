"""`curatec compile`: a spec and its corpus → OUT, whole or not at all."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from curatec.compiler import plan
from curatec.compiler.core import Column, walk
from curatec.compiler.verifiers import VERIFIERS
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime import expectations, manifest, sinks
from curatec.runtime.cache import Cache
from curatec.runtime.execute import Executed, execute, expressions
from curatec.runtime.facts import unknown_models
from curatec.runtime.inputs import Input, read_inputs
from curatec.runtime.ledger import LINEAGE
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
    watch = watch or Watch()
    started = datetime.now(UTC)
    found = checked(request)
    whole = chosen_plan(found, request)
    out = request.out or default_out(whole.strategy)
    target = out.resolve() if out.is_symlink() else out  # a link stays a link
    with told(), cache_for(request) as cache, staging(target) as stage:
        watch.phase("reading")
        side = read_side(whole, found.program.project, request.allowed)
        renderer = read_renderer(whole, found.program.project, request.allowed)
        inputs = read_inputs(whole.corpora, found.program.project, request.allowed, cache, watch.reading)
        scratch, made = stage / "scratch", stage / "out"
        scratch.mkdir()
        made.mkdir()
        executed = execute(
            whole, inputs, scratch, side=side, renderer=renderer, limit=request.limit, progress=watch.phase
        )
        watch.phase("writing")
        written = {branch.name: sinks.write(executed, branch, made) for branch in whole.sinks}
        executed.ledger.settle()
        outcomes = expectations.ask(executed, written)
        failed = expectations.failures(outcomes)
        if failed and not request.trial:
            raise CuratecError(failed)
        lints = [*(d for d in found.diagnostics if d.severity != "error"), *data_lints(executed, written, inputs)]
        _write_tables(executed, written, inputs, made)
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
        (made / "README.md").write_text(card.render(summary), encoding="utf-8")
        (made / "report.html").write_text(page.render(executed, written, summary), encoding="utf-8")
        manifest.seal(summary, made, started)
        manifest.write(summary, made / MANIFEST)
        publish(made, target)
    return Compiled(out, summary, tuple(lints))


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


# ---- what the data itself makes one wonder about ----


def data_lints(executed: Executed, written: dict[str, Written], inputs: Sequence[Input]) -> list[Diagnostic]:
    """Warnings that need the data: nulls in predicates, joins without a match, unknown models, rejects, empty sinks,
    what no reward can judge, missing schemas."""
    return [
        *_null_predicates(executed),
        *_joins(executed),
        *_unknown_models(executed),
        *_rejects(inputs),
        *_empty(executed, written),
        *_unjudged(executed, written),
        *_schemas(executed),
    ]


def _warning(code: str, message: str, *help: str, step: plan.Step | None = None) -> Diagnostic:
    if step is None:
        return Diagnostic(code, message, help=help, severity="warning")
    return Diagnostic(code, message, step.span, "", help, severity="warning", source=step.source)


def _null_predicates(executed: Executed) -> Iterator[Diagnostic]:
    by_label = {(branch, step.label): step for branch, step in executed.plan.steps()}
    for count in executed.ledger.counts:
        if count.entered and count.predicate_null / count.entered > 0.05:
            share = 100 * count.predicate_null / count.entered
            yield _warning(
                "C0615",
                f"`{count.label}` has no answer for {count.predicate_null} of {count.entered} runs ({share:.0f} %)",
                "a null condition keeps nothing and drops nothing: say what is meant with `is null` or `coalesce`",
                step=by_label.get((count.sink, count.label)),
            )


def _joins(executed: Executed) -> Iterator[Diagnostic]:
    by_label = {(branch, step.label): step for branch, step in executed.plan.steps()}
    for count in executed.ledger.counts:
        if count.unmatched and count.unmatched == count.entered:
            step = by_label.get((count.sink, count.label))
            table = f"`{step.operation.table}`" if step and isinstance(step.operation, plan.Join) else "the table"
            yield _warning(
                "C0638",
                f"not one of {count.entered} runs has a row in {table}",
                "keys are equal where their texts are: `task` is `domain/task_id`, `task_id` the task's own id",
                step=step,
            )


def _unknown_models(executed: Executed) -> Iterator[Diagnostic]:
    asks = any(
        isinstance(n, Column) and n.name in ("attempts", "pass_rate", "spread")
        for core in expressions(executed.plan)
        for n in walk(core)
    )
    for source in unknown_models(executed.loaded.state.rows) if asks else ():
        yield _warning(
            "C0414",
            f"runs of source `{source}` do not say which model acted: its pass rates pool them as one",
            'name it in the source: `model "…"` or `model from path r"…"`',
        )


def _rejects(inputs: Sequence[Input]) -> Iterator[Diagnostic]:
    for given in inputs:
        files = sum(reject.line == 0 for reject in given.parsed.rejects)
        records = len(given.parsed.rejects) - files
        # No names: what is published must not change with them.
        lost = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((records, "record"), (files, "whole file")) if n]
        if lost:
            yield _warning(
                "C0617",
                f"{' and '.join(lost)} of source `{given.corpus.name}` could not be read",
                "`rejects.jsonl` has each with file, line and reason",
            )


def _empty(executed: Executed, written: dict[str, Written]) -> Iterator[Diagnostic]:
    for name, w in written.items():
        if not sum(w.rows.values()):
            yield _warning(
                "C0618", f"sink `{name}` is empty", f"`curatec why OUT --sink {name}` says where its rows went"
            )


def _unjudged(executed: Executed, written: dict[str, Written]) -> Iterator[Diagnostic]:
    for branch in executed.plan.sinks:
        if isinstance(branch.target, plan.Rl):
            w, reasons = written[branch.name], {VERIFIERS[name].lacking for name, _ in branch.target.reward}
            lost = {reason: n for reason, n in w.dropped.items() if reason in reasons}
            if 5 * sum(lost.values()) >= w.entered > 0:
                yield _warning(
                    "C0637",
                    f"{sum(lost.values())} of {w.entered} rows of `{branch.name}` lack what its reward reads"
                    f" ({', '.join(f'{reason} {n}' for reason, n in lost.items())})",
                    "name verifiers that these records can answer; `curatec explain C0637` says what each reads",
                )


def _schemas(executed: Executed) -> Iterator[Diagnostic]:
    for branch in executed.plan.sinks:
        rows = executed.ends[branch.name].rows
        if branch.name in ("sft", "rl", "preference"):
            bare = rows.filter(
                pl.col("toolset").is_null() & pl.col("id").is_in(_calling(executed, branch.name).implode())
            )
            if bare.height:
                yield _warning(
                    "C0616",
                    f"{bare.height} runs in `{branch.name}` call tools whose schemas are not known",
                    "a trainer shows the model no tools then: give them with `tools from` in the source",
                )


def _calling(executed: Executed, sink: str) -> pl.Series:
    from curatec.compiler.types import Level, Type

    _, [calls] = executed.ends[sink].values([Column(Level.TRAJECTORY, "call_count", Type.INT)])
    return executed.ends[sink].rows["id"].filter(calls > 0)
