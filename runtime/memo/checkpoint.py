"""A state between two steps as files of a cache entry, and what was done on the way to it.

Rows are an Arrow file that is mapped and not read; measured expressions are columns named after what they measure.
Turns stay where they are: parsed files and files of other entries are named, those that this run wrote are linked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from curatec.compiler.core import Core
from curatec.runtime import arrow_file
from curatec.runtime.cache import Entry
from curatec.runtime.done import Done
from curatec.runtime.ledger import SCHEMA, StepCount
from curatec.runtime.memo.files import link
from curatec.runtime.memo.reached import Reached
from curatec.runtime.state import State
from curatec.runtime.turns import Kept, Parsed, Part, Turns

_ROWS, _TOOLSETS, _REWRITTEN, _ABOUT = "rows.arrow", "toolsets.arrow", "rewritten.arrow", "about.json"
_LEDGER, _LINEAGE, _SPLITS, _HELD = "ledger.arrow", "lineage.arrow", "splits.arrow", "held.arrow"
_NAMES = ("sink", "step", "label")  # columns of the ledger that come from the spec
_MEASURE = "measure:"  # what a measured column is called begins with this; no other column does
_NARROW = 128  # bytes a row that a measured expression may take
_REWRITE = {"id": pl.String, "name": pl.String, "text": pl.String}
_TOOLS = {"name": pl.String, "text": pl.String}
_OF_SPEC = (*_NAMES, "text", "because", "see", "again")
_COUNTS = tuple(f.name for f in fields(StepCount) if f.name not in _OF_SPEC)


class Unreadable(Exception):
    """An entry that does not hold what it should: it is as if it were not there."""


@dataclass
class Places:
    """Where the parts of turns are that this run has in its hands, relative to the cache."""

    root: Path
    written: list[tuple[pl.DataFrame, str]] = field(default_factory=list)  # parts in memory, and where they were put
    linked: dict[Path, str] = field(default_factory=dict)

    def of(self, part: Part) -> str | list[list[Any]] | None:
        """The name of a part; null for one that no entry holds."""
        match part:
            case Parsed(pieces):
                return [[path.relative_to(self.root).as_posix(), offset] for path, offset in pieces]
            case Kept(entry, name):
                return f"{entry.key}/{name}"
            case Path():
                return self.linked.get(part)
        return next((name for frame, name in self.written if frame is part), None)


# ---- writing ----


def save(folder: Path, key: str, reached: Reached, names: Mapping[Core, str], places: Places) -> None:
    """Writes a state, and what was done since the last kept one, into the empty folder of the entry `key`. `names` are
    those of measured expressions."""
    state, done = reached.state, reached.done
    parts = [_saved_part(part, number, folder, key, places) for number, part in enumerate(state.turns.parts)]
    _write(_with_names(state, names), folder / _ROWS)
    old = reached.before.toolsets if reached.before is not None else {}
    new = [(name, text) for name, text in state.toolsets.items() if name not in old]
    _write(pl.DataFrame(new, schema=_TOOLS, orient="row"), folder / _TOOLSETS)
    if state.rewritten:
        texts = [(id_, name, text) for id_, said in state.rewritten.items() for name, text in said.items()]
        _write(pl.DataFrame(texts, schema=_REWRITE, orient="row"), folder / _REWRITTEN)
    about = {
        "base": reached.kept,
        "parts": parts,
        "order": state.order,
        "descending": state.descending,
        "rendered": state.renderer is not None,
        "done": [_about(own, one) for own, one in done.items()],
    }
    _save_done(list(done.values()), folder)
    (folder / _ABOUT).write_bytes(orjson.dumps(about))


def _saved_part(part: Part, number: int, folder: Path, key: str, places: Places) -> Any:
    known = places.of(part)
    if known is not None:
        return known
    name = f"part-{number}.arrow"
    if isinstance(part, Path):
        link(part, folder / name)
        places.linked[part] = f"{key}/{name}"
    else:
        assert isinstance(part, pl.DataFrame), part
        _write(part, folder / name)
        places.written.append((part, f"{key}/{name}"))
    return f"{key}/{name}"


def _write(frame: pl.DataFrame, path: Path) -> None:
    arrow_file.write(frame, path)


def _with_names(state: State, names: Mapping[Core, str]) -> pl.DataFrame:
    """Rows, with each measured expression under its name. Long texts, and what has no name, are left out: they are
    measured again when they are asked for."""
    rows = state.rows
    most = _NARROW * rows.height
    short = {core: column for core, column in state.known.items() if rows[column].estimated_size() <= most}
    renamed = {column: names[core] for core, column in short.items() if core in names}
    return rows.drop(state.known.values() - renamed.keys()).rename(renamed)


def _about(key: str, done: Done) -> dict[str, Any]:
    """What is no table of what was done; `split` and `held`: whether there are such tables, be they empty."""
    count = None if done.count is None else {name: getattr(done.count, name) for name in _COUNTS}
    return {"key": key, "count": count, "split": done.splits is not None, "held": done.held is not None}


def _save_done(done: Sequence[Done], folder: Path) -> None:
    def at(number: int) -> pl.Expr:
        return pl.lit(number, dtype=pl.UInt32).alias("at")

    ledger = [frame.drop(_NAMES).with_columns(at(i)) for i, one in enumerate(done) for frame in one.frames]
    lineage = [frame.with_columns(at(i)) for i, one in enumerate(done) for frame in one.lineage]
    splits = [one.splits.with_columns(at(i)) for i, one in enumerate(done) if one.splits is not None]
    held = [one.held.rename("id").to_frame().with_columns(at(i)) for i, one in enumerate(done) if one.held is not None]
    for name, frames in ((_LEDGER, ledger), (_LINEAGE, lineage), (_SPLITS, splits), (_HELD, held)):
        if frames:
            _write(pl.concat(frames), folder / name)


# ---- reading ----


@dataclass(frozen=True)
class Saved:
    """An entry that holds a state, opened: what it says of itself."""

    entry: Entry
    about: Mapping[str, Any]

    @classmethod
    def open(cls, entry: Entry) -> Saved:
        """Raises DamagedEntry and Unreadable."""
        try:
            about = orjson.loads(entry.file(_ABOUT).read_bytes())
        except (KeyError, ValueError) as error:
            raise Unreadable(entry.key) from error
        return cls(entry, about)

    @property
    def base(self) -> str | None:
        found: str | None = self.about["base"]
        return found

    @property
    def keys(self) -> list[str]:
        return [one["key"] for one in self.about["done"]]

    def done(self) -> dict[str, Done]:
        """What was done between the base and here, by the key of the stop."""
        ledger, lineage = self._table(_LEDGER), self._table(_LINEAGE)
        splits, held = self._table(_SPLITS), self._table(_HELD)
        found: dict[str, Done] = {}
        for i, one in enumerate(self.about["done"]):
            found[one["key"]] = Done(
                None if one["count"] is None else _count(one["count"]),
                [_named(frame) for frame in _of(ledger, i)],
                _of(lineage, i),
                _one(held, i)["id"] if one["held"] else None,
                _one(splits, i) if one["split"] else None,
            )
        return found

    def _table(self, name: str) -> pl.DataFrame | None:
        return self._read(name) if name in self.entry.files else None

    def _read(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        path = self.entry.file(name)
        try:
            return arrow_file.read(path, columns)
        except OSError as error:
            raise Unreadable(self.entry.key) from error

    def toolsets(self) -> dict[str, str]:
        """Those that the base does not hold."""
        return dict(self._read(_TOOLSETS).iter_rows())

    def state(self, like: State, toolsets: dict[str, str], names: Mapping[str, Core]) -> State:
        """The state. `like` has what is not saved: paths of the plan, side data, renderer, engine. `names`: what the
        plan may ask of measured columns."""
        schema = pl.read_ipc_schema(self.entry.file(_ROWS))
        columns = [name for name in schema if not name.startswith(_MEASURE) or name in names]
        rows = self._read(_ROWS, columns)
        return replace(
            like,
            rows=rows,
            turns=Turns(tuple(self._part(said) for said in self.about["parts"]), like.turns.kept),
            toolsets=toolsets,
            known={names[name]: name for name in columns if name in names},
            order=tuple(self.about["order"]),
            descending=tuple(self.about["descending"]),
            renderer=like.renderer if self.about["rendered"] else None,
            rewritten=self._rewritten(),
        )

    def _part(self, said: str | list[list[Any]]) -> Part:
        cache = self.entry.cache
        if isinstance(said, list):
            return Parsed(tuple((_there(cache.root / path), int(offset)) for path, offset in said))
        key, _, name = said.partition("/")
        entry = self.entry if key == self.entry.key else cache.find(key)
        if entry is None or name not in entry.files:
            raise Unreadable(key)
        return Kept(entry, name)

    def _rewritten(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        if _REWRITTEN in self.entry.files:
            for id_, name, text in self._read(_REWRITTEN).iter_rows():
                found.setdefault(id_, {})[name] = text
        return found


def _there(path: Path) -> Path:
    if not path.is_file():
        raise Unreadable(path.name)
    return path


def _of(table: pl.DataFrame | None, at: int) -> list[pl.DataFrame]:
    """The rows of a stop, if there are any."""
    found = [] if table is None else [table.filter(pl.col("at") == at).drop("at")]
    return [frame for frame in found if frame.height]


def _one(table: pl.DataFrame | None, at: int) -> pl.DataFrame:
    assert table is not None
    return table.filter(pl.col("at") == at).drop("at")


def _count(numbers: Mapping[str, Any]) -> StepCount:
    return StepCount(sink=None, step=None, label="", text="", **numbers)


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    """With the columns that the spec fills in."""
    empty = [pl.lit(None, dtype=SCHEMA[name]).alias(name) for name in _NAMES]
    return frame.with_columns(*empty).select(*SCHEMA)
