"""`emit sft`: conversations with the exact text that is trained. What becomes a row: `conversation/training.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime import targets
from curatec.runtime.conversation.spans import Span
from curatec.runtime.conversation.training import Lost, Trainable, trainable
from curatec.runtime.sinks import sft_trainer, trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import SIZE, Buckets
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.written import Written

TURNS = Col("turns", "ints", "the turn of the source that each message is, as `curatec why --turn` counts")
MASK = (
    Col("weights", "floats", "loss weight of each message"),
    Col(
        "trained",
        "spans",
        "code points [start, end) of a message's content, reasoning or call (its `function` as JSON) that are trained",
    ),
)
HALVES = (
    Col("prompt", "objects", "the messages before the trained one"),
    Col("completion", "objects", "the trained message"),
)
TOKENS = (
    Col("input_ids", "ints", "the row as the chat template shows it, in tokens"),
    Col("labels", "ints", "the id of each trained token, -100 elsewhere"),
)


def columns(target: plan.Sft, *, rendered: bool = False) -> tuple[Col, ...]:
    """`only last` gives the halves as well: a trainer then knows the mask without any template. `render` gives the
    tokens, for a trainer that takes them as they are."""
    own = targets.columns(targets.target(target.format), "sft")
    mask = (TURNS, *MASK) if target.format in targets.CHATS else (TURNS,)
    halves = HALVES if target.loss.only_last and target.format in targets.CHATS else ()
    return (*COMMON, *own, *mask, *halves, *(TOKENS if rendered and target.format in targets.CHATS else ()))


@dataclass
class _Sink:
    """One sink while it is written."""

    place: Place
    target: plan.Sft
    format: targets.Target
    buckets: Buckets
    about: dict[str, dict[str, Any]]
    account: Account = field(default_factory=Account)
    masks: sft_trainer.Masks = field(default_factory=sft_trainer.Masks)
    fractional: list[tuple[int, str, int, float]] = field(default_factory=list)  # position, id, turn, weight


def write(place: Place, target: plan.Sft) -> Written:
    """Files, ledger rows and account of an sft sink."""
    format_, state = targets.target(target.format), place.state
    sink = _Sink(place, target, format_, Buckets(place.scratch, SIZE * _WINDOWS), _about(state.rows))
    for row in trainable(state, target, format_.form):
        _take(sink, row)
    _refuse_fractional(sink)
    shape = columns(target, rendered=state.renderer is not None)
    with Files(place.folder, shape, lines=_lines(format_, shape)) as files:
        for _, record in sink.buckets:
            files.add(record["split"], record)
    settings = sft_trainer.settings(
        target, sink.masks, trainer.files(files.names), shape, in_order=place.sorted, renderer=state.renderer
    )
    names = (*files.names, trainer.write(place.folder, settings))
    account = sink.account
    account.close(place.ledger, place.name)
    rows, dropped, rejected = account.sums
    return Written(
        place.name,
        place.named(names),
        rows,
        state.rows.height,
        dropped,
        rejected,
        created=len(account.made),
        replaced=account.replaced,
        tokens=account.tokens,
        trained_tokens=account.trained_tokens,
        exact=state.renderer is not None,
        lineage=account.lineage,
        notes=sft_trainer.notes(sink.masks, target, rendered=state.renderer is not None),
    )


def _about(rows: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """What a target may say of a run besides its conversation."""
    shown = ("id", "source", "domain", "task", "task_id", "trial", "reward", "success", "outcome", "model", "agent")
    return {row["id"]: row for row in rows.select(*shown, "license").iter_rows(named=True)}


def _lines(format_: targets.Target, shape: tuple[Col, ...]) -> tuple[Col, ...]:
    """The columns of JSON lines: a format that allows no others has its own alone."""
    return targets.columns(format_, "sft") if format_.strict else shape


def _take(sink: _Sink, row: Trainable | Lost) -> None:
    id_, account = row.run["id"], sink.account
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
    position = sink.place.positions[id_]
    odd = next(((m.turn, w) for m, w in zip(row.messages, weights, strict=True) if w not in (0.0, 1.0)), None)
    if odd is not None and not sink.format.fractional:  # told when all are known: parts do not say which is first
        sink.fractional.append((position, example, *odd))
        return
    about = {**sink.about[id_], "split": sink.place.splits[id_]}
    said = targets.row(sink.format, "sft", row.messages, row.tools, weights, about)
    if sink.format.name not in targets.CHATS and any(mark.weight and not mark.whole for mark in row.marks):
        said = "mask_not_expressible"  # only a mask over texts leaves out a part of a message
    if isinstance(said, str):
        account.reject(example, said)
        return
    account.keep(example, about["split"], row.n_tokens, row.n_trained)
    sink.masks.see(row)
    record = _record(row, example, about["split"]) | said
    if sink.target.loss.only_last and "messages" in said:
        record |= {"prompt": said["messages"][:-1], "completion": said["messages"][-1:]}
    sink.buckets.add(position * _WINDOWS + (row.window or 0), record)


_WINDOWS = 1 << 20  # more than the rows that any run is cut into: they stand where their run would


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


def _refuse_fractional(sink: _Sink) -> None:
    """A trainer with 0/1 masks cannot mean half a weight (semantics 31)."""
    if not sink.fractional:
        return
    _, id_, turn, weight = min(sink.fractional)
    raise CuratecError.of(
        "C0611",
        f"`{sink.target.format}` masks are 0 or 1, and turn {turn} of `{id_}` weighs {weight:g}",
        help=(
            f"{len(sink.fractional)} rows of `emit {sink.place.name}` have such a weight",
            "say which turns are trained with `loss on assistant where …`, how often a row stands with `mix`",
        ),
    )
