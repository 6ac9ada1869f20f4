"""`test set`: tasks that are kept out of training, by their ids and their texts."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curatec.compiler import plan
from curatec.compiler.types import Type
from curatec.runtime.side import cells, records
from curatec.runtime.side.tables import digest_of


@dataclass(frozen=True)
class Sealed:
    """`items`: `id` and `text`, not both null, each pair once, sorted. `digest` is over them."""

    items: pl.DataFrame
    digest: str


def read_sealed(declared: plan.SealedSet, project: Path, allowed: tuple[Path, ...]) -> Sealed:
    """The items of a test set's files. Raises CuratecError (C0602 …, C0630 a misfit, C0634 nothing to keep out)."""
    found: set[tuple[str | None, str | None]] = set()
    seen: dict[str, None] = {}
    bare: str | None = None
    for row in records.rows(declared, declared.id, project, allowed):
        seen.update(dict.fromkeys(row.values))
        name = cells.identifier(declared, row, declared.id) if declared.id is not None else None
        text = cells.read(declared, row, declared.text, Type.TEXT) if declared.text is not None else None
        if name is None and text is None:
            bare = bare or row.place
        else:
            found.add((name, text))
    for column in (declared.id, declared.text):
        if seen and column is not None and column not in seen:
            raise cells.missing(declared, column, list(seen))
    if bare is not None:
        raise records.fault(
            declared,
            "C0630",
            f"{bare} has neither id nor text",
            "give it one of them, or leave it out",
        )
    if not found:
        raise records.fault(
            declared, "C0634", f"test set `{declared.name}` has no item", "name the file that holds the sealed tasks"
        )
    if not any(name is not None or _has_words(text or "") for name, text in found):
        raise records.fault(
            declared, "C0634", f"no item of test set `{declared.name}` has an id or a word", "nothing is found by them"
        )
    items = pl.DataFrame(list(found), schema={"id": pl.String, "text": pl.String}, orient="row")
    items = items.sort("id", "text", nulls_last=True)
    return Sealed(items, digest_of(items))


def _has_words(text: str) -> bool:
    """Whether a text holds a letter, mark or digit, by which it could be found (`leaks.words`)."""
    return any(unicodedata.category(char)[0] in "LMN" for char in text)
