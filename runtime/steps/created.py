"""Rows that a step makes from others, and where each came from (semantics 28, 29).

A made row has the narrow columns of its parent, and turns of its own in a part of its own. Its id is its
parent's with a suffix; draws about it go by that id, so that rows of one parent are drawn apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from curatec.runtime.ledger import LINEAGE
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place

_PORTION = 32 << 20  # bytes of turns that are made at once: prefixes are many times what they are made of
_TURN = 256  # bytes of a turn besides its texts


@dataclass(frozen=True)
class Made:
    """Rows made from those of one part. `rows` are the state's columns with `parent` and `ordinal`; `turns` are TURNS
    and `edited`, sorted by (row, turn), with `row` as `rows` has it, and perhaps `run`."""

    rows: pl.DataFrame
    turns: pl.DataFrame


def children(runs: pl.DataFrame, parents: pl.Series, suffixes: pl.Series, ordinals: pl.Series) -> pl.DataFrame:
    """Rows for some parents (positions in `runs`), numbered from 0: what `Made.rows` wants."""
    made = runs[parents].with_columns(parent="id", suffix=suffixes, ordinal=ordinals.cast(pl.Int32))
    return made.with_columns(
        id=pl.concat_str("id", "suffix"),
        digest=pl.concat_str("id", "suffix"),
        row=pl.int_range(pl.len(), dtype=pl.UInt32),
    ).drop("suffix")


def portions(turns: pl.DataFrame, ends: pl.DataFrame) -> list[pl.DataFrame]:
    """Parts of `ends`, in order, whose `prefixes` are of bounded size; none where there are no ends."""
    texts = (pl.col(name).str.len_bytes().fill_null(0) for name in ("content", "reasoning"))
    calls = pl.col("calls").list.eval(pl.element().struct.field("args_json").str.len_bytes()).list.sum().fill_null(0)
    size = pl.sum_horizontal(*texts, calls).cast(pl.Int64) + _TURN
    prefix = turns.select(size.cum_sum().over("run")).to_series().gather(ends["until"])
    numbered = ends.with_columns(portion=prefix.cum_sum() // _PORTION)
    return [part.drop("portion") for part in numbered.partition_by("portion", maintain_order=True)]


def prefixes(turns: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """The turns of rows that end with a turn of their parent, which alone carries loss.

    `turns` are those of a part with `at`, their position; `ends` has one row for each row to make, in order, with `run`
    and `until`, the position of its last turn. `run` and `row` of the result are the position in `ends`.
    """
    rows = ends.select("run", "until", made=pl.int_range(pl.len(), dtype=pl.UInt32))
    shown = turns.join(rows, on="run", how="inner").filter(pl.col("at") <= pl.col("until"))
    shown = shown.sort("made", "at").with_columns(
        loss_weight=pl.when(pl.col("at") == pl.col("until")).then("loss_weight").otherwise(pl.lit(0.0, pl.Float32)),
        run="made",
        row="made",
    )
    return shown.drop("at", "until", "made")


def add(state: State, place: Place, operator: str, made: Iterable[Made], replaced: pl.Series | None = None) -> State:
    """The state with the made rows behind the others, and without those that they replace (a mask over its rows)."""
    turns, new = state.turns, []
    for piece in made:
        if piece.rows.is_empty():
            continue
        part = len(turns.parts)
        turns = turns.written(part, piece.turns.drop("run", strict=False), place.file(part))
        new.append(piece.rows.with_columns(part=pl.lit(part, dtype=pl.UInt32)))
    before = state.edited(turns)
    stay = before.rows if replaced is None else before.rows.filter(~replaced)
    created = pl.concat(new) if new else stay.clear().with_columns(parent="id", ordinal=pl.lit(0, pl.Int32))
    _log(created, place, operator)
    # What a step wrote anew of the parent's record, such as a redacted text, holds for its rows as well.
    anew = {id_: state.rewritten[by] for id_, by in created.select("id", "parent").iter_rows() if by in state.rewritten}
    rows = pl.concat([stay, created.select(stay.columns)])
    return replace(before, rows=rows, rewritten={**state.rewritten, **anew} if anew else state.rewritten)


def _log(created: pl.DataFrame, place: Place, operator: str) -> None:
    place.ledger.add(created["id"], "created", key=created["parent"], reason=operator, **place.common())
    named = {"out": pl.col("id"), "in": pl.col("parent"), "operator": pl.lit(operator), "ordinal": pl.col("ordinal")}
    place.ledger.lineage.append(created.select(named[name].cast(dtype).alias(name) for name, dtype in LINEAGE.items()))
