"""What an sft sink makes of the runs of one part: finished rows, and what became of each run, as frames.

Chats of regular runs are made by columns (`regular_rows`), all others one by one; both give the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.runtime import targets
from curatec.runtime.conversation.spans import Span
from curatec.runtime.conversation.training import RUN_COLUMNS, Lost, Maker, Trainable
from curatec.runtime.sinks import regular_rows
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import POSITION
from curatec.runtime.sinks.columns import Col
from curatec.runtime.sinks.files import told
from curatec.runtime.sinks.place import PLACE, SPLIT
from curatec.runtime.sinks.sft_trainer import Masks
from curatec.runtime.state import State

_PORTION = 256  # rows that are in memory as Python objects
_ABOUT = ("domain", "task_id", "trial", "reward", "success", "outcome", "model", "agent")  # for a target's own columns


class Fractional(NamedTuple):
    """A row with a weight that the target cannot mean."""

    position: int
    id: str
    turn: int
    weight: float


@dataclass(frozen=True)
class Made:
    """`rows` are as `Files` takes them, with their POSITION; `fates` are of `account.FATES`."""

    rows: list[pl.DataFrame]
    fates: list[pl.DataFrame]
    masks: Masks
    fractional: list[Fractional]


class Rows:
    """Makes the rows of a sink, part by part; a pure function of the part. `state` is `Place.placed`, `shape` are the
    columns of the sink, `shown` those of its JSON lines."""

    def __init__(
        self,
        state: State,
        target: plan.Sft,
        shape: tuple[Col, ...],
        shown: tuple[Col, ...],
        *,
        one_by_one: bool = False,
    ) -> None:
        self._target = target
        self._format = targets.target(target.format)
        self._shape = shape
        self._shown = shown
        self._maker = Maker(
            state,
            target,
            self._format.form,
            (*RUN_COLUMNS, *_ABOUT, PLACE, SPLIT),
            one_by_one=one_by_one or target.format not in targets.CHATS,
        )
        self.turn_columns = self._maker.columns

    def of(self, frames: Frames) -> Made:
        batch = self._maker.batch(frames)
        made = Made([], [], Masks(), [])
        if batch.regular is not None:
            form, tools = self._format.form, self._maker.tools
            made.rows.append(regular_rows.rows(frames.runs, batch.regular, self._target, form, self._shape, tools))
            made.fates.append(regular_rows.fates(frames.runs, batch.regular, batch.changed))
            made.masks.join(regular_rows.masks(batch.regular))
        while some := list(islice(batch.odd, _PORTION)):
            odd = OneByOne(self._target, self._format)
            for row in some:
                odd.take(row)
            made.rows.append(self._frame(odd))
            made.fates.append(odd.account.fates)
            made.masks.join(odd.masks)
            made.fractional.extend(odd.fractional)
        return made

    def _frame(self, odd: OneByOne) -> pl.DataFrame:
        positions = pl.Series(POSITION, odd.positions, dtype=pl.UInt64)
        return told(self._shape, self._shown, odd.records).with_columns(positions)


@dataclass
class OneByOne:
    """Takes rows that were made one by one."""

    target: plan.Sft
    format: targets.Target
    account: Account = field(default_factory=Account)
    masks: Masks = field(default_factory=Masks)
    positions: list[int] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    fractional: list[Fractional] = field(default_factory=list)

    def take(self, row: Trainable | Lost) -> None:
        id_, account = row.run["id"], self.account
        for reason, n in row.edited.items():
            account.edit(id_, reason, n)
        if isinstance(row, Lost):
            (account.reject if row.rejected else account.drop)(id_, row.reason, row.detail)
            return
        example = id_
        if row.window is not None:
            example = f"{id_}#w{row.window}"
            account.make(example, id_, row.window)
        weights = [mark.weight for mark in row.marks]
        position, split = row.run[PLACE], row.run[SPLIT]
        odd = next(((m.turn, w) for m, w in zip(row.messages, weights, strict=True) if w not in (0.0, 1.0)), None)
        if odd is not None and not self.format.fractional:  # told when all are known: parts do not say which is first
            self.fractional.append(Fractional(position, example, *odd))
            return
        about = {name: row.run[name] for name in ("id", "source", "license", "task", *_ABOUT)} | {"split": split}
        said = targets.row(self.format, "sft", row.messages, row.tools, weights, about)
        if self.format.name not in targets.CHATS and any(mark.weight and not mark.whole for mark in row.marks):
            said = "mask_not_expressible"  # only a mask over texts leaves out a part of a message
        if isinstance(said, str):
            account.reject(example, said)
            return
        account.keep(example, split, row.n_tokens, row.n_trained)
        self.masks.see(row)
        record = _record(row, example, split) | said
        if self.target.loss.only_last and "messages" in said:
            record |= {"prompt": said["messages"][:-1], "completion": said["messages"][-1:]}
        self.positions.append(position + (row.window or 0))
        self.records.append(record)


def _record(row: Trainable, example: str, split: str) -> dict[str, Any]:
    """The row without what its format says."""
    run = row.run
    record = {
        "example_id": example,
        "parents": [run["origin"]],
        "source": run["source"],
        "license": run["license"],
        "task": run["task"],
        "split": split,
        "n_tokens": row.n_tokens,
        "n_trained": row.n_trained,
        "turns": [message.turn for message in row.messages],
        "weights": [mark.weight for mark in row.marks],
        "trained": [_span(i, span) for i, mark in enumerate(row.marks) for span in mark.spans],
    }
    if row.rendered is not None:
        record |= {"input_ids": row.rendered.input_ids, "labels": row.rendered.labels}
    return record


def _span(message: int, span: Span) -> dict[str, Any]:
    return {"message": message, "part": span.part, "call": span.call, "start": span.start, "end": span.end}
