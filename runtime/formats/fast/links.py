"""Which call a result answers, for records in which ids say it: each call has one, no two of a record have the same,
and each result names an earlier call that no other result names. `link` is the rule for all records."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_DEFECTS = ("ends_on_call", "ends_on_tool", "orphan_call", "unparsed_call")  # sorted
_COMBINED = pl.Series(
    [[name for bit, name in enumerate(_DEFECTS) if mask >> bit & 1] for mask in range(1 << len(_DEFECTS))],
    dtype=pl.List(pl.String),
)


@dataclass(frozen=True, slots=True)
class Linked:
    """`turns` has the columns that `link` fills in, `calls` has `result_turn`; `irregular` are rows of other records.
    `defects` has a list of names for each record, sorted."""

    turns: pl.DataFrame
    calls: pl.DataFrame
    irregular: pl.Series
    defects: pl.Series


def linked(turns: pl.DataFrame, calls: pl.DataFrame, records: int) -> Linked:
    results = turns.select("row", "turn", "tool_call_id", at=pl.int_range(pl.len(), dtype=pl.UInt32)).filter(
        turns["role"].cast(pl.String) == "tool"
    )
    made = zip(calls["row"].to_list(), calls["id"].to_list(), strict=True)
    place = dict(zip(made, range(calls.height), strict=True))
    named = zip(results["row"].to_list(), results["tool_call_id"].to_list(), strict=True)
    results = results.with_columns(call=pl.Series([place.get(key) for key in named], dtype=pl.UInt32))
    call = results["call"]
    results = results.with_columns(
        call_turn=calls["turn"].gather(call), call_index=calls["index"].gather(call), name=calls["name"].gather(call)
    )
    odd = results.filter(
        pl.col("call").is_null() | pl.col("call").is_duplicated() | (pl.col("call_turn") >= pl.col("turn"))
    )["row"]
    if len(place) < calls.height:
        odd = pl.concat([odd, calls.filter(calls.select("row", "id").is_duplicated())["row"]])
    answered = results.filter(call.is_not_null())
    result_turn = _spread(answered["call"], answered["turn"], calls.height)
    at, height = results["at"], turns.height
    return Linked(
        turns.with_columns(
            call_turn=_spread(at, results["call_turn"], height),
            call_index=_spread(at, results["call_index"], height),
            tool_name=pl.coalesce("tool_name", _spread(at, results["name"], height)),
        ),
        calls.with_columns(result_turn=result_turn),
        odd.unique(),
        _defects(turns, calls, result_turn, records),
    )


def _spread(places: pl.Series, values: pl.Series, height: int) -> pl.Series:
    """A column that has the values at those places and null elsewhere."""
    return pl.Series(values.name, [None], dtype=values.dtype).new_from_index(0, height).scatter(places, values)


def _defects(turns: pl.DataFrame, calls: pl.DataFrame, result_turn: pl.Series, records: int) -> pl.Series:
    last = turns.group_by("row", maintain_order=True).agg(pl.col("turn", "role").last())
    unanswered = calls.filter(result_turn.is_null()).select("row", "turn")
    ends = unanswered["turn"] == last["turn"].gather(unanswered["row"])
    spoken = pl.Series([True]).new_from_index(0, turns.height).scatter(calls["at"], False)
    quiet = turns.filter(spoken & (turns["role"].cast(pl.String) == "assistant")).select("row", "content")
    told = {
        "ends_on_call": unanswered["row"].filter(ends),
        "ends_on_tool": last["row"].filter(last["role"].cast(pl.String) == "tool"),
        "orphan_call": unanswered["row"].filter(~ends),
        "unparsed_call": quiet["row"].filter(quiet["content"].str.contains("<tool_call>", literal=True)),
    }
    mask = pl.Series([0], dtype=pl.UInt32).new_from_index(0, records)
    for bit, name in enumerate(_DEFECTS):
        mask = mask | pl.Series([0], dtype=pl.UInt32).new_from_index(0, records).scatter(told[name], 1 << bit)
    return _COMBINED.gather(mask).alias("defects")
