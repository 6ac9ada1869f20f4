"""Facts that need all rows of `from`: ids, tasks, attempts (semantics 3, 4, 13)."""

from __future__ import annotations

import polars as pl

from curatec.compiler.core import Column
from curatec.compiler.text import hash_key
from curatec.compiler.types import Level, Type
from curatec.runtime.state import State


def identified(rows: pl.DataFrame, state: State) -> pl.DataFrame:
    """`id` (a digest, with `~n` for identical records), `task_id` and `task`."""
    rows = rows.with_columns(
        nth=pl.int_range(1, pl.len() + 1).over("digest", order_by=["source", "domain", "model", "part", "row"])
    ).with_columns(
        id=pl.when(pl.col("nth") == 1)
        .then("digest")
        .otherwise(pl.concat_str("digest", pl.lit("~"), pl.col("nth").cast(pl.String)))
    )
    if rows["task_id"].null_count():
        rows = rows.with_columns(task_id=pl.coalesce("task_id", _task_hash(rows, state)))
    return rows.with_columns(task=pl.concat_str("domain", pl.lit("/"), "task_id")).drop("nth")


def _task_hash(rows: pl.DataFrame, state: State) -> pl.Series:
    """A hash of first user text and tools stands for the id of a task that has none."""
    first = Column(Level.TRAJECTORY, "task_text", Type.TEXT)
    texts = pl.concat([frames.series(first) for _, frames in state.batches()])
    return hash_key([texts, rows["toolset"]]).str.slice(0, 16)


def with_attempts(rows: pl.DataFrame) -> pl.DataFrame:
    """`attempts`, `pass_rate`, `spread` per (task, model), over all of `from`; an unknown model is one a source."""
    model = pl.coalesce("model", pl.concat_str(pl.lit("\0"), "source"))
    group = ["task", "_model"]
    attempts = pl.col("success").count().cast(pl.Int64)
    solved = pl.col("success").sum().cast(pl.Float64)
    spread = pl.col("reward").max() - pl.col("reward").min()
    return (
        rows.with_columns(_model=model)
        .with_columns(
            attempts=attempts.over(group),
            pass_rate=pl.when(attempts.over(group) >= 2).then(
                solved.over(group) / attempts.over(group).cast(pl.Float64)
            ),
            spread=pl.when(pl.col("reward").count().over(group) >= 2).then(spread.over(group)),
        )
        .drop("_model")
        .sort("part", "row")
    )


def unknown_models(rows: pl.DataFrame) -> list[str]:
    """Sources some of whose runs name no model."""
    return sorted(rows.filter(pl.col("model").is_null())["source"].unique().to_list())
