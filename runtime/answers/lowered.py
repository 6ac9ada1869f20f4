"""What an engine runs for a step: SQL for DuckDB, expressions for polars, as far as the step is an engine's work.

A step asks for values, perhaps compares rows by them, and what it does with the outcome is the same whatever the
engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from curatec.compiler import plan, polars_text
from curatec.compiler.core import Core, Order, Window, children
from curatec.compiler.duckdb import layout, rows, sql
from curatec.compiler.duckdb.spelling import name as name_in_sql
from curatec.compiler.types import Level
from curatec.runtime.answers.core_text import core_text
from curatec.runtime.steps.split import bounds

Asked = Sequence[tuple[str, Core]]
_PLACE = {
    Level.TRAJECTORY: "over the rows",
    Level.TURN: "over the turns of each part",
    Level.TOOL: "over the tools of each part",
}


@dataclass(frozen=True, slots=True)
class Work:
    """Named expressions of a level, how rows are compared by them (by engine), and what follows."""

    asked: Asked = ()
    level: Level = Level.TRAJECTORY
    compared: Mapping[str, str] = field(default_factory=dict)
    then: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text in an engine's own language, and what it is for."""

    purpose: str
    text: str


# ---- steps ----


@singledispatch
def work(operation: Any) -> Work:
    """A step that one kernel does for every engine."""
    return Work(then="one kernel for every engine, over the turns of each part")


@work.register
def _(o: plan.Filter) -> Work:
    return Work((("holds", o.where),), then=f"rows where it is true {'stay' if o.verb == 'keep' else 'go'}")


@work.register
def _(o: plan.Derive) -> Work:
    return Work(((o.name, o.value),), then="a column of the rows")


@work.register
def _(o: plan.Tag) -> Work:
    return Work(o.families, then="`failure` is the first of them that is true")


@work.register
def _(o: plan.Sort) -> Work:
    return Work(_named((), o.by), then="columns by which sinks write")


@work.register
def _(o: plan.Sample) -> Work:
    if o.share is not None:
        return Work(_named(o.per), then="rows whose draw, a hash of seed and digest, is below the share stay")
    return Work(_named(o.per), compared=_places(o.per, [False]), then=f"by the draw `o0`, places below {o.count} stay")


@work.register
def _(o: plan.Limit) -> Work:
    compared = _places(o.per, [one.descending for one in o.order])
    return Work(_named(o.per, o.order), compared=compared, then=f"places below {o.count} stay")


@work.register
def _(o: plan.LimitEach) -> Work:
    compared = _places((), [one.descending for one in o.order])
    return Work((("list", o.each), *_named((), o.order)), compared=compared, then="row by row, in this order")


@work.register
def _(o: plan.Mix) -> Work:
    return Work(compared=_places((), [False]), then="row by row, in the order of the draw `o0`")


@work.register
def _(o: plan.Dedup) -> Work:
    compared = _leaders(o.on, [one.descending for one in o.best])
    return Work(_named(o.on, o.best), compared=compared, then="rows that lead their group stay")


@work.register
def _(o: plan.DedupNear) -> Work:
    asked = (("text", o.on), *((f"over{i}", core) for i, core in enumerate(o.over)), *_named((), o.best))
    compared = _leaders((o.on,), [one.descending for one in o.best])
    return Work(asked, compared=compared, then="`k0` is a component of likeness, from one kernel; its leader stays")


@work.register
def _(o: plan.Split) -> Work:
    cut = bounds(o.shares)
    rest = o.shares[-1][0]
    shown = "".join(f'when(col("draw") < {bound}).then("{name}").' for bound, name in cut)
    compared = {"duckdb": rows.allot(cut, rest), "polars": f'part = {shown}otherwise("{rest}")'}
    return Work((("key", o.by),), compared=compared, then="`draw` is a hash of seed and key")


@work.register
def _(o: plan.Join) -> Work:
    names = [name for name, _ in o.columns]
    compared = {
        "duckdb": rows.look_up([name_in_sql(name) for name in names]),
        "polars": f'rows.join({o.table}, on="key", how="left", validate="m:1")',
    }
    return Work((("key", o.on),), compared=compared, then=f"`beside` is the table `{o.table}`")


@work.register
def _(o: plan.TurnsFilter | plan.TurnsCut) -> Work:
    return Work((("holds", o.where),), Level.TURN, then="one pass over each part takes turns out")


@work.register
def _(o: plan.TurnsSet) -> Work:
    where = () if o.where is None else (("holds", o.where),)
    return Work(((o.field, o.value), *where), Level.TURN, then="one pass over each part writes the turns anew")


@work.register
def _(o: plan.ToolsFilter) -> Work:
    return Work((("holds", o.where),), Level.TOOL, then="schemas are taken out of the lists of tools")


@work.register
def _(o: plan.Decompose) -> Work:
    return Work((("holds", o.at),), Level.TURN, then="one kernel makes a row of each such turn")


@work.register
def _(o: plan.Sft) -> Work:
    told = (("trained", o.loss.where), ("weight", o.loss.weight))
    return Work(tuple((name, core) for name, core in told if core is not None), Level.TURN)


@work.register
def _(o: plan.Memory) -> Work:
    return Work((("key", o.key), ("value", o.value)))


@work.register
def _(o: plan.Preference) -> Work:
    margin = () if o.margin is None else (("margin", o.margin),)
    return Work((*_named(o.within), ("chosen", o.chosen), ("rejected", o.rejected), *margin))


@work.register
def _(o: plan.Rl) -> Work:
    return Work()


def _named(keys: Sequence[Core], order: Sequence[Order] = ()) -> Asked:
    """Keys as `k0`, `k1`, …, what orders rows as `o0`, `o1`, …"""
    return (*((f"k{i}", key) for i, key in enumerate(keys)), *((f"o{i}", o.value) for i, o in enumerate(order)))


def _places(keys: Sequence[Core], descending: Sequence[bool]) -> dict[str, str]:
    """Places by some orders, and last by id, in the groups of some keys."""
    shown = f"{_sorted(descending)}.with_columns(place=int_range(len()){_over(keys)})"
    return {"duckdb": rows.places(len(keys), [*descending, False]), "polars": shown}


def _leaders(keys: Sequence[Core], descending: Sequence[bool]) -> dict[str, str]:
    shown = f'{_sorted(descending)}.with_columns(leader=col("at").first(){_over(keys)})'
    return {"duckdb": rows.leaders(len(keys), [*descending, False]), "polars": shown}


def _sorted(descending: Sequence[bool]) -> str:
    by = ", ".join(f'"o{i}"' for i in range(len(descending) + 1))
    return f"rows.sort({by}, descending={[*descending, False]}, nulls_last=True)"


def _over(keys: Sequence[Core]) -> str:
    names = ", ".join(f'"k{i}"' for i in range(len(keys)))
    return f".over({names})" if keys else ""


# ---- in an engine's language ----


def lowered(
    operation: plan.Operation | plan.Target, measured: Sequence[Core], known: Collection[Core], engine: str
) -> list[Piece]:
    """What runs for a step. `measured`: what it reads from turns first, each a column of the rows afterwards; `known`:
    what earlier steps measured."""
    before = {core: core_text(core) for core in known if core not in measured}
    pieces = list(
        _values([(core_text(core), core) for core in measured], Level.TRAJECTORY, before, engine, "of each part")
    )
    done = work(operation)
    after = before | {core: core_text(core) for core in measured}
    pieces += _values(done.asked, done.level, after, engine, _PLACE[done.level])
    if engine in done.compared:
        shown = done.compared[engine]
        text = layout.laid_out(shown) if engine == "duckdb" else shown
        pieces.append(Piece("rows compared; the last order is the id", text))
    return [*pieces, Piece(done.then, "")] if done.then else pieces


def _values(asked: Asked, level: Level, known: Mapping[Core, str], engine: str, purpose: str) -> list[Piece]:
    if not asked:
        return []
    there = [f"{name} is `{core_text(core, level)}`" for name, core in asked if core in known]
    pieces = [Piece(f"measured before: {', '.join(there)}", "")] if there else []
    left = [(name, core) for name, core in asked if core not in known]
    if engine == "polars":
        lines = polars_text.lines(left, level, known, core_text)
        return [*pieces, Piece(purpose, "\n".join(lines))] if lines else pieces
    names = {core: name for name, core in left}
    names |= {arg: core_text(arg, level) for _, core in left if sql.is_key(core) for arg in children(core)}
    for step in sql.plan([core for _, core in left], level, sql.Setting(known, names=names)):
        if isinstance(step, sql.Statement):
            pieces.append(Piece(purpose, layout.laid_out(step.sql)))
        elif isinstance(step[1], Window):
            pieces.append(_window(step[1]))
        else:
            pieces.append(Piece(f"`{core_text(step[1], level)}`: the hash of what was computed, by one kernel", ""))
    return pieces


def _window(window: Window) -> Piece:
    columns = [f"k{i} is {core_text(key)}" for i, key in enumerate(window.keys)]
    columns += [] if window.argument is None else [f"x is {core_text(window.argument)}"]
    text = rows.window(window.function, window.type, len(window.keys), descending=window.descending)
    return Piece(", ".join([core_text(window), *columns]), layout.laid_out(text))
