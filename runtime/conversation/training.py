"""Trajectories → the rows that an sft sink trains: messages, weights, what is trained of each, how many tokens.

Weight of an assistant message: the source's weight × the spec's rule (`where` true 1, else 0; `weight E`, null 0) × 0
for copied context and, unless `including edited`, for a turn that a step or the context of the row altered. `only last`
keeps the last message that would carry loss. A message whose text is all left out (`except reasoning`) weighs 0.

A row ends with its last trained message: what stands behind it carries no loss and is context for none, and targets
refuse a row that ends otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.compiler.passes.projection import turn_columns_of
from curatec.compiler.types import Level
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.conversation import messages as m
from curatec.runtime.conversation.context import in_context
from curatec.runtime.conversation.fit import cut_oldest, windows
from curatec.runtime.conversation.regular import Regular, regular
from curatec.runtime.conversation.spans import Trained, trained
from curatec.runtime.state import State

if TYPE_CHECKING:
    from curatec.runtime.rendering import Rendered

RUN_COLUMNS = ("id", "origin", "source", "license", "task", "toolset")
_CHANGED = "sink:changed"  # beside them while a row is made
_PORTION = 256  # runs
_TURN_COLUMNS = m.TURN_COLUMNS | {"loss_weight", "copied_context", "edited"}  # whatever the rule reads


@dataclass(frozen=True, slots=True)
class Trainable:
    """One row. `edited` says what was left out of its run, or of what is trained: reason → how many messages.
    `window`: its number among the rows that its run was cut into, null where it is the whole row."""

    run: dict[str, Any]
    messages: tuple[m.Message, ...]
    marks: tuple[Trained, ...]
    tools: list[str] | None
    n_tokens: int
    n_trained: int
    rendered: Rendered | None = None
    edited: dict[str, int] = field(default_factory=dict)
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A run that gives no row. `rejected`: the target cannot say it; else a rule of the sink drops it."""

    run: dict[str, Any]
    reason: str
    rejected: bool = False
    edited: dict[str, int] = field(default_factory=dict)
    detail: str | None = None  # how long it is


def trained_tokens(state: State, target: plan.Sft, form: m.Form) -> dict[str, int]:
    """id → how many tokens a sink trains of a run; of one that gives no row there is no entry."""
    maker = Maker(state, target, form)

    def counted(_: int, frames: Frames) -> Counter[str]:
        batch, found = maker.batch(frames), Counter[str]()
        for row in batch.odd:
            if isinstance(row, Trainable):
                found[row.run["id"]] += row.n_trained
        if batch.regular is not None:
            told = batch.regular.told
            found.update(dict(zip(frames.runs["id"].gather(told["run"]), told["n_trained"], strict=True)))
        return found

    return sum(state.map_batches(counted, maker.columns), Counter[str]())


# ---- weights ----


def turn_weights(frames: Frames, loss: plan.Loss) -> pl.Series:
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
    return frames.turns.select(weight=pl.when(never).then(0.0).otherwise(weight))["weight"]


def _shown(frames: Frames, target: plan.Sft) -> pl.DataFrame:
    """The turns that rows are made of, each with its `weight`. A turn whose calls the context leaves out is not what
    the source said: it is an edited one."""
    turns = frames.turns.with_columns(weight=turn_weights(frames, target.loss))
    if target.context is not None:
        said = pl.col("calls").list.len()
        turns = turns.with_columns(at=pl.int_range(pl.len()), said=said)
        last = pl.col("at").filter(pl.col("weight") > 0).last().over("run")
        turns = in_context(turns.filter((pl.col("at") <= last) | last.is_null()), target.context)
        if not target.loss.including_edited:
            turns = turns.with_columns(weight=pl.when(said == pl.col("said")).then("weight").otherwise(0.0))
        turns = turns.drop("at", "said")
    return turns


# ---- rows ----


@dataclass(frozen=True, slots=True)
class Batch:
    """What becomes of the runs of a part: of the regular ones by columns, of the others one by one, in order, made as
    they are asked for. `changed`: how many assistant turns of each run carry no loss because a step altered them."""

    regular: Regular | None
    odd: Iterator[Trainable | Lost]
    changed: pl.Series


class Maker:
    """Makes the rows of one sink. `about` are the columns that `Trainable.run` has; with `one_by_one`, no run counts as
    regular. It remembers nothing but schemas that were read: several threads may use it, a renderer apart."""

    def __init__(
        self,
        state: State,
        target: plan.Sft,
        form: m.Form,
        about: Sequence[str] = RUN_COLUMNS,
        *,
        one_by_one: bool = False,
    ) -> None:
        self._state = state
        self._target = target
        self._form = form
        self._about = about
        self._one_by_one = one_by_one or state.renderer is not None
        self.tools = m.Tools(state.toolsets)
        rules = [core for core in (target.loss.where, target.loss.weight) if core is not None]
        self.columns = turn_columns_of(rules, Level.TURN) | _TURN_COLUMNS

    def batch(self, frames: Frames) -> Batch:
        """The rows of one part."""
        turns = _shown(frames, self._target)
        found: Regular | None = None
        odd = pl.repeat(True, frames.runs.height, dtype=pl.Boolean, eager=True)
        if not self._one_by_one:
            found = regular(turns, frames.runs["toolset"], self._target, self._form, self.tools)
            odd = found.runs["odd"]
        changed = self._changed(frames)
        runs = frames.runs.select(self._about).with_columns(changed.alias(_CHANGED)).filter(odd)
        turns = turns.filter(odd.gather(turns["run"]))
        turns = turns.with_columns(run=(odd.cum_sum() - 1).gather(turns["run"]))
        return Batch(found, self._rows(runs, turns), changed)

    def _rows(self, runs: pl.DataFrame, turns: pl.DataFrame) -> Iterator[Trainable | Lost]:
        """The rows of some runs, one by one. As Python objects turns take many times their room: a few at a time."""
        for start in range(0, runs.height, _PORTION):
            own = turns.filter(pl.col("run").is_between(start, start + _PORTION, closed="left"))
            weights = own["weight"].to_list()
            grouped = m.by_run(m.turn_rows(own.with_columns(pl.col("run") - start)), _PORTION)
            drafts = [
                _told(self._draft(run, shown, weights), run.pop(_CHANGED))
                for run, shown in zip(runs[start : start + _PORTION].to_dicts(), grouped, strict=False)
            ]
            for draft in self._counted(drafts):
                yield from self._fitted(draft) if isinstance(draft, Trainable) else (draft,)

    def _changed(self, frames: Frames) -> pl.Series:
        if self._target.loss.including_edited:
            return pl.repeat(0, frames.runs.height, dtype=pl.Int64, eager=True)
        lost = (pl.col("role").cast(pl.String) == "assistant") & pl.col("edited") & (pl.col("loss_weight") > 0)
        counts = frames.turns.filter(lost).group_by("run").agg(changed=pl.len().cast(pl.Int64))
        runs = pl.DataFrame({"run": pl.int_range(frames.runs.height, dtype=pl.UInt32, eager=True)})
        return runs.join(counts, on="run", how="left", maintain_order="left")["changed"].fill_null(0)

    def _draft(self, run: dict[str, Any], turns: list[dict[str, Any]], weights: Sequence[float]) -> Trainable | Lost:
        """The row of a run before anything is counted."""
        shown = m.messages_of(turns, self._form)
        if not shown:
            return Lost(run, "no_turns")
        given = [_weight(weights, message, run["id"]) for message in shown]
        shown, marks = self._marked(shown, given)
        last = max((i for i, mark in enumerate(marks) if mark.weight), default=-1)
        if last < 0:
            return Lost(run, "no_trained_text")
        if self._target.loss.only_last:
            marks = [mark if i == last else mark.masked() for i, mark in enumerate(marks)]
        tools, fault = self.tools(run["toolset"])
        used = shown[: last + 1]
        fault = m.fault_of(used, may_end_on_call=True) or fault
        if fault is not None:
            return Lost(run, fault, rejected=True)
        behind = len(shown) - len(used)
        edited = {"after_last_trained": behind} if behind else {}
        return Trainable(run, tuple(used), tuple(marks[: last + 1]), tools, 0, 0, edited=edited)

    def _marked(self, shown: list[m.Message], weights: list[float]) -> tuple[list[m.Message], list[Trained]]:
        """The messages with the reasoning that is shown, and what is trained of each."""
        loss = self._target.loss
        if self._target.reasoning == "strip":
            shown = [m.without_reasoning(message) for message in shown]
        marks = [trained(message, weight, loss) for message, weight in zip(shown, weights, strict=True)]
        if self._target.reasoning == "last":
            last = max((i for i, mark in enumerate(marks) if mark.weight), default=len(shown))
            shown = [m.without_reasoning(message) if i < last else message for i, message in enumerate(shown)]
            marks = [trained(message, weight, loss) for message, weight in zip(shown, weights, strict=True)]
        return shown, marks

    # ---- tokens ----

    def _counted(self, drafts: Sequence[Trainable | Lost]) -> Iterator[Trainable | Lost]:
        """The drafts with their tokens, in order. Without `render` they are estimated, tool schemas apart."""
        renderer = self._state.renderer
        if renderer is None:
            for draft in drafts:
                yield _estimated(draft) if isinstance(draft, Trainable) else draft
            return
        found = renderer.render_many(self._asked(d) for d in drafts if isinstance(d, Trainable))
        for draft in drafts:
            yield self._rendered(draft, next(found)) if isinstance(draft, Trainable) else draft

    def _asked(self, row: Trainable) -> Any:
        from curatec.runtime.rendering import Row

        shown = row.messages if self._form == "trl" else [m.as_objects(message) for message in row.messages]
        return Row(shown, row.tools, row.marks, self._target.loss.except_reasoning)

    def _rendered(self, draft: Trainable, found: Rendered | str) -> Trainable | Lost:
        if isinstance(found, str):
            return Lost(draft.run, found, rejected=True, edited=draft.edited)
        return replace(draft, n_tokens=found.n_tokens, n_trained=found.n_trained, rendered=found)

    # ---- length ----

    def _fitted(self, row: Trainable) -> Iterator[Trainable | Lost]:
        most = self._target.fit_tokens
        if most is None or row.n_tokens <= most:
            yield row
            return

        def part(positions: Sequence[int], start: int = 0) -> Trainable:
            marks = tuple(row.marks[i] if i >= start else row.marks[i].masked() for i in positions)
            return replace(row, messages=tuple(row.messages[i] for i in positions), marks=marks)

        def fits(positions: Sequence[int]) -> bool:
            made = next(self._counted([part(positions)]))
            return isinstance(made, Trainable) and made.n_tokens <= most

        match self._target.overflow:
            case "cut":
                yield self._cut(row, cut_oldest(row.messages, fits), part)
            case "window":
                found = windows(row.messages, [bool(mark.weight) for mark in row.marks], fits)
                yield from self._windows(row, [part(*window) for window in found])
            case _:
                yield _too_long(row)

    def _cut(self, row: Trainable, kept: list[int] | None, part: Any) -> Trainable | Lost:
        if kept is None:
            return _too_long(row)
        edited = {**row.edited, "cut_to_fit": len(row.messages) - len(kept)}
        return next(self._counted([replace(part(kept), edited=edited)]))

    def _windows(self, row: Trainable, parts: list[Trainable]) -> Iterator[Trainable | Lost]:
        made = [part for part in self._counted(parts) if isinstance(part, Trainable)]
        if not made:
            yield _too_long(row)
        trained_now = sum(bool(mark.weight) for part in made for mark in part.marks)
        too_long = sum(bool(mark.weight) for mark in row.marks) - trained_now
        edited = {**row.edited, **({"over_length": too_long} if too_long else {})}
        for number, part in enumerate(made):
            yield replace(part, window=number, edited=edited if number == 0 else {})


def _told(draft: Trainable | Lost, changed: int) -> Trainable | Lost:
    return replace(draft, edited={**draft.edited, "changed_by_steps": changed}) if changed else draft


def _too_long(row: Trainable) -> Lost:
    return Lost(row.run, "over_length", edited=row.edited, detail=f"{row.n_tokens} tokens")


def _estimated(draft: Trainable) -> Trainable:
    n_tokens = sum(message.tokens for message in draft.messages)
    return replace(draft, n_tokens=n_tokens, n_trained=sum(mark.tokens for mark in draft.marks))


def _weight(weights: Sequence[float], message: m.Message, id_: str) -> float:
    weight = weights[message.at]
    if weight < 0:
        raise CuratecError.of(
            "C0619",
            f"a loss weight is negative: {weight:g} for turn {message.turn} of `{id_}`",
            help="a weight is 0 or more: write `weight greatest(0, …)`",
        )
    return weight
