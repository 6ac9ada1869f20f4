"""The columns of TURNS that messages fill, for all messages of many records at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from msgspec import UNSET

from ...tables import CONTENT_KIND, ROLE
from .arguments import odd_ones
from .shapes import Call, Message
from .strings import OTHER, TEXT, Column, Told

_ACTORS = pl.Series([None, "user", "agent", "environment", None], dtype=pl.String)  # in the order of ROLE
_TOOL = ROLE.categories.to_list().index("tool")


@dataclass(frozen=True, slots=True)
class Turns:
    """TURNS without links: `row` is the place of the record. `calls` has a row for each call: the places of its record
    (`row`) and of its turn among all turns (`at`), `turn` and `index` as in TURNS, `id`, `name`, `args_json`; `counts`
    are the calls of each turn. `irregular` are rows that a careful reader must look at."""

    turns: pl.DataFrame
    calls: pl.DataFrame
    counts: pl.Series
    irregular: pl.Series
    told: list[Told]


def turns_of(lengths: Sequence[int], messages: Sequence[Message]) -> Turns:
    """The turns of records with so many messages each."""
    sizes = pl.Series("row", lengths, dtype=pl.UInt32)
    rows = _repeated(sizes)
    content, ids, names, thoughts, other = (
        Column.of(values, pl.String)
        for values in (
            [message.content for message in messages],
            [message.tool_call_id for message in messages],
            [message.name for message in messages],
            [message.reasoning_content for message in messages],
            [message.reasoning for message in messages],
        )
    )
    flags = Column.of([message.is_error for message in messages], pl.Boolean)
    roles = pl.Series([message.role for message in messages], dtype=pl.String)
    role = roles.cast(ROLE, strict=False).fill_null("system")  # `developer`
    tool = role.to_physical() == _TOOL
    turns = pl.DataFrame(
        {
            "row": rows,
            "turn": _counted(sizes, rows),
            "role": role,
            "actor": _actors(role, tool, names.values),
            "content": content.values,
            "content_kind": _kinds(content),
            "reasoning": _first(thoughts.values, other.values),
            "tool_call_id": _where(tool, ids.values),
            "tool_name": _where(tool, names.values),
            "is_error": _where(tool, flags.values),
        }
    )
    listed = [message.tool_calls for message in messages]
    calls = [call for held in listed if held for call in held]
    counts = pl.Series("at", [len(held) if held else 0 for held in listed], dtype=pl.UInt32)
    made, told = _calls(turns, counts, calls)
    told += [Told(rows, column, TEXT) for column in (Column(roles), content, ids, names, thoughts, other)]
    told += [
        Told(rows, column, OTHER)
        for column in (flags, Column(pl.Series([None if held is UNSET else True for held in listed])))
    ]
    odd = pl.Series(odd_ones([call.function.arguments for call in calls], made["args_json"]), dtype=pl.UInt32)
    nameless = made["row"].filter(made["name"] == "")
    astray = pl.concat([rows.filter(ids.values.is_not_null() & ~tool), nameless, made["row"].gather(odd)])
    return Turns(turns, made, counts, astray.unique(), told)


def _repeated(sizes: pl.Series) -> pl.Series:
    """The place of each size, as often as it says."""
    places = pl.select(pl.int_range(len(sizes), dtype=pl.UInt32).repeat_by(sizes)).to_series()
    return places.explode(empty_as_null=False, keep_nulls=False).alias(sizes.name)


def _counted(sizes: pl.Series, places: pl.Series) -> pl.Series:
    """0, 1, … inside of each place."""
    before = (sizes.cum_sum() - sizes).gather(places)
    return (pl.int_range(len(places), dtype=pl.UInt32, eager=True) - before).cast(pl.Int32)


def _where(mask: pl.Series, values: pl.Series) -> pl.Series:
    """The values where the mask is true, else null."""
    return values if values.null_count() == len(values) else pl.select(pl.when(mask).then(values)).to_series()


def _first(values: pl.Series, others: pl.Series) -> pl.Series:
    """The first that is not null."""
    return values if others.null_count() == len(others) else pl.select(pl.coalesce(values, others)).to_series()


def _kinds(content: Column) -> pl.Series:
    text, null, absent = (pl.lit(kind, dtype=CONTENT_KIND) for kind in ("text", "null", "absent"))
    without = absent if content.null is None else pl.when(content.null).then(null).otherwise(absent)
    return pl.select(pl.when(content.values.is_not_null()).then(text).otherwise(without)).to_series()


def _actors(role: pl.Series, tool: pl.Series, names: pl.Series) -> pl.Series:
    usual = _ACTORS.gather(role.to_physical())
    return _first(_where(~tool & (names != ""), names), usual)


def _calls(turns: pl.DataFrame, counts: pl.Series, calls: Sequence[Call]) -> tuple[pl.DataFrame, list[Told]]:
    at = _repeated(counts)
    rows = turns["row"].gather(at)
    made = pl.DataFrame(
        {
            "at": at,
            "row": rows,
            "turn": turns["turn"].gather(at),
            "index": _counted(counts, at),
            "id": pl.Series([call.id for call in calls], dtype=pl.String),
            "name": pl.Series([call.function.name for call in calls], dtype=pl.String),
            "args_json": pl.Series([call.function.arguments for call in calls], dtype=pl.String),
        }
    )
    kind = Told(rows, Column.of([call.type for call in calls], pl.String), TEXT)
    index = Told(rows, Column.of([call.index for call in calls], pl.Int64), OTHER)
    return made, [kind, index, Told(rows, Column(rows), 3 * TEXT + OTHER)]  # id, name, arguments; function
