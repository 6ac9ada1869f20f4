"""`decompose at E`: one row for each decision, which ends with it and trains nothing else (semantics 29).

Only an assistant's turn is a decision. The row's parent is replaced; a parent without any decision is dropped. The id
of a row is `parent#d<turn>`, with the turn's number in the source.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.compiler.types import Level
from curatec.runtime.conversation.context import in_context
from curatec.runtime.state import State
from curatec.runtime.steps.created import Made, add, children, portions, prefixes
from curatec.runtime.steps.step import Place, apply

OPERATOR = "decompose"


@apply.register
def _(operation: plan.Decompose, state: State, place: Place) -> State:
    parents = [pl.Series("parent", [], dtype=pl.String)]

    def made() -> Iterator[Made]:
        for _, frames in state.batches():
            for piece in _decisions(frames, operation):
                parents.append(piece.rows["parent"])
                yield piece

    everything = pl.repeat(True, state.rows.height, dtype=pl.Boolean, eager=True)
    after = add(state, place, OPERATOR, made(), replaced=everything)
    counts = pl.concat(parents).to_frame().group_by("parent").len("n")
    n = state.rows.select("id").join(counts, left_on="id", right_on="parent", how="left", maintain_order="left")["n"]
    place.drop(state.rows.filter(n.is_null())["id"], reason="no decision")
    place.ledger.add(
        state.rows.filter(n.is_not_null())["id"],
        "replaced",
        n=n.drop_nulls().cast(pl.Int64),
        reason=OPERATOR,
        **place.common(),
    )
    place.count(state, after, created=after.rows.height, replaced=int(n.is_not_null().sum()))
    return after


def _decisions(frames: Frames, operation: plan.Decompose) -> Iterator[Made]:
    """One row for each turn of a part that is chosen, with the turns up to it."""
    turns = frames.turns.with_columns(at=pl.int_range(pl.len(), dtype=pl.UInt32))
    chosen = frames.mask(operation.at, Level.TURN) & (turns["role"].cast(pl.String) == "assistant")
    decisions = turns.filter(chosen).select(
        "run",
        until="at",
        ordinal=pl.int_range(pl.len()).over("run"),
        suffix=pl.concat_str(pl.lit("#d"), pl.col("turn").cast(pl.String)),
    )
    for some in portions(turns, decisions):
        rows = children(frames.runs, some["run"], some["suffix"], some["ordinal"])
        shown = prefixes(turns, some)
        yield Made(rows, shown if operation.context is None else in_context(shown, operation.context))
