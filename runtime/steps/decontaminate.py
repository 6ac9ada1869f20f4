"""`decontaminate against SET [ngram N]`: what leaks a test set goes, with the evidence. The rules: `side/leaks.py`."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curatec.compiler import plan
from curatec.runtime.side import side_of
from curatec.runtime.side.leaks import Finder
from curatec.runtime.side.sealed import Sealed
from curatec.runtime.side.texts import texts_of
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place, apply

LEAKS = pl.Schema({"id": pl.String, "reason": pl.String, "evidence": pl.String})


@apply.register
def _(operation: plan.Decontaminate, state: State, place: Place) -> State:
    found = leaks(state, operation)
    place.drop(found["id"], key=found["evidence"], reason=found["reason"])
    after = state.keep(~state.rows["id"].is_in(found["id"].implode()))
    place.count(state, after)
    return after


def leaks(state: State, operation: plan.Decontaminate) -> pl.DataFrame:
    """The trajectories of a state that leak the set, each once: LEAKS, sorted by id.

    Also asked of what later steps made or changed, before anything is published: `leaks(state.keep(mask), operation)`.
    """
    sealed = side_of(state).sealed[operation.against]
    by_id = _by_id(state.rows, sealed)
    rest = state.keep(~state.rows["id"].is_in(by_id["id"].implode()))
    by_text = pl.DataFrame(list(_by_text(rest, Finder.of(sealed, operation.ngram))), schema=LEAKS, orient="row")
    return pl.concat([by_id, by_text]).sort("id")


def _by_id(rows: pl.DataFrame, sealed: Sealed) -> pl.DataFrame:
    ids = sealed.items["id"].drop_nulls().implode()
    named = pl.when(pl.col("task_id").is_in(ids)).then("task_id").when(pl.col("task").is_in(ids)).then("task")
    return rows.select("id", reason=pl.lit("test_id"), evidence=named).drop_nulls("evidence").cast(LEAKS)


def _by_text(state: State, finder: Finder) -> Iterator[tuple[str, str, str]]:
    if not finder.items or state.rows.is_empty():
        return
    for _, frames in state.batches():
        ids = frames.runs["id"]
        for run, leak in finder.find(texts_of(frames, finder.ngram)).items():
            yield ids[run], leak.reason, leak.evidence
