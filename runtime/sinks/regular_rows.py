"""Regular conversations → finished rows of a chat's sft sink, by columns."""

from __future__ import annotations

import polars as pl

from curatec.compiler import plan
from curatec.runtime.conversation import messages as m
from curatec.runtime.conversation.regular import Regular
from curatec.runtime.conversation.texts import texts_of
from curatec.runtime.sinks import account
from curatec.runtime.sinks.buckets import POSITION
from curatec.runtime.sinks.columns import Col, schema
from curatec.runtime.sinks.place import PLACE, SPLIT
from curatec.runtime.sinks.sft_trainer import Masks

_START = pl.lit(0, dtype=pl.Int64)
_NULL = pl.lit(None)


def rows(
    runs: pl.DataFrame, found: Regular, target: plan.Sft, form: m.Form, shape: tuple[Col, ...], tools: m.Tools
) -> pl.DataFrame:
    """The columns of `shape`, and POSITION. `runs` are those of the batch."""
    messages = found.messages.select("run", "turn", "weight", text=texts_of(found, form))
    lists = messages.group_by("run", maintain_order=True).agg(messages="text", turns="turn", weights="weight")
    spans = _spans(found, target.loss).group_by("run", maintain_order=True).agg(trained="span")
    counts = found.told.select("run", "n_tokens", "n_trained")
    made = pl.concat([runs[counts["run"]], *(f.drop("run") for f in (counts, lists, spans))], how="horizontal")
    made = made.join(_schemas(made["toolset"], tools), on="toolset", how="left", maintain_order="left")
    made = made.with_columns(
        pl.col(PLACE).alias(POSITION),
        example_id="id",
        parents=pl.concat_list("origin"),
        split=SPLIT,
        prompt=pl.col("messages").list.head(pl.col("messages").list.len() - 1),
        completion=pl.col("messages").list.tail(1),
    )
    return made.select(*(pl.col(name).cast(dtype) for name, dtype in schema(shape).items()), POSITION)


def fates(runs: pl.DataFrame, found: Regular, changed: pl.Series) -> pl.DataFrame:
    """What became of the regular runs of a batch: rows of `account.FATES`."""
    told = pl.concat([runs.select("id", SPLIT), found.runs], how="horizontal").with_columns(changed=changed)
    told = told.filter(~pl.col("odd"))
    lost = pl.col("lost")
    kept, gone = told.filter(lost.is_null()), told.filter(lost.is_not_null())
    left_out = pl.concat(
        [
            told.select("id", reason=pl.lit("after_last_trained"), n="behind"),
            told.select("id", reason=pl.lit("changed_by_steps"), n="changed"),
        ]
    ).filter(pl.col("n") > 0)
    return pl.concat(
        [
            account.fates("kept", kept.select("id", "n_tokens", "n_trained", split=SPLIT)),
            account.fates("dropped", gone.select("id", reason="lost", key="detail")),
            account.fates("edited", left_out),
        ]
    )


def masks(found: Regular) -> Masks:
    """What the assistant messages of the rows have in common."""
    messages = found.messages.filter(pl.col("role") == "assistant")
    trained, whole = messages["weight"] > 0, messages["whole"]
    return Masks(
        all_whole=(trained & whole).all(),
        parts=(trained & ~whole).any(),
        reasoning=messages["reasoning"].null_count() < messages.height,
    )


def _spans(found: Regular, loss: plan.Loss) -> pl.DataFrame:
    """`run` and `span` of each text that is trained, in the order of the rows: reasoning, content, calls."""
    trained = found.messages.filter(pl.col("weight") > 0)
    thoughts = trained.filter(pl.col("reasoning").is_not_null() & (not loss.except_reasoning))
    calls = found.calls.filter(pl.col("weight") > 0)
    pieces = [
        _pieces(thoughts, "reasoning"),
        _pieces(trained.filter("said"), "content"),
        _pieces(calls, "call", text="function", call=pl.col("k")),
    ]
    spans = pl.concat(pieces).sort("at", maintain_order=True)
    return spans.select("run", span=pl.struct("message", "part", "call", "start", "end"))


def _pieces(rows: pl.DataFrame, part: str, text: str | None = None, call: pl.Expr = _NULL) -> pl.DataFrame:
    """The whole of a text of each row."""
    end = pl.col(text or part).str.len_chars().cast(pl.Int64)
    return rows.select("run", "at", "message", part=pl.lit(part), call=call.cast(pl.Int64), start=_START, end=end)


def _schemas(keys: pl.Series, tools: m.Tools) -> pl.DataFrame:
    """The schemas that each list of tools has."""
    known = keys.drop_nulls().unique().to_list()
    texts = pl.Series("tools", [tools(key)[0] for key in known], dtype=pl.List(pl.String))
    return pl.DataFrame([pl.Series("toolset", known, dtype=pl.String), texts])
