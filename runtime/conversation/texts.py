"""Messages as JSON texts by columns: what `messages.json_of` writes, for the messages of regular runs."""

from __future__ import annotations

import polars as pl

from curatec.runtime.conversation.messages import Form
from curatec.runtime.conversation.regular import Regular
from curatec.runtime.json_columns import json_members, json_text


def texts_of(found: Regular, form: Form) -> pl.Series:
    """One text for each of `found.messages`. An assistant message that is not trained says `"weight": 0`."""
    messages = found.messages.join(_call_lists(found.calls), on="at", how="left", maintain_order="left")
    silent = pl.col("content").is_null()
    if form == "openai":
        silent = silent & pl.col("tool_calls").is_null()
    content = pl.when(silent).then(pl.lit("")).otherwise("content").alias("content")
    members = [
        json_members(pl.col("role"), content),
        _member("reasoning_content", "reasoning"),
        pl.concat_str(pl.lit('"tool_calls":['), "tool_calls", pl.lit("]")),
        _member("tool_call_id", "call_id"),
        *([_member("name", "name")] if form == "trl" else []),
        pl.when((pl.col("role") == "assistant") & (pl.col("weight") == 0)).then(pl.lit('"weight":0')),
    ]
    inside = pl.concat_str(*members, separator=",", ignore_nulls=True)
    return messages.select(pl.concat_str(pl.lit("{"), inside, pl.lit("}"))).to_series()


def _member(name: str, value: str) -> pl.Expr:
    """A member of an object, null where the value is."""
    member = pl.concat_str(pl.lit(f'"{name}":'), json_text(pl.col(value)))
    return pl.when(pl.col(value).is_not_null()).then(member)


def _call_lists(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls of each message that has some."""
    text = pl.concat_str(
        pl.lit('{"id":'), json_text(pl.col("id")), pl.lit(',"type":"function","function":'), "function", pl.lit("}")
    )
    lists = calls.select("at", text=text).group_by("at", maintain_order=True).agg("text")
    return lists.select("at", tool_calls=pl.col("text").list.join(","))
