"""Lines of chat records read by columns, for those lines in which nothing is odd.

A line is regular when it decodes into `shapes.Record` and no rule for an exception applies to it; `read` gives back the
others as they stand, for the careful reader. Of a regular line both make the same rows.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import msgspec
import polars as pl
from msgspec import UNSET, Raw

from ...tables import ARGS_STATE, REQUESTOR, RUNS, TURNS
from ..batches import Batch
from ..digest import digests
from ..json_text import JsonError
from ..messages import TAKEN
from ..nested import listed
from ..part import Rows
from . import strings
from .facts import Tools, extra_of, facts_of, gold_of, is_regular, is_spelled_otherwise, meta_of
from .links import Linked, linked
from .shapes import MESSAGE_FIELDS, RECORD_FIELDS, Record
from .strings import Told
from .turns import turns_of

_decode = msgspec.json.Decoder(Record).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_all_members = msgspec.json.Decoder(list[dict[str, Raw]]).decode
_CAREFUL_MEMBERS = TAKEN - MESSAGE_FIELDS


@dataclass(frozen=True, slots=True)
class Fast:
    """The rows of the regular lines, `line` counting from 0, and the other lines by their number."""

    rows: Rows
    left: dict[int, bytes]


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A record, the texts of its members that were not decoded, and how many strings those had. `extra` are places of
    messages and what they hold without a column."""

    line: int
    record: Record
    tools: str | None
    gold: str | None
    strings: int
    meta: str = "{}"
    extra: tuple[tuple[int, str | None], ...] = ()


class ChatReader:
    """Reads the lines of one file. `format` goes into RUNS; a record with a member out of `careful` is not regular."""

    def __init__(self, format: str, careful: frozenset[str]) -> None:
        self._format = format
        self._careful = careful
        self._careful_fields = careful & RECORD_FIELDS
        self._tools = Tools()

    def read(self, batch: Batch) -> Fast:
        """The lines of a batch; nothing of what is given back lies in its buffer."""
        collects = gc.isenabled()
        gc.disable()  # it would look through all that is decoded again and again, and there are no cycles
        try:
            return self._read(batch)
        finally:
            if collects:
                gc.enable()

    def _read(self, batch: Batch) -> Fast:
        lines = batch.lines()
        decoded = [found for number, line in enumerate(lines) if (found := self._decoded(number, line)) is not None]
        records = [found.record for found in decoded]
        messages = [message for record in records for message in record.messages]
        facts = facts_of(records)
        said = turns_of([len(record.messages) for record in records], messages)
        links = linked(said.turns, said.calls, len(records))
        settled = self._settled(batch, lines, decoded, [*facts.told, *said.told])
        irregular = pl.concat([said.irregular, links.irregular, pl.Series(_nulls(settled), dtype=pl.UInt32)]).unique()
        runs = _runs(decoded, settled, facts.columns | {"defects": links.defects}, self._format)
        turns = _turns(links, said.counts, _extras(settled, records))
        if irregular.len():
            runs, turns = _without(runs, turns, irregular)
        taken = set(runs["line"])
        left = {number: bytes(line) for number, line in enumerate(lines) if number not in taken}
        return Fast(Rows(runs.with_columns(digests(runs, turns)).select(*RUNS), turns), left)

    def _decoded(self, number: int, line: memoryview) -> _Decoded | None:
        try:
            record = _decode(line)
        except (msgspec.DecodeError, RecursionError):
            return None
        if not is_regular(record) or any(getattr(record, name) is not UNSET for name in self._careful_fields):
            return None
        if is_spelled_otherwise(record, line):
            return None
        tools = self._tools.of(record.tools) if isinstance(record.tools, Raw) else (None, 0)
        gold = gold_of(record.gold) if isinstance(record.gold, Raw) else (None, 0)
        if tools is None or gold is None:
            return None
        return _Decoded(number, record, tools[0], gold[0], tools[1] + gold[1])

    def _settled(
        self, batch: Batch, lines: Sequence[memoryview], decoded: list[_Decoded], told: list[Told]
    ) -> list[_Decoded | None]:
        """The records with their meta; null for one that does not say all that stands in its line."""
        left = sum(strings.count(bytes(line)) for line in _others(lines, decoded))
        raw = pl.Series([found.strings for found in decoded], dtype=pl.Int64)
        # No record stands for more strings than its line has: where the sums are equal, each line's are.
        if strings.count_many(batch) - left == sum(one.total() for one in told) + raw.sum():
            return list(decoded)
        stands = sum((one.by_record(len(decoded)) for one in told), raw).to_list()
        return [self._whole(found, bytes(lines[found.line]), n) for found, n in zip(decoded, stands, strict=True)]

    def _whole(self, found: _Decoded, line: bytes, stands: int) -> _Decoded | None:
        """The record with the members that have no column."""
        more = strings.count(line) - stands
        if not more:
            return found
        try:
            members = _members(line)
            messages = _all_members(members["messages"])
            left = {name: raw for name, raw in members.items() if name not in RECORD_FIELDS}
            extras = [{name: raw for name, raw in one.items() if name not in MESSAGE_FIELDS} for one in messages]
            if more != sum(1 + strings.count(bytes(raw)) for one in (left, *extras) for raw in one.values()):
                return None
            extras = [{name: raw for name, raw in one.items() if bytes(raw) != b"null"} for one in extras]
            if left.keys() & self._careful or any(one.keys() & _CAREFUL_MEMBERS for one in extras):
                return None
            extra = tuple((place, extra_of(one)) for place, one in enumerate(extras) if one)
            return replace(found, meta=meta_of(left), extra=extra)
        except (msgspec.DecodeError, JsonError):
            return None


def _others(lines: Sequence[memoryview], decoded: Sequence[_Decoded]) -> list[memoryview]:
    taken = {found.line for found in decoded}
    return [line for number, line in enumerate(lines) if number not in taken]


def _nulls(values: Sequence[object]) -> list[int]:
    return [place for place, value in enumerate(values) if value is None]


def _runs(
    decoded: Sequence[_Decoded], settled: Sequence[_Decoded | None], columns: dict[str, pl.Series], format: str
) -> pl.DataFrame:
    """RUNS but for the digest."""
    constant = {"file": 0, "format": format, "reward_parts": []}
    filled = columns | {
        "row": pl.int_range(len(decoded), dtype=pl.UInt32, eager=True),
        "line": pl.Series([found.line for found in decoded], dtype=pl.Int64),
        "tools_json": _shared([found.tools for found in decoded]),
        "gold_json": pl.Series([found.gold for found in decoded], dtype=pl.String),
        "meta_json": pl.Series([found and found.meta for found in settled], dtype=pl.String),
    }
    rest = [name for name in RUNS if name not in filled and name != "digest"]
    return pl.DataFrame(filled).with_columns(pl.lit(constant.get(name), dtype=RUNS[name]).alias(name) for name in rest)


def _shared(texts: Sequence[str | None]) -> pl.Series:
    """A column in which equal texts share their bytes."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return pl.Series(list(places), dtype=pl.String).gather([places[text] for text in texts])


def _extras(settled: Sequence[_Decoded | None], records: Sequence[Record]) -> pl.Series:
    """`extra_json` of all messages."""
    starts = list(accumulate((len(record.messages) for record in records), initial=0))
    texts = {
        start + place: text
        for start, found in zip(starts, settled, strict=False)
        if found is not None
        for place, text in found.extra
    }
    column = pl.Series("extra_json", [None], dtype=pl.String).new_from_index(0, starts[-1])
    return column.scatter(list(texts), list(texts.values())) if texts else column


def _turns(links: Linked, counts: pl.Series, extras: pl.Series) -> pl.DataFrame:
    constant = {"loss_weight": 1.0, "copied_context": False}
    calls = links.calls.with_columns(
        args_raw=pl.lit(None, dtype=pl.String),
        args_state=pl.lit("json", dtype=ARGS_STATE),
        requestor=pl.lit("agent", dtype=REQUESTOR),
    ).select("id", "name", "args_json", "args_raw", "args_state", "requestor", "result_turn")
    turns = links.turns.with_columns(listed(calls.to_struct("calls"), counts), extras)
    rest = [name for name in TURNS if name not in turns.columns]
    return turns.with_columns(pl.lit(constant.get(name), dtype=TURNS[name]).alias(name) for name in rest).select(*TURNS)


def _without(runs: pl.DataFrame, turns: pl.DataFrame, rows: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Without some rows, the others counted anew."""
    kept = runs.filter(~runs["row"].is_in(rows.implode()))
    places = pl.Series("row", [0], dtype=pl.UInt32).new_from_index(0, runs.height)
    places = places.scatter(kept["row"], pl.int_range(kept.height, dtype=pl.UInt32, eager=True))
    held = turns.filter(~turns["row"].is_in(rows.implode()))
    return kept.with_columns(places.gather(kept["row"])), held.with_columns(places.gather(held["row"]))
