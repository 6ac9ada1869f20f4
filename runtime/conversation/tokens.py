"""Tokens of turns and trajectories by a tokenizer and its chat template (`render`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.runtime.conversation import messages as m
from curatec.runtime.conversation.spans import NOTHING, Trained, trained

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

_WHOLE = plan.Loss()


class RenderedTokens:
    """What `tokens` and `trained_tokens` mean after `render`. Null where the template refuses a conversation."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def of_turns(self, turns: pl.DataFrame) -> pl.Series:
        """Tokens of what each turn says: content, reasoning, names and arguments of calls; the template apart."""
        said = pl.coalesce(pl.element().struct.field("args_json"), pl.element().struct.field("args_raw")).fill_null("")
        calls = pl.col("calls").list.eval(pl.concat_str(pl.element().struct.field("name").fill_null(""), said))
        texts = turns.select(at=pl.int_range(pl.len()), text=pl.concat_list("content", "reasoning", calls))
        flat = texts.explode("text").drop_nulls()
        counted = flat.select("at", tokens=pl.Series(self._renderer.count(flat["text"].to_list()), dtype=pl.Int64))
        sums = counted.group_by("at").agg(pl.col("tokens").sum())
        return texts.join(sums, on="at", how="left", maintain_order="left")["tokens"].fill_null(0)

    def of_runs(self, frames: Frames, *, trained: bool) -> pl.Series:
        """Tokens of each trajectory as the template shows it; with `trained`, those of turns that carry loss."""
        from curatec.runtime.rendering import Row

        tools = m.Tools(dict(frames.toolsets))
        weights = frames.turns.select(w=_weight())["w"].to_list()
        shown = m.by_run(m.turn_rows(frames.turns), frames.runs.height)
        rows = []
        for turns, key in zip(shown, frames.runs["toolset"], strict=True):
            messages = m.messages_of(turns, "trl")
            marks = [_marked(message, weights[message.at]) for message in messages] if trained else None
            rows.append(Row(messages, tools(key)[0], marks))
        counts = [
            None if isinstance(row, str) else row.n_trained if trained else row.n_tokens
            for row in self._renderer.render_many(rows)
        ]
        return pl.Series("tokens", counts, dtype=pl.Int64)


def _weight() -> pl.Expr:
    assistant = pl.col("role").cast(pl.String) == "assistant"
    return pl.when(assistant & ~pl.col("copied_context")).then("loss_weight").otherwise(0.0)


def _marked(message: m.Message, weight: float) -> Trained:
    return trained(message, weight, _WHOLE) if weight > 0 else NOTHING
