"""Warnings that need the data: what a spec says is fine, and yet the runs are not what it supposes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import Column, walk
from curatec.compiler.types import Level, Type
from curatec.compiler.verifiers import VERIFIERS
from curatec.dsl.diagnostics import Diagnostic
from curatec.runtime.execute import Executed, expressions
from curatec.runtime.facts import unknown_models
from curatec.runtime.inputs import Input
from curatec.runtime.memo.code import own_code
from curatec.runtime.sinks.written import Written
from curatec.runtime.state import State


def data_lints(executed: Executed, written: dict[str, Written], inputs: Sequence[Input]) -> list[Diagnostic]:
    """In the order of the steps, then of the sinks."""
    return [
        *_null_predicates(executed),
        *_joins(executed),
        *_nothing_made(executed),
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


def _nothing_made(executed: Executed) -> Iterator[Diagnostic]:
    """An augmentation that could make no row, or a decompose that found no decision."""
    makes = (plan.Distractors, plan.Rebind, plan.Recover, plan.Decompose)
    by_label = {(branch, step.label): step for branch, step in executed.plan.steps()}
    for count in executed.ledger.counts:
        step = by_label.get((count.sink, count.label))
        if step and isinstance(step.operation, makes) and count.entered and not count.created:
            tried = f"; {count.failed} could not be made" if count.failed else ""
            yield _warning(
                "C0639",
                f"`{count.label}` made nothing of {count.entered} rows{tried}",
                f"`curatec why OUT --label {count.label}` says why; `curatec explain C0639` what each step needs",
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
        if isinstance(branch.target, plan.Sft | plan.Rl | plan.Preference):
            made = (own_code(__name__), "calls without schemas")
            n = executed.computed(branch.name, made, partial(_bare, executed.ends[branch.name])).item()
            if n:
                yield _warning(
                    "C0616",
                    f"{n} runs in `{branch.name}` call tools whose schemas are not known",
                    "a trainer shows the model no tools then: give them with `tools from` in the source",
                )


def _bare(end: State) -> pl.DataFrame:
    """How many rows show no tools and call some, as a table of one cell."""
    _, [calls] = end.keep(end.rows["toolset"].is_null()).values([Column(Level.TRAJECTORY, "call_count", Type.INT)])
    return pl.DataFrame({"n": [int((calls > 0).sum())]})
