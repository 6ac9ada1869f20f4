"""`view agent`, `view user`: whose side is trained.

The other actor's calls go with their results, then turns of it that said nothing else. `view user` changes roles: what
the user says is the assistant's, and what the agent says to it is the user's; the agent's reasoning and tools are not
the user's to see. The system prompt stays, for the spec to say what the user knows.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.runtime.conversation.pairs import without_calls_of
from curatec.runtime.state import State
from curatec.runtime.steps.edits import Edit, Edited, Logged, edit_of, fewer_calls, run_edits
from curatec.runtime.steps.step import Place, apply
from curatec.runtime.tables import REQUESTOR, ROLE

_ROLE = pl.col("role").cast(pl.String)
_OTHER = {"assistant": "user", "user": "assistant"}


@edit_of.register
def _(operation: plan.View, place: Place) -> Edit:
    return lambda frames: _side(operation, frames)


@apply.register
def _(operation: plan.View, state: State, place: Place) -> State:
    after = run_edits(state, (replace(place, ahead=()),))  # what a template shows depends on the tools
    if operation.side == "user":
        after = after.with_column("toolset", pl.Series([None] * after.rows.height, dtype=pl.String))
    return after


def _side(operation: plan.View, frames: Frames) -> Edited:
    """A part as one side sees it."""
    turns = without_calls_of(frames.turns, "user" if operation.side == "agent" else "agent")
    dropped = Logged(frames, turns.filter("gone"), "dropped", {"n": 1})
    fewer = fewer_calls(turns, frames)
    stay = turns.filter(~pl.col("gone"))
    stay = _swapped(stay) if operation.side == "user" else stay
    return Edited(stay, dropped.turns.height + fewer.turns.height, (dropped, fewer))


def _swapped(turns: pl.DataFrame) -> pl.DataFrame:
    """The user's side as the assistant's."""
    calls = pl.col("calls").list.eval(pl.element().struct.with_fields(requestor=pl.lit("agent").cast(REQUESTOR)))
    return turns.with_columns(
        role=_ROLE.replace(_OTHER).cast(ROLE),
        calls=calls,
        reasoning=pl.when(_ROLE != "assistant").then("reasoning"),
    )
