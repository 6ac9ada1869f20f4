"""How much a `decompose` without `context` makes of a corpus, told before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from curatec.compiler import plan
from curatec.runtime import arrow_file
from curatec.runtime.inputs import Input

LARGE = 2.0  # times the bytes, from which on a shorter context is worth a word


def prefixes(inputs: Sequence[Input]) -> float | None:
    """Bytes of all prefixes that end with an assistant's turn, over the bytes of all runs: what rows would hold if
    every such turn were a decision. None where nothing is said."""
    whole = repeated = 0
    for given in inputs:
        for part in given.parsed.parts:
            turns = arrow_file.read(part.turns).lazy().select("row", "turn", "role", bytes=_bytes())
            turns = turns.with_columns(so_far=pl.col("bytes").cum_sum().over("row", order_by="turn"))
            decisions = pl.col("role").cast(pl.String) == "assistant"
            found = turns.select(pl.col("bytes").sum(), pl.col("so_far").filter(decisions).sum()).collect()
            whole += found.item(0, 0)
            repeated += found.item(0, 1)
    return repeated / whole if whole else None


def _bytes() -> pl.Expr:
    """UTF-8 bytes of what a turn says: content, reasoning, names and arguments of calls."""
    call = pl.element().struct
    said = pl.coalesce(call.field("args_json"), call.field("args_raw"))
    sizes = [text.str.len_bytes().fill_null(0) for text in (call.field("name"), said)]
    calls = pl.col("calls").list.eval(sizes[0].cast(pl.Int64) + sizes[1].cast(pl.Int64)).list.sum()
    texts = [pl.col(name).str.len_bytes().fill_null(0).cast(pl.Int64) for name in ("content", "reasoning")]
    return texts[0] + texts[1] + calls


def told(whole: plan.Plan, inputs: Sequence[Input]) -> Iterator[str]:
    """One line for each `decompose` whose rows repeat all that came before their turn."""
    steps = [
        (branch, step)
        for branch, step in whole.steps()
        if isinstance(step.operation, plan.Decompose)
        and step.operation.context is None
        and any(_shows_all(sink) for sink in _below(whole, branch))
    ]
    factor = prefixes(inputs) if steps else None
    for _, step in steps if factor is not None else ():
        line = f"{step.label}: full prefixes are up to {factor:.3g} times the bytes of the runs"
        shorter = "`context { system, task, last 3 results, all calls }` behind `decompose` keeps rows short"
        yield f"{line}; {shorter}" if factor is not None and factor >= LARGE else line


def _below(whole: plan.Plan, branch: str | None) -> Iterator[plan.Branch]:
    """The sinks that a branch's rows go to."""
    for sink in whole.sinks:
        if branch is None or any(one.name == branch for one in whole.lineage(sink)):
            yield sink


def _shows_all(sink: plan.Branch) -> bool:
    return not isinstance(sink.target, plan.Sft) or sink.target.context is None
