"""Messages as JSON texts by columns: what `messages.json_of` writes, for the messages of regular runs."""

from __future__ import annotations

import polars as pl

from curatec.runtime.conversation.messages import Form
from curatec.runtime.conversation.regular import Regular
from curatec.runtime.json_columns import json_text

_PORTION = 4096  # messages whose pieces are made and joined: while the processor's cache holds them, that is cheap


def texts_of(found: Regular, form: Form) -> pl.Series:
    """One text for each of `found.messages`. An assistant message that is not trained says `"weight": 0`."""
    messages = found.messages.join(_call_lists(found.calls), on="at", how="left", maintain_order="left")
    content = pl.col("content")
    if messages["content"].null_count():
        silent = content.is_null() & (pl.col("calls").is_null() | (form != "openai"))
        content = pl.when(silent).then(pl.lit("")).otherwise(content).alias("content")
    head = pl.struct("role", content).struct.json_encode().str.head(-1)  # without the brace that ends it
    pieces = [
        head,
        _member("reasoning_content", "reasoning"),
        pl.col("calls"),
        _member("tool_call_id", "call_id"),
        *([_member("name", "name")] if form == "trl" else []),
        pl.when((pl.col("role") == "assistant") & (pl.col("weight") == 0)).then(pl.lit(',"weight":0')),
        pl.lit("}"),
    ]
    text = pl.concat_str(*pieces, ignore_nulls=True)
    portions = [portion.select(text=text) for portion in messages.iter_slices(_PORTION)]
    return pl.concat(portions)["text"] if portions else pl.Series("text", dtype=pl.String)


def _member(name: str, value: str) -> pl.Expr:
    """A further member of an object, null where the value is."""
    member = pl.concat_str(pl.lit(f',"{name}":'), json_text(pl.col(value)))
    return pl.when(pl.col(value).is_not_null()).then(member)


def _call_lists(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls of each message that has some, as a further member."""
    text = pl.concat_str(
        pl.lit('{"id":'), json_text(pl.col("id")), pl.lit(',"type":"function","function":'), "function", pl.lit("}")
    )
    lists = calls.select("at", text=text).group_by("at", maintain_order=True).agg("text")
    member = pl.concat_str(pl.lit(',"tool_calls":['), pl.col("text").list.join(","), pl.lit("]"))
    return lists.select("at", calls=member)
