"""What a row shows before the turn that it trains (`context { … }`).

Dialogue stays: what users and the assistant say. Of results that the agent sees, the last few stay in full. One that is
further back goes together with its call; or, with a text to stand for it, the call stays and the text is its result.
"""

from __future__ import annotations

import polars as pl

from curatec.compiler import plan
from curatec.runtime.conversation.pairs import agents_results, without_halves

_ROLE = pl.col("role").cast(pl.String)


def in_context(turns: pl.DataFrame, context: plan.Context) -> pl.DataFrame:
    """The turns of some rows (`run` tells them apart), sorted by (run, turn); what goes is gone."""
    behind = pl.col("result").cast(pl.Int32).cum_sum(reverse=True).over("run")
    turns = turns.with_columns(result=agents_results(turns))
    turns = turns.with_columns(old=pl.col("result") & (behind > context.results))
    system = (_ROLE == "system") & (not context.system)
    if context.elide is not None:
        old = pl.col("old")
        turns = turns.with_columns(
            content=pl.when(old).then(pl.lit(context.elide)).otherwise("content"),
            content_kind=pl.when(old)
            .then(pl.lit("text"))
            .otherwise(pl.col("content_kind").cast(pl.String))
            .cast(turns.schema["content_kind"]),
            parts=pl.when(~old).then("parts"),
            gone=system,
        )
    else:
        turns = without_halves(turns.with_columns(gone=system | pl.col("old")))
    return turns.filter(~pl.col("gone")).drop("gone", "old", "result")
