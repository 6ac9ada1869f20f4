"""Calls and their results: a pair lives and dies together (semantics 9)."""

from __future__ import annotations

from typing import Any

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
    lost = {
        (r["run"], r["turn"], r["result_turn"])
        for r in pairs.filter(pl.col("result_gone") & ~pl.col("call_gone")).iter_rows(named=True)
    }
    if not lost:
        return turns
    return _without_calls(turns, lost)


def _without_calls(turns: pl.DataFrame, lost: set[tuple[int, int, int]]) -> pl.DataFrame:
    """Calls whose result went go as well; what is left is numbered anew."""
    touched = {(run, turn) for run, turn, _ in lost}
    calls: list[Any] = []
    silent: list[bool] = []
    renumber: dict[tuple[int, int], int] = {}
    for row in turns.select("run", "turn", "calls", "content").iter_rows(named=True):
        kept = row["calls"]
        if (row["run"], row["turn"]) in touched:
            kept = [c for c in kept if (row["run"], row["turn"], c["result_turn"]) not in lost]
            renumber |= {(row["run"], c["result_turn"]): i for i, c in enumerate(kept) if c["result_turn"] is not None}
        calls.append(kept)
        silent.append(not kept and bool(row["calls"]) and not row["content"])
    index = [renumber.get((run, turn), old) for run, turn, old in turns.select("run", "turn", "call_index").iter_rows()]
    return turns.with_columns(
        pl.Series("calls", calls, dtype=turns.schema["calls"]),
        pl.Series("call_index", index, dtype=pl.Int32),
        gone=pl.col("gone") | pl.Series(silent, dtype=pl.Boolean),
    )


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
