"""Calls and their results: a pair lives and dies together (semantics 9)."""

from __future__ import annotations

import polars as pl


def links(turns: pl.DataFrame) -> pl.DataFrame:
    """One row a call with a result: (run, turn, result_turn) and whether either is gone."""
    calls = turns.select("run", "turn", "gone", "calls").explode("calls", empty_as_null=False, keep_nulls=False)
    calls = (
        calls.unnest("calls")
        .select("run", "turn", call_gone="gone", result_turn="result_turn")
        .drop_nulls("result_turn")
    )
    results = turns.select("run", result_turn="turn", result_gone="gone")
    return calls.join(results, on=["run", "result_turn"], how="inner", maintain_order="left")


def without_halves(turns: pl.DataFrame) -> pl.DataFrame:
    """Where half of a pair is `gone`, the other half goes as well; then assistant turns with nothing left to say."""
    pairs = links(turns)
    results = pairs.filter(pl.col("call_gone")).select("run", turn="result_turn", pair=pl.lit(True)).unique()
    turns = turns.join(results, on=["run", "turn"], how="left", maintain_order="left")
    turns = turns.with_columns(gone=pl.col("gone") | pl.col("pair").fill_null(False)).drop("pair")
    lost = pairs.filter(pl.col("result_gone") & ~pl.col("call_gone")).select("run", "turn", "result_turn").unique()
    return turns if lost.is_empty() else _without_calls(turns, lost)


def _without_calls(turns: pl.DataFrame, lost: pl.DataFrame) -> pl.DataFrame:
    """Calls whose result went go as well; what is left is numbered anew. `lost`: (run, turn, result_turn) of each."""
    touched = turns.select("run", "turn", "calls").join(lost, on=["run", "turn"], how="semi", maintain_order="left")
    flat = touched.explode("calls", empty_as_null=False, keep_nulls=False)
    flat = flat.with_columns(result_turn=pl.col("calls").struct.field("result_turn"))
    left = flat.join(lost, on=["run", "turn", "result_turn"], how="anti", maintain_order="left")
    left = left.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int32).over("run", "turn"))
    kept = left.group_by("run", "turn", maintain_order=True).agg(kept="calls")
    none = pl.lit([], dtype=turns.schema["calls"])
    kept = touched.select("run", "turn").join(kept, on=["run", "turn"], how="left")
    kept = kept.with_columns(pl.col("kept").fill_null(none))
    places = (
        left.drop_nulls("result_turn").select("run", "place", turn="result_turn").unique(["run", "turn"], keep="last")
    )
    turns = turns.join(kept, on=["run", "turn"], how="left", maintain_order="left")
    turns = turns.join(places, on=["run", "turn"], how="left", maintain_order="left")
    silent = (pl.col("kept").list.len() == 0) & (pl.col("content").fill_null("") == "")
    return turns.with_columns(
        calls=pl.coalesce("kept", "calls"),
        call_index=pl.coalesce("place", "call_index"),
        gone=pl.col("gone") | silent.fill_null(False),
    ).drop("kept", "place")


def _makers(turns: pl.DataFrame) -> pl.DataFrame:
    """One row a call, as its result names it: (run, call_turn, call_index), and who made it."""
    made = turns.select("run", "turn", "calls").explode("calls", empty_as_null=False, keep_nulls=False)
    made = made.with_columns(k=pl.int_range(pl.len(), dtype=pl.Int32).over("run", "turn")).unnest("calls")
    return made.select("run", call_turn="turn", call_index="k", maker=pl.col("requestor").cast(pl.String))


def agents_results(turns: pl.DataFrame) -> pl.Series:
    """Whether each turn is a result that the agent sees: of its own call, or of none that is known."""
    told = turns.join(_makers(turns), on=["run", "call_turn", "call_index"], how="left", maintain_order="left")
    seen = (pl.col("role").cast(pl.String) == "tool") & (pl.col("maker").fill_null("agent") == "agent")
    return told.select(seen=seen)["seen"]


def without_calls_of(turns: pl.DataFrame, requestor: str) -> pl.DataFrame:
    """`gone` tells results of the calls of one side, and its turns that held nothing but such calls; the calls are
    taken out of the others. A result whose call is not known counts as the agent's."""
    theirs = pl.element().struct.field("requestor").cast(pl.String) == requestor
    made = _makers(turns).with_columns(hidden=pl.col("maker") == requestor)
    made = made.with_columns(place=(~pl.col("hidden")).cum_sum().over("run", "call_turn").cast(pl.Int32) - 1)
    told = turns.join(made.drop("maker"), on=["run", "call_turn", "call_index"], how="left", maintain_order="left")
    kept = pl.col("calls").list.eval(pl.element().filter(~theirs))
    had_calls = pl.lit(requestor == "agent") | (pl.col("calls").list.len() > 0)
    speaks = pl.col("role").cast(pl.String) == ("assistant" if requestor == "agent" else "user")
    mute = speaks & (pl.col("content").fill_null("") == "") & (kept.list.len() == 0) & had_calls
    result = pl.col("role").cast(pl.String) == "tool"
    return told.with_columns(
        gone=pl.when(result).then(pl.col("hidden").fill_null(requestor == "agent")).otherwise(mute),
        calls=kept,
        call_index=pl.when(pl.col("hidden").is_not_null()).then("place").otherwise("call_index"),
    ).drop("hidden", "place")
