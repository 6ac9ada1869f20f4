"""`table`: labels, reports, block lists and outside scores, found by a key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import xxhash

from curatec.compiler import plan
from curatec.compiler.frames import DTYPES
from curatec.compiler.text import hash_key
from curatec.compiler.types import Type
from curatec.runtime.side import cells, records


@dataclass(frozen=True)
class Table:
    """Sorted by its key, which is never null and stands once. `digest` is over the content: not over names, order or
    columns that are not declared."""

    frame: pl.DataFrame
    key: str
    digest: str


def read_table(declared: plan.Table, project: Path, allowed: tuple[Path, ...]) -> Table:
    """The declared columns of a table's files. Raises CuratecError (C0602 …, C0629 a key twice, C0630 a misfit)."""
    schema = {declared.key: declared.key_type, **dict(declared.columns)}
    loose = declared.key_type is Type.TEXT  # a key is read as ids of runs are: a number is its digits
    found: dict[Any, tuple[tuple[Any, ...], str]] = {}
    seen: dict[str, None] = {}
    keyless: str | None = None
    for row in records.rows(declared, declared.key, project, allowed):
        seen.update(dict.fromkeys(row.values))
        values = tuple(
            cells.identifier(declared, row, name)
            if loose and name == declared.key
            else cells.read(declared, row, name, type_)
            for name, type_ in schema.items()
        )
        if values[0] is None:
            keyless = keyless or row.place
            continue
        same, place = found.setdefault(values[0], (values, row.place))
        if same != values:
            raise records.fault(
                declared,
                "C0629",
                f"key {cells.shown(values[0])} stands in {place} and, with other values, in {row.place}",
                "keep one of them: a join never multiplies rows",
            )
    for name in schema:
        if seen and name not in seen:
            raise cells.missing(declared, name, list(seen))
    if keyless is not None:
        raise records.fault(
            declared, "C0630", f"{keyless}: the key `{declared.key}` is null", "give the row a key, or leave it out"
        )
    frame = pl.DataFrame(
        [values for values, _ in found.values()],
        schema={name: DTYPES[type_] for name, type_ in schema.items()},
        orient="row",
    ).sort(declared.key)
    return Table(frame, declared.key, digest_of(frame))


def digest_of(frame: pl.DataFrame) -> str:
    """32 hex digits over the rows of a frame, whatever their order."""
    hasher = xxhash.xxh3_128()
    for key in hash_key(frame.get_columns()).sort() if frame.height else ():
        hasher.update(key.encode())
    return hasher.hexdigest()
