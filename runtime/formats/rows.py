"""From canonical records to the rows of `RUNS` and `TURNS`.

Columns are gathered as plain lists and turned into frames with the declared types. Lists of structs (calls, parts,
reward parts) are gathered flat and put together at the end: building them from nested Python values is twenty times
slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import polars as pl

from ..tables import CALL, PART, REWARD_PART, RUNS, TURNS
from .digest import digests
from .link import link
from .model import Call, Part, RewardPart, Run
from .nested import listed
from .part import Rows

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
    """A list-of-structs column, gathered flat."""

    def __init__(self, struct: pl.Struct) -> None:
        self.fields = struct.fields
        self.counts: list[int | None] = []
        self.columns: dict[str, list[Any]] = {field.name: [] for field in struct.fields}

    def add(self, values: list[Call] | list[Part] | list[RewardPart] | None) -> None:
        """The elements of the next row; null for a row without a list."""
        self.counts.append(None if values is None else len(values))
        for value in values or ():
            for name, column in self.columns.items():
                column.append(getattr(value, name))

    def column(self, name: str) -> pl.Series:
        flat = pl.DataFrame([pl.Series(f.name, self.columns[f.name], dtype=f.dtype) for f in self.fields])
        return listed(flat.to_struct(name), pl.Series(self.counts, dtype=pl.Int64))


class Gathered:
    """Gathers runs one by one. `n_runs` and `n_turns` are those so far."""

    def __init__(self) -> None:
        self.n_runs = 0
        self.n_turns = 0
        self._runs: list[tuple[Any, ...]] = []
        self._turns: list[tuple[Any, ...]] = []
        self._calls = _Nested(CALL)
        self._parts = _Nested(PART)
        self._rewards = _Nested(REWARD_PART)

    def add(self, run: Run, file: int, line: int) -> None:
        """Appends one settled run."""
        self._runs.append((file, line, *_run_values(run)))
        self._rewards.add(run.reward_parts)
        for index, turn in enumerate(run.turns):
            self._turns.append((self.n_runs, index, *_turn_values(turn)))
            self._calls.add(turn.calls)
            self._parts.add(turn.parts)
        self.n_runs += 1
        self.n_turns += len(run.turns)

    def rows(self) -> Rows:
        """The runs so far, with exactly the columns and types of RUNS and TURNS."""
        runs = _columns(["file", "line", *_RUN_FIELDS], self._runs, RUNS)
        runs["row"] = pl.int_range(self.n_runs, dtype=pl.UInt32, eager=True)
        runs["reward_parts"] = self._rewards.column("reward_parts")
        turns = _columns(["row", "turn", *_TURN_FIELDS], self._turns, TURNS)
        turns["calls"] = self._calls.column("calls")
        turns["parts"] = self._parts.column("parts")
        said = pl.DataFrame({name: turns[name] for name in TURNS}, schema=TURNS)
        runs["digest"] = digests(pl.DataFrame(runs), said)
        return Rows(pl.DataFrame({name: runs[name] for name in RUNS}, schema=RUNS), said)


def _columns(names: list[str], rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> dict[str, pl.Series]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: _series(name, values, schema[name]) for name, values in zip(names, columns, strict=True)}


def _series(name: str, values: Sequence[Any], dtype: Any) -> pl.Series:
    if isinstance(dtype, pl.Datetime):  # gathered as integers
        return pl.Series(name, values, dtype=pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.Series(name, values, dtype=dtype)
