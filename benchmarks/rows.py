"""The rows that a variant wrote, in one form for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import job
import orjson
import polars as pl
from xxhash import xxh3_64_intdigest

Rows = dict[str, tuple[str, str, int]]
"""The record's id → split, task, and a hash of its messages and tools."""


def by_hand(out: Path) -> Rows:
    return {row["id"]: _said(row) for row in _lines(out)}


def compiled(out: Path) -> Rows:
    """Of a compile's output; its ids are hashes, and `runs.parquet` says what the records call themselves."""
    named = dict(pl.read_parquet(out / "runs.parquet", columns=["id", "record_id"]).iter_rows())
    return {named[row["example_id"]]: _said(row) for row in _lines(out / "sft")}


def difference(ours: Rows, theirs: Rows) -> str | None:
    """What tells the two apart, null when they are the same."""
    if ours == theirs:
        return None
    only = f"{len(ours.keys() - theirs.keys())} rows are only here, {len(theirs.keys() - ours.keys())} only there"
    odd = [id_ for id_ in ours.keys() & theirs.keys() if ours[id_] != theirs[id_]]
    return f"{only}, {len(odd)} differ" + (f", such as {min(odd)}" if odd else "")


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    for split in job.SPLITS:
        path = folder / f"{split}.jsonl"
        if path.exists():
            with path.open("rb") as lines:
                yield from map(orjson.loads, lines)


def _said(row: dict[str, Any]) -> tuple[str, str, int]:
    tools = row["tools"]
    if isinstance(tools, str):
        tools = orjson.loads(tools)
    said = orjson.dumps([_without_nulls(row["messages"]), tools], option=orjson.OPT_SORT_KEYS)
    return row["split"], row["task"], xxh3_64_intdigest(said)


def _without_nulls(value: Any) -> Any:
    """A member that is null says what a missing one says: typed engines write all members of a message."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
