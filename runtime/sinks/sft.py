"""`emit sft`: conversations with the exact text that is trained.

Weight of an assistant message: the source's weight × the spec's rule (`where` true 1, else 0; `weight E`, null 0) × 0
for copied context and, unless `including edited`, for a turn that `set` altered. `only last` keeps the last message
that would carry loss. A message whose text is all left out (`except reasoning`) weighs 0.

A row ends with its last trained message: what stands behind it carries no loss and is context for none, and targets
refuse a row that ends otherwise. How many messages that were is in the ledger (`edited`, `after_last_trained`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.compiler.types import Level
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.conversation import messages as m
from curatec.runtime.conversation.spans import Span, Trained, trained
from curatec.runtime.sinks import sft_trainer, trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import Buckets
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.written import Written

COLUMNS = (
    *COMMON,
    Col("messages", "objects", "the conversation; an assistant message with `weight` 0 is context only"),
    Col("tools", "objects", "schemas of the tools shown, null where none are known"),
    Col("turns", "ints", "the turn of the source that each message is, as `curatec why --turn` counts"),
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


def columns(target: plan.Sft) -> tuple[Col, ...]:
    """`only last` gives the halves as well: a trainer then knows the mask without any template."""
    return (*COLUMNS, *HALVES) if target.loss.only_last else COLUMNS


@dataclass
class _Sink:
    """One sink while it is written."""

    place: Place
    target: plan.Sft
    form: m.Form
    tools: m.Tools
    buckets: Buckets
    account: Account = field(default_factory=Account)
    masks: sft_trainer.Masks = field(default_factory=sft_trainer.Masks)
    fractional: list[tuple[int, str, int, float]] = field(default_factory=list)  # position, id, turn, weight


def write(place: Place, target: plan.Sft) -> Written:
    """Files, ledger rows and account of an sft sink."""
    form: m.Form = "openai" if target.format == "openai" else "trl"
    sink = _Sink(place, target, form, m.Tools(place.state.toolsets), Buckets(place.scratch))
    for _, frames in place.state.batches():
        _take(sink, frames)
    _refuse_fractional(sink)
    shape = columns(target)
    with Files(place.folder, shape) as files:
        for _, row in sink.buckets:
            files.add(row["split"], row)
    settings = sft_trainer.settings(target, sink.masks, trainer.files(files.names), shape, in_order=place.sorted)
    names = (*files.names, trainer.write(place.folder, settings))
    account = sink.account
    account.close(place.ledger, place.name)
    rows, dropped, rejected = account.sums
    return Written(
        place.name,
        place.named(names),
        rows,
        place.state.rows.height,
        dropped,
        rejected,
        tokens=account.tokens,
        trained_tokens=account.trained_tokens,
        notes=sft_trainer.notes(sink.masks, target),
    )


def _take(sink: _Sink, frames: Frames) -> None:
    """The rows of one part."""
    weights = turn_weights(frames, sink.target.loss)
    runs = frames.runs.select("id", "origin", "source", "license", "task", "toolset").to_dicts()
    for run, turns in zip(runs, m.by_run(m.turn_rows(frames.turns), len(runs)), strict=True):
        _row(sink, run, m.messages_of(turns, sink.form), weights)


def turn_weights(frames: Frames, loss: plan.Loss) -> Sequence[float]:
    """Loss weight of each turn of a batch, before `only last` and before what `except reasoning` leaves out."""
    rules = [
        frames.series(core, Level.TURN).fill_null(zero)
        for core, zero in ((loss.where, False), (loss.weight, 0))
        if core is not None
    ]
    weight = pl.col("loss_weight").cast(pl.Float64).fill_null(1.0)
    never = (pl.col("role").cast(pl.String) != "assistant") | pl.col("copied_context").fill_null(False)
    if not loss.including_edited:
        never = never | pl.col("edited")
    for rule in rules:
        weight = weight * pl.lit(rule).cast(pl.Float64)
    found: list[float] = frames.turns.select(weight=pl.when(never).then(0.0).otherwise(weight))["weight"].to_list()
    return found


def _row(sink: _Sink, run: dict[str, Any], shown: list[m.Message], weights: Sequence[float]) -> None:
    id_, target, account = run["id"], sink.target, sink.account
    if not shown:
        account.drop(id_, "no_turns")
        return
    if target.reasoning == "strip":
        shown = [m.without_reasoning(message) for message in shown]
    marked = [trained(message, _weight(weights, message, id_), target.loss) for message in shown]
    last = max((i for i, mark in enumerate(marked) if mark.weight), default=-1)
    if last < 0:
        account.drop(id_, "no_trained_text")
        return
    if target.loss.only_last:
        marked = [mark if i == last else mark.masked() for i, mark in enumerate(marked)]
    used, marked = shown[: last + 1], marked[: last + 1]
    tools, fault = sink.tools(run["toolset"])
    fault = m.fault_of(used, may_end_on_call=True) or fault
    if fault is not None:
        account.reject(id_, fault)
        return
    n_tokens = sum(message.tokens for message in used)
    if target.fit_tokens is not None and n_tokens > target.fit_tokens:
        account.drop(id_, "over_length")
        return
    position = sink.place.positions[id_]
    odd = next(
        (
            (message.turn, mark.weight)
            for message, mark in zip(used, marked, strict=True)
            if mark.weight not in (0.0, 1.0)
        ),
        None,
    )
    if odd is not None:
        sink.fractional.append((position, id_, *odd))
    account.cut[id_] = len(shown) - len(used)
    sink.masks.reasoning |= any(message.reasoning for message in used)
    sink.masks.see([mark for message, mark in zip(used, marked, strict=True) if message.role == "assistant"])
    record = _record(sink, run, list(zip(used, marked, strict=True)), n_tokens)
    sink.buckets.add(position, record | {"tools": tools})


def _weight(weights: Sequence[float], message: m.Message, id_: str) -> float:
    weight = weights[message.at]
    if weight < 0:
        raise CuratecError.of(
            "C0619",
            f"a loss weight is negative: {weight:g} for turn {message.turn} of `{id_}`",
            help="a weight is 0 or more: write `weight greatest(0, …)`",
        )
    return weight


def _record(sink: _Sink, run: dict[str, Any], used: list[tuple[m.Message, Trained]], n_tokens: int) -> dict[str, Any]:
    """The row without its tools."""
    split = sink.place.splits[run["id"]]
    n_trained = sum(mark.tokens for _, mark in used)
    sink.account.keep(run["id"], split, n_tokens, n_trained)
    texts = [
        m.json_of(message, sink.form, masked=message.role == "assistant" and not mark.weight) for message, mark in used
    ]
    record = {
        "example_id": run["id"],
        "parents": [run["origin"]],
        "source": run["source"],
        "license": run["license"],
        "task": run["task"],
        "split": split,
        "n_tokens": n_tokens,
        "n_trained": n_trained,
        "messages": texts,
        "turns": [message.turn for message, _ in used],
        "weights": [mark.weight for _, mark in used],
        "trained": [_span(i, span) for i, (_, mark) in enumerate(used) for span in mark.spans],
    }
    if sink.target.loss.only_last:
        record |= {"prompt": texts[:-1], "completion": texts[-1:]}
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
