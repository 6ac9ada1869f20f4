"""Facts that need all rows of `from`: ids, tasks, attempts (semantics 3, 4, 13)."""

from __future__ import annotations

import polars as pl

from curatec.compiler.core import Column
from curatec.compiler.engine import Engine
from curatec.compiler.text import hash_key
from curatec.compiler.types import Level, Type
from curatec.runtime.state import State


def identified(rows: pl.DataFrame, state: State) -> pl.DataFrame:
    """`id` (a digest, with `~n` for identical records), `task_id` and `task`."""
    order = [rows[name] for name in ("source", "domain", "model", "part", "row")]
    earlier = state.engine.places([rows["digest"]], order, [False] * len(order))
    rows = rows.with_columns(
        id=pl.when(pl.lit(earlier) == 0)
        .then("digest")
        .otherwise(pl.concat_str("digest", pl.lit("~"), pl.lit(earlier + 1).cast(pl.String)))
    )
    if rows["task_id"].null_count():
        rows = rows.with_columns(task_id=pl.coalesce("task_id", _task_hash(rows, state)))
    return rows.with_columns(task=pl.concat_str("domain", pl.lit("/"), "task_id"))


def _task_hash(rows: pl.DataFrame, state: State) -> pl.Series:
    """A hash of first user text and tools stands for the id of a task that has none."""
    first = Column(Level.TRAJECTORY, "task_text", Type.TEXT)
    texts = pl.concat([frames.series(first) for _, frames in state.batches()])
    return hash_key([texts, rows["toolset"]]).str.slice(0, 16)


def with_attempts(rows: pl.DataFrame, engine: Engine) -> pl.DataFrame:
    """`attempts`, `pass_rate`, `spread` per (task, model), over all of `from`; an unknown model is one a source."""
    model = pl.coalesce("model", pl.concat_str(pl.lit("\0"), "source"))
    groups = rows.select("task", model=model)
    return rows.hstack(engine.attempts(groups.get_columns(), rows["success"], rows["reward"])).sort("part", "row")


def unknown_models(rows: pl.DataFrame) -> list[str]:
    """Sources some of whose runs name no model."""
    return sorted(rows.filter(pl.col("model").is_null())["source"].unique().to_list())
