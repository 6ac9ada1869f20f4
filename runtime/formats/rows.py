"""From canonical records to the rows of `RUNS` and `TURNS`.

Columns are gathered as plain lists and turned into frames with the declared types. Lists of structs (calls, parts,
reward parts) are gathered flat and grouped at the end: building them from nested Python values is twenty times slower.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import polars as pl

from ..tables import CALL, PART, REWARD_PART, RUNS, TURNS
from .counts import counts
from .digest import digests
from .link import link
from .model import Call, Part, RewardPart, Run, Turn

_RUN_FIELDS = [name for name in RUNS if name not in {"row", "digest", "file", "line", "reward_parts"}]
_TURN_FIELDS = [name for name in TURNS if name not in {"row", "turn", "calls", "parts"}]
_run_values = attrgetter(*_RUN_FIELDS)
_turn_values = attrgetter(*_TURN_FIELDS)


def settle(run: Run, notes: set[str], *, call_ids: bool) -> None:
    """Links the results of a run and fills in its defects: what the reader noted, and what shows only now."""
    found = notes | link(run.turns, call_ids=call_ids)
    if not run.turns:
        found.add("empty_run")
    for turn in run.turns:
        if turn.copied_context:
            turn.loss_weight = 0.0
        if turn.role == "assistant" and not turn.calls and turn.content and "<tool_call>" in turn.content:
            found.add("unparsed_call")
    run.defects = sorted(found)


def wrong_type(run: Run) -> str | None:
    """The first field whose value does not fit its column, null when all fit. Added adapters are not type-checked."""
    for holder, names, schema in ((run, _RUN_FIELDS, RUNS), *((turn, _TURN_FIELDS, TURNS) for turn in run.turns)):
        for name in names:
            value = getattr(holder, name)
            if value is not None and not _fits(value, schema[name]):
                return f"{name} is a {type(value).__name__}"
    for call in (call for turn in run.turns for call in turn.calls):
        for field in CALL.fields:
            value = getattr(call, field.name)
            if value is not None and not _fits(value, field.dtype):
                return f"call.{field.name} is a {type(value).__name__}"
    return None


def _fits(value: object, dtype: Any) -> bool:
    if isinstance(dtype, pl.Enum):
        return value in dtype.categories.to_list()
    if isinstance(dtype, pl.List):
        return isinstance(value, list)
    if dtype == pl.Boolean:
        return isinstance(value, bool)
    if dtype == pl.String:
        return isinstance(value, str)
    if dtype.is_float():
        return isinstance(value, int | float)
    limit = 2**31 if dtype == pl.Int32 else 2**63
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


class _Nested:
    """A list-of-structs column, gathered flat: `owner` is the index of the outer row."""

    def __init__(self, struct: pl.Struct) -> None:
        self.struct = struct
        self.names = [field.name for field in struct.fields]
        self.owner: list[int] = []
        self.columns: dict[str, list[Any]] = {name: [] for name in self.names}

    def add(self, owner: int, values: list[Call] | list[Part] | list[RewardPart]) -> None:
        for value in values:
            self.owner.append(owner)
            for name, column in self.columns.items():
                column.append(getattr(value, name))

    def column(self, name: str, rows: int, absent: list[int] | None = None) -> pl.Series:
        """The grouped column; rows without an entry hold an empty list, those in `absent` null."""
        flat = pl.DataFrame(
            {
                field.name: pl.Series(field.name, self.columns[field.name], dtype=field.dtype)
                for field in self.struct.fields
            }
        )
        grouped = (
            pl.DataFrame({"_owner": pl.Series("_owner", self.owner, dtype=pl.UInt32), name: flat.to_struct(name)})
            .group_by("_owner", maintain_order=True)
            .agg(pl.col(name))
        )
        missing = pl.DataFrame({"_owner": pl.Series("_owner", absent or [], dtype=pl.UInt32)})
        column = (
            pl.DataFrame({"_owner": pl.int_range(rows, dtype=pl.UInt32, eager=True)})
            .join(grouped, on="_owner", how="left", maintain_order="left")
            .with_columns(
                pl.when(pl.col(name).is_null() & ~pl.col("_owner").is_in(missing["_owner"].implode()))
                .then(pl.lit([], dtype=pl.List(self.struct)))
                .otherwise(pl.col(name))
                .alias(name)
            )
        )
        return column[name]


class Rows:
    """Gathers the rows of one part. `text` is the raw text that went in so far, in bytes."""

    def __init__(self) -> None:
        self.text = 0
        self.n_runs = 0
        self.n_turns = 0
        self._runs: list[tuple[Any, ...]] = []
        self._turns: list[tuple[Any, ...]] = []
        self._calls = _Nested(CALL)
        self._parts = _Nested(PART)
        self._no_parts: list[int] = []
        self._rewards = _Nested(REWARD_PART)

    def add(self, run: Run, file: int, line: int) -> None:
        """Appends one settled run."""
        self._runs.append((file, line, *_run_values(run)))
        self._rewards.add(self.n_runs, run.reward_parts)
        for index, turn in enumerate(run.turns):
            self._add_turn(index, turn)
        self.n_runs += 1

    def _add_turn(self, index: int, turn: Turn) -> None:
        self._turns.append((self.n_runs, index, *_turn_values(turn)))
        if turn.calls:
            self._calls.add(self.n_turns, turn.calls)
        if turn.parts is None:
            self._no_parts.append(self.n_turns)
        else:
            self._parts.add(self.n_turns, turn.parts)
        self.n_turns += 1

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows so far, with exactly the columns and types of RUNS and TURNS."""
        runs = _columns(["file", "line", *_RUN_FIELDS], self._runs, RUNS)
        runs["row"] = pl.int_range(self.n_runs, dtype=pl.UInt32, eager=True)
        runs["reward_parts"] = self._rewards.column("reward_parts", self.n_runs)
        turns = _columns(["row", "turn", *_TURN_FIELDS], self._turns, TURNS)
        turns["calls"] = self._calls.column("calls", self.n_turns)
        turns["parts"] = self._parts.column("parts", self.n_turns, self._no_parts)
        made = pl.DataFrame({name: turns[name] for name in TURNS}, schema=TURNS)
        runs["digest"] = digests(pl.DataFrame(runs), made)
        return pl.DataFrame({name: runs[name] for name in RUNS}, schema=RUNS), made

    def write(self, runs: Path, turns: Path) -> None:
        """Writes both tables as parquet, with the counts beside RUNS. Raises OSError."""
        own, said = self.frames()
        for path, frame in ((runs, own.with_columns(counts(own, said))), (turns, said)):
            try:
                frame.write_parquet(path, compression="zstd", compression_level=1)
            except pl.exceptions.PolarsError as error:  # how polars reports a full disk
                raise OSError(errno.EIO, str(error).rpartition(": ")[2], str(path)) from error


def _columns(names: list[str], rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> dict[str, pl.Series]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: _series(name, values, schema[name]) for name, values in zip(names, columns, strict=True)}


def _series(name: str, values: Sequence[Any], dtype: Any) -> pl.Series:
    if isinstance(dtype, pl.Datetime):  # gathered as integers
        return pl.Series(name, values, dtype=pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.Series(name, values, dtype=dtype)
