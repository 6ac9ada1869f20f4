"""Content columns: what a trajectory or a turn says now, computed from the turns as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from curatec.compiler import json_path
from curatec.compiler.core import Column
from curatec.compiler.text import estimate_tokens
from curatec.compiler.types import Level, Type

if TYPE_CHECKING:
    from curatec.compiler.frames import Frames

_SPOKEN = ~pl.col("role").cast(pl.String).is_in(["system", "event"])
_ROLE = pl.col("role").cast(pl.String)


def turn_tokens(turns: pl.DataFrame) -> pl.Series:
    """An estimate: content, reasoning, names and arguments of calls, each UTF-8 bytes / 4 rounded up."""
    calls = pl.col("calls").list.eval(
        estimate_tokens(pl.element().struct.field("name").fill_null(""))
        + estimate_tokens(
            pl.coalesce(pl.element().struct.field("args_json"), pl.element().struct.field("args_raw")).fill_null("")
        )
    )
    content = estimate_tokens(pl.col("content").fill_null(""))
    reasoning = estimate_tokens(pl.col("reasoning").fill_null(""))
    return turns.select(tokens=content + reasoning + calls.list.sum().fill_null(0))["tokens"]


TURN_CONTENT: dict[str, Callable[[Frames], pl.Series]] = {
    "calls_text": lambda f: json_path.calls_text(f.turns["calls"]),
    "tokens": lambda f: turn_tokens(f.turns) if f.tokens is None else f.tokens.of_turns(f.turns),
}


def _by_run(frames: Frames, value: pl.Expr, *columns: pl.Series, where: pl.Expr | None = None) -> pl.Series:
    """An aggregate of each trajectory's turns, in the order of `runs`; null where it has no such turn."""
    turns = frames.turns.lazy().with_columns(columns)
    rows = turns.filter(where) if where is not None else turns
    found = rows.group_by("run", maintain_order=True).agg(value=value)
    base = pl.LazyFrame({"run": pl.int_range(frames.runs.height, dtype=pl.UInt32, eager=True)})
    return base.join(found, on="run", how="left", maintain_order="left").select("value").collect()["value"]


def _number(frames: Frames, where: pl.Expr) -> pl.Series:
    return _by_run(frames, pl.len().cast(pl.Int64), where=where).fill_null(0)


def _turn(frames: Frames, name: str, type_: Type) -> pl.Series:
    return frames.series(Column(Level.TURN, name, type_), Level.TURN).alias(name)


def _tokens(frames: Frames, where: pl.Expr, *, trained: bool = False) -> pl.Series:
    """Of the trajectory as the template shows it; without one, what its turns are estimated to have."""
    if frames.tokens is not None:
        return frames.tokens.of_runs(frames, trained=trained)
    return _by_run(frames, pl.col("tokens").sum(), _turn(frames, "tokens", Type.INT), where=where).fill_null(0)


def _tool_names(frames: Frames) -> pl.Series:
    names = frames.calls.select("run", "name").drop_nulls().unique().sort("run", "name")
    found = names.group_by("run", maintain_order=True).agg(value=pl.col("name"))
    base = pl.DataFrame({"run": pl.int_range(frames.runs.height, dtype=pl.UInt32, eager=True)})
    return base.join(found, on="run", how="left", maintain_order="left")["value"].fill_null(
        pl.lit([], dtype=pl.List(pl.String))
    )


def _calls_text(frames: Frames) -> pl.Series:
    texts = _turn(frames, "calls_text", Type.TEXT)
    return _by_run(frames, pl.col("calls_text").str.join("\n"), texts, where=pl.col("calls_text").is_not_null())


_CARRIES_LOSS = (_ROLE == "assistant") & (pl.col("loss_weight") > 0) & ~pl.col("copied_context")
_ANSWER = (_ROLE == "assistant") & (pl.col("content").str.len_bytes() > 0)

TRAJECTORY_CONTENT: dict[str, Callable[[Frames], pl.Series]] = {
    "turn_count": lambda f: _number(f, _SPOKEN),
    "assistant_turns": lambda f: _number(f, _ROLE == "assistant"),
    "call_count": lambda f: _by_run(f, pl.col("calls").list.len().sum().cast(pl.Int64)).fill_null(0),
    "error_count": lambda f: _number(f, (_ROLE == "tool") & pl.col("is_error").fill_null(False)),
    "tokens": lambda f: _tokens(f, _ROLE != "event"),
    "trained_tokens": lambda f: _tokens(f, _CARRIES_LOSS, trained=True),
    "text": lambda f: _by_run(f, pl.col("content").drop_nulls().str.join("\n"), where=_SPOKEN),
    "task_text": lambda f: _by_run(f, pl.col("content").first(), where=_ROLE == "user"),
    "final_answer": lambda f: _by_run(f, pl.col("content").last(), where=_ANSWER),
    "calls_text": _calls_text,
    "tool_names": _tool_names,
}
