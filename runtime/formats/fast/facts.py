"""The columns of RUNS that records fill beside their messages, for many records at once.

What `openai.take_facts` does record by record, for records in which each member is of its own type: every member then
has its column, and nothing is left over for meta but members that have none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from msgspec import UNSET, Raw

from ...tables import RUNS
from ..json_text import JsonError, Reader, encode
from ..openai import OUTCOMES, flat_meta
from ..values import json_or_null, object_json, time_of, tools_of
from . import strings
from .shapes import Record
from .strings import OTHER, TEXT, Column, Told

_TEXTS = {"record_id": "id"} | {
    name: name for name in ("task_id", "domain", "session_id", "parent_id", "agent", "model", "license", "error")
}
_NUMBERS = ("trial", "depth", "success")
_NAMES = ("record_id", "task_id")  # may be numbers
_MINUS_ZERO = re.compile(rb":\s*-0\s*[,}]")
_FLOATS = ("reward", "duration", "cost")
_SMALL, _LARGE = 2**31, 2**63
_REGULAR_OUTCOMES = (OUTCOMES - {"crash"}) | {UNSET}
_KEPT = 1_000  # distinct texts


def is_regular(record: Record) -> bool:
    """Whether each fact fits its column and no rule for the exception applies."""
    return (
        bool(record.messages)
        and record.outcome in _REGULAR_OUTCOMES
        and _fits(record.trial, _SMALL)
        and _fits(record.depth, _SMALL)
        and _fits(record.id, _LARGE)
        and _fits(record.task_id, _LARGE)
        and (not isinstance(record.started_at, str) or time_of(record.started_at) is not None)
    )


def _fits(number: Any, bound: int) -> bool:
    return not isinstance(number, int) or -bound < number < bound


def is_spelled_otherwise(record: Record, line: memoryview) -> bool:
    """Whether a name may be `-0`, whose sign a decoder forgets."""
    return (record.id == 0 or record.task_id == 0) and _MINUS_ZERO.search(line) is not None


@dataclass(frozen=True, slots=True)
class Facts:
    """Those columns of RUNS by name, and the strings that the members stand for."""

    columns: dict[str, pl.Series]
    told: list[Told]


def facts_of(records: Sequence[Record]) -> Facts:
    """Of regular records."""
    members = {name: [getattr(record, member) for record in records] for name, member in _TEXTS.items()}
    rows = pl.int_range(len(records), dtype=pl.UInt32, eager=True).alias("row")
    told: list[Told] = []
    for name in _NAMES:
        number = [isinstance(value, int) or None for value in members[name]]
        if any(number):
            members[name] = [str(value) if isinstance(value, int) else value for value in members[name]]
            told.append(Told(rows, Column(pl.Series(number, dtype=pl.Boolean)), OTHER - TEXT))
    texts = {name: Column.of(values, pl.String) for name, values in members.items()}
    others = {name: [getattr(record, name) for record in records] for name in _NUMBERS}
    for name in _FLOATS:  # zero without its sign
        others[name] = [0.0 if value == 0 else value for value in (getattr(record, name) for record in records)]
    numbers = {name: Column.of(values, RUNS[name]) for name, values in others.items()}
    started = Column.of([record.started_at for record in records], pl.String)
    outcome = Column.of([record.outcome for record in records], pl.String)
    found = {name: column.values.alias(name) for name, column in (texts | numbers).items()}
    times = pl.Series([None if text is None else time_of(text) for text in started.values.to_list()], dtype=pl.Int64)
    found["started_at"] = times.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    found["depth"] = found["depth"].fill_null(0)
    found |= _verdicts(found["success"], outcome.values)
    raw = [
        Column(pl.Series([_there(getattr(r, name)) for r in records], dtype=pl.Boolean)) for name in ("tools", "gold")
    ]
    told += [Told(rows, column, TEXT) for column in (*texts.values(), started, outcome)]
    told += [Told(rows, column, OTHER) for column in (*numbers.values(), *raw, Column(rows))]  # the last: `messages`
    return Facts(found, told)


def _there(value: object) -> bool | None:
    return None if value is UNSET else True


def _verdicts(success: pl.Series, said: pl.Series) -> dict[str, pl.Series]:
    """Success and outcome: what one of them says where the other is silent."""
    meant = pl.when(pl.lit(said) == "success").then(True).when(pl.lit(said) == "failure").then(False)
    known = pl.select(pl.coalesce(success, meant)).to_series()
    told = pl.when(known).then(pl.lit("success")).when(~known).then(pl.lit("failure")).otherwise(pl.lit("unknown"))
    return {"success": known, "outcome": pl.select(pl.coalesce(said, told)).to_series()}


class Tools:
    """`tools_json` of members as they stand in the source; a text that comes again is read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str | None, int] | None] = {}

    def of(self, raw: Raw) -> tuple[str | None, int] | None:
        """The text, and the number of strings in the source; null where a careful reader must look."""
        source = bytes(raw)
        if source not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[source] = _tools(source)
        return self._known[source]


def _tools(source: bytes) -> tuple[str | None, int] | None:
    notes: set[str] = set()
    try:
        value = _decoded(source)
        text = tools_of(value, notes)
    except JsonError:
        return None
    if notes or (text is None and value not in (None, [], "")):
        return None
    return text, strings.count(source)


def gold_of(raw: Raw) -> tuple[str | None, int] | None:
    """`gold_json`, and the number of strings in its source; null where a careful reader must look."""
    source = bytes(raw)
    try:
        return json_or_null(_decoded(source)), strings.count(source)
    except JsonError:
        return None


def meta_of(members: dict[str, Raw]) -> str:
    """`meta_json` of members without a column. Raises JsonError where a careful reader must look."""
    return encode(flat_meta({name: _decoded(bytes(raw)) for name, raw in members.items()}))


def extra_of(members: dict[str, Raw]) -> str | None:
    """`extra_json` of members of a message. Raises JsonError where a careful reader must look."""
    return object_json({name: _decoded(bytes(raw)) for name, raw in members.items()})


def _decoded(source: bytes) -> Any:
    """The value of JSON text in which nothing is odd. Raises JsonError."""
    reader = Reader()
    value = reader.decode(source.decode("utf-8", "surrogateescape"))
    if reader.notes:
        raise JsonError("a defect was noted")
    return value
