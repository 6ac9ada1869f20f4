"""What a sink wrote as files of a cache entry: its folder, its account, its rows of the ledger."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import orjson
import polars as pl

from curatec.runtime import arrow_file
from curatec.runtime.cache import Entry, hash_file, stamp_of
from curatec.runtime.ledger import LINEAGE
from curatec.runtime.memo.files import lend, link
from curatec.runtime.sinks.written import Written

_ACCOUNT, _LEDGER, _LINEAGE = ".account.json", ".ledger.arrow", ".lineage.arrow"


def save(folder: Path, made: Path, written: Written, ledger: Sequence[pl.DataFrame]) -> None:
    """Writes what a sink made, below its folder `made`, into the empty folder of an entry."""
    for file in written.files:
        link(made.parent / file, folder / Path(file).name)
    account = {f.name: getattr(written, f.name) for f in fields(written) if f.name != "lineage"}
    (folder / _ACCOUNT).write_bytes(orjson.dumps(account))
    if ledger:
        arrow_file.write(pl.concat(ledger), folder / _LEDGER)
    arrow_file.write(written.lineage.select(*LINEAGE), folder / _LINEAGE)


@dataclass(frozen=True)
class Sunk:
    """What a sink has written: its account and its rows of the ledger. `digests` are those that are known of its files,
    by their paths relative to OUT."""

    written: Written
    ledger: Sequence[pl.DataFrame]
    digests: Mapping[str, str]
    cached: bool = False  # it wrote this before, and did not run


def lent(entry: Entry, out: Path, former: Path) -> Sunk:
    """Puts the files of an entry below `out`, which takes the place of `former`. Raises DamagedEntry, with `out` as it
    was."""
    account = orjson.loads(entry.file(_ACCOUNT).read_bytes())
    lineage = arrow_file.read(entry.file(_LINEAGE))
    ledger = [arrow_file.read(entry.file(_LEDGER))] if _LEDGER in entry.files else []
    tuples = {name: tuple(account[name]) for name in ("files", "notes")}
    written = Written(**{**account, **tuples}, lineage=lineage)
    folder = out / written.name
    folder.mkdir()
    try:
        digests = {file: _lend(entry, out / file, former / file) for file in written.files}
    except BaseException:
        shutil.rmtree(folder)
        raise
    return Sunk(written, ledger, digests, cached=True)


def _lend(entry: Entry, new: Path, former: Path) -> str:
    """The digest of a file that is lent. What is done to it in another output is found, before and after."""
    kept, sealed = entry.file(new.name), entry.files[new.name]
    try:
        lend(kept, new, former)
    except FileNotFoundError:
        raise entry.damaged() from None
    if sealed.digest is None or (stamp_of(kept)[1] != sealed.changed and hash_file(new) != sealed.digest):
        raise entry.damaged()
    return sealed.digest
