"""Plan operations over lists of trajectories (dicts): rows out, and what the ledger says.

`Run` holds the rows and the entries; `apply` does one step. Rows are copied where a step changes them, so that sinks
can start from the same shared rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key, singledispatch
from typing import Any

from curatec.compiler import plan
from curatec.compiler.core import Core, Order
from curatec.compiler.types import Type
from tests.reference import near
from tests.reference.interpreter import Interpreter, Row, Spot, numbered
from tests.reference.values import draw, key, threshold

Entry = dict[str, Any]


class Failed(Exception):
    """A step that fails the compile; the code of its diagnostic."""


@dataclass
class Log:
    """What the ledger gets: rows, and one count a step."""

    entries: list[Entry] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Where:
    """One step at its place."""

    step: plan.Step
    position: int
    sink: str | None
    log: Log

    def add(self, row: Row, action: str, **more: Any) -> None:
        entry = dict.fromkeys(("turn", "key", "predicate_null", "survivor", "n"))
        own = {"traj_id": row["id"], "sink": self.sink, "step": self.position, "label": self.step.label}
        self.log.entries.append({**entry, **own, "action": action, "reason": self.step.because, **more})


def run(steps: Sequence[plan.Step], rows: list[Row], sink: str | None, first: int, log: Log) -> list[Row]:
    """Steps in written order (semantics 1)."""
    for position, step in enumerate(steps, first):
        where = Where(step, position, sink, log)
        before, count = len(rows), {"edited": 0, "predicate_null": 0, "null_key": 0}
        rows = apply(step.operation, rows, where, count)
        log.counts.append({"label": step.label, "sink": sink, "entered": before, "left": len(rows), **count})
    return rows


@singledispatch
def apply(operation: Any, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    raise AssertionError(operation)


def _values(rows: Sequence[Row], core: Core) -> list[Any]:
    told = Interpreter(rows)
    return [told.value(core, Spot(row)) for row in rows]


# ---- order and groups (semantics 12, 13) ----


def ordered(rows: Sequence[Row], orders: Sequence[Order], values: Sequence[Sequence[Any]]) -> list[int]:
    """Positions of rows: by the orders, nulls last both ways, then by id."""

    def compare(a: int, b: int) -> int:
        for order, column in zip(orders, values, strict=True):
            x, y = column[a], column[b]
            if x is None or y is None:
                if (x is None) != (y is None):
                    return 1 if x is None else -1
            elif x != y:
                return (1 if x > y else -1) * (-1 if order.descending else 1)
        return -1 if rows[a]["id"] < rows[b]["id"] else 1

    return sorted(range(len(rows)), key=cmp_to_key(compare))


def _groups(rows: Sequence[Row], keys: Sequence[Core], turn: Sequence[int]) -> dict[tuple[Any, ...], list[int]]:
    """Positions of each group in a given order; rows with a null key are in none."""
    columns = [_values(rows, k) for k in keys]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i in turn:
        values = tuple(tuple(c[i]) if isinstance(c[i], list) else c[i] for c in columns)
        if None not in values:
            groups.setdefault(values, []).append(i)
    return groups


# ---- filters and quotas ----


@apply.register
def _(operation: plan.Filter, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    kept = []
    for row, value in zip(rows, _values(rows, operation.where), strict=True):
        count["predicate_null"] += value is None
        if (value is True) == (operation.verb == "keep"):
            kept.append(row)
        else:
            where.add(row, "dropped", predicate_null=value is None)
    return kept


@apply.register
def _(operation: plan.Dedup, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    turn = ordered(rows, operation.best, [_values(rows, o.value) for o in operation.best])
    groups = _groups(rows, operation.on, turn)
    times = [k.type is Type.TIME for k in operation.on]
    gone: set[int] = set()
    for values, members in groups.items():
        for i in members[1:]:
            gone.add(i)
            made = key([list(v) if isinstance(v, tuple) else v for v in values], times)
            reason = where.step.because or "duplicate"
            where.add(rows[i], "dropped", key=made, survivor=rows[members[0]]["id"], reason=reason)
    count["null_key"] = len(rows) - sum(map(len, groups.values()))
    return [row for i, row in enumerate(rows) if i not in gone]


@apply.register
def _(operation: plan.DedupNear, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    texts = _values(rows, operation.on)
    keyed = {i: values for values, members in _groups(rows, operation.over, range(len(rows))).items() for i in members}
    names = near.components(
        len(rows), near.near_pairs(texts, operation.threshold, [keyed.get(i) for i in range(len(rows))])
    )
    survivors: dict[int, int] = {}
    gone: set[int] = set()
    for i in ordered(rows, operation.best, [_values(rows, o.value) for o in operation.best]):
        best = survivors.setdefault(names[i], i)
        if i != best:
            gone.add(i)
            likeness = near.jaccard(near.shingles(texts[i]), near.shingles(texts[best]))
            shown_ = f"{likeness:.2f}" if likeness >= operation.threshold else "chain"
            reason = where.step.because or "near duplicate"
            where.add(rows[i], "dropped", key=shown_, survivor=rows[best]["id"], reason=reason)
    count["null_key"] = sum(i not in keyed or not near.shingles(text) for i, text in enumerate(texts))
    return [row for i, row in enumerate(rows) if i not in gone]


def _first_ones(
    rows: list[Row], keys: Sequence[Core], turn: Sequence[int], most: int, count: dict[str, int]
) -> dict[int, tuple[Any, ...]]:
    """The rows beyond the first `most` of each group, with their key."""
    groups = _groups(rows, keys, turn)
    count["null_key"] = len(rows) - sum(map(len, groups.values()))
    return {i: values for values, members in groups.items() for i in members[most:]}


@apply.register
def _(operation: plan.Limit, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    turn = ordered(rows, operation.order, [_values(rows, o.value) for o in operation.order])
    gone = _first_ones(rows, operation.per, turn, operation.count, count)
    for i, values in gone.items():
        where.add(rows[i], "dropped", key=shown(values), reason=where.step.because or "over the limit")
    return [row for i, row in enumerate(rows) if i not in gone]


def shown(values: tuple[Any, ...]) -> str | None:
    """Keys as one text."""
    return " · ".join(", ".join(v) if isinstance(v, tuple) else as_text(v) for v in values) if values else None


def as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@apply.register
def _(operation: plan.Sample, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    draws = [draw("sample", operation.seed, row["digest"]) for row in rows]
    if operation.count is not None:
        turn = sorted(range(len(rows)), key=lambda i: (draws[i], rows[i]["id"]))
        gone = set(_first_ones(rows, operation.per, turn, operation.count, count))
    else:
        assert operation.share is not None
        in_groups = {i for g in _groups(rows, operation.per, range(len(rows))).values() for i in g}
        count["null_key"] = len(rows) - len(in_groups)
        gone = {i for i in in_groups if draws[i] >= threshold(operation.share)}
    for i in gone:
        where.add(rows[i], "dropped", reason=where.step.because or "not drawn")
    return [row for i, row in enumerate(rows) if i not in gone]


# ---- columns, order, split ----


@apply.register
def _(operation: plan.Derive, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    values = _values(rows, operation.value)
    return [{**row, operation.name: value} for row, value in zip(rows, values, strict=True)]


@apply.register
def _(operation: plan.Tag, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)
    found = [[name for name, core in operation.families if told.holds(core, Spot(row))] for row in rows]
    return [{**row, "failure": names[0] if names else None} for row, names in zip(rows, found, strict=True)]


@apply.register
def _(operation: plan.Sort, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    values = [_values(rows, order.value) for order in operation.by]
    return [{**row, "order": (operation.by, [column[i] for column in values])} for i, row in enumerate(rows)]


def written(rows: Sequence[Row]) -> list[Row]:
    """The order in which a sink writes: by `sort by`, else by task; then by id."""
    if rows and "order" in rows[0]:
        orders = rows[0]["order"][0]
        values = [[row["order"][1][i] for row in rows] for i in range(len(orders))]
        return [rows[i] for i in ordered(rows, orders, values)]
    return sorted(rows, key=lambda row: (row["task"], row["id"]))


@apply.register
def _(operation: plan.Split, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    keys = [_split_key(value, row) for value, row in zip(_values(rows, operation.by), rows, strict=True)]
    by_task: dict[str, set[str]] = {}
    for row, text in zip(rows, keys, strict=True):
        by_task.setdefault(row["task"], set()).add(text)
    if any(len(found) > 1 for found in by_task.values()):
        raise Failed("C0413")
    if operation.near is not None and operation.near_threshold is not None:
        keys = _united(keys, near.near_pairs(_values(rows, operation.near), operation.near_threshold))
    parts = [_part(draw("split", operation.seed, text), operation.shares) for text in keys]
    if rows and set(parts) != {name for name, _ in operation.shares}:
        raise Failed("C0609")
    return [{**row, "split": part} for row, part in zip(rows, parts, strict=True)]


def _united(keys: list[str], pairs: set[tuple[int, int]]) -> list[str]:
    """Near texts and equal keys stay together, under the lowest of their keys."""
    same = {(i, keys.index(key)) for i, key in enumerate(keys)}
    names = near.components(len(keys), pairs | same)
    return [min(key for key, other in zip(keys, names, strict=True) if other == name) for name in names]


def _split_key(value: Any, row: Row) -> str:
    if isinstance(value, list):
        return key([value])
    return row["task"] if value is None else as_text(value)


def _part(drawn: int, shares: Sequence[tuple[str, float]]) -> str:
    """Bounds are taken from the end, so that a new run never moves an old one."""
    bound, part = 1.0, shares[-1][0]
    for i in range(len(shares) - 1, 0, -1):
        bound -= shares[i][1]
        if drawn < threshold(max(0.0, bound)):
            part = shares[i - 1][0]
    return part


# ---- inside trajectories (semantics 7, 9) ----


@apply.register
def _(operation: plan.TurnsFilter, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)

    def gone(row: Row) -> set[int]:
        true = [told.holds(operation.where, Spot(row, i)) for i in range(len(row["turns"]))]
        return {i for i, t in enumerate(true) if t == (operation.verb == "drop")}

    return [_without(row, gone(row), operation.repair, where, count) for row in rows]


@apply.register
def _(operation: plan.TurnsCut, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)

    def gone(row: Row) -> set[int]:
        turns = row["turns"]
        true = [i for i in range(len(turns)) if told.holds(operation.where, Spot(row, i))]
        if not true:
            return set()
        at = true[0] if operation.pick == "first" else true[-1]
        beyond = range(at + 1, len(turns)) if operation.side == "after" else range(at)
        return {i for i in beyond if turns[i]["role"] != "system"}

    return [_without(row, gone(row), operation.repair, where, count) for row in rows]


def _without(row: Row, gone: set[int], repair: bool, where: Where, count: dict[str, int]) -> Row:
    """A row without some turns (positions), logged; half a pair is repaired or an error."""
    turns = row["turns"]
    if repair:
        turns, gone = _repaired(turns, gone)
    elif any((i in gone) != (result in gone) for i, _, result in _pairs(turns)):
        raise Failed("C0610")
    for i in sorted(gone):
        where.add(row, "dropped", turn=turns[i]["turn"], n=1)
    count["edited"] += len(gone)
    for i, turn in enumerate(turns):
        fewer = len(row["turns"][i]["calls"]) - len(turn["calls"])
        if fewer and i not in gone:
            where.add(row, "edited", turn=turn["turn"], key="calls", n=fewer)
            count["edited"] += 1
    return {**row, "turns": [t for i, t in enumerate(turns) if i not in gone]}


def _pairs(turns: Sequence[Row]) -> list[tuple[int, int, int]]:
    """(turn, call, result) for every call that is answered, as positions."""
    made = ((i, k, numbered(turns, c["result_turn"])) for i, t in enumerate(turns) for k, c in enumerate(t["calls"]))
    return [(i, k, result) for i, k, result in made if result is not None]


def _repaired(turns: Sequence[Row], gone: set[int]) -> tuple[list[Row], set[int]]:
    """The other half of each pair goes as well, then assistant turns that have nothing left to say."""
    pairs = _pairs(turns)
    after = gone | {result for i, _, result in pairs if i in gone}
    lost = {(i, k) for i, k, result in pairs if result in gone and i not in gone}
    kept = []
    for i, turn in enumerate(turns):
        calls = [c for k, c in enumerate(turn["calls"]) if (i, k) not in lost]
        if len(calls) < len(turn["calls"]) and not calls and not turn["content"]:
            after.add(i)
        kept.append({**turn, "calls": calls})
    return kept, after


@apply.register
def _(operation: plan.TurnsSet, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)
    found = []
    for row in rows:
        turns = []
        for i, old in enumerate(row["turns"]):
            turn = old
            value = told.value(operation.value, Spot(row, i))
            chosen = operation.where is None or told.holds(operation.where, Spot(row, i))
            if chosen and value != old[operation.field]:
                where.add(row, "edited", turn=turn["turn"], key=operation.field, n=1)
                count["edited"] += 1
                turn = {**old, operation.field: value, "edited": True}
            turns.append(turn)
        found.append({**row, "turns": turns})
    return found


@apply.register
def _(operation: plan.ToolsFilter, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)
    found = []
    for row in rows:
        tools = row["tools"]
        if tools is not None:
            true = [told.holds(operation.where, Spot(row, tool=tool)) for tool in tools]
            stay = [i for i, holds in enumerate(true) if holds == (operation.verb == "keep")]
            count["edited"] += len(tools) - len(stay)
            if len(stay) < len(tools):
                where.add(row, "edited", key="tools", n=len(tools) - len(stay))
            schemas = json.loads(row["tools_json"])
            shown = json.dumps([schemas[i] for i in stay], ensure_ascii=False, separators=(",", ":"))
            found.append({**row, "tools": [tools[i] for i in stay], "tools_json": shown})
        else:
            found.append(row)
    return found


# ---- a whole plan ----


@dataclass
class Done:
    """Rows at the end of the shared steps and of each stage and sink, and the ledger."""

    shared: list[Row]
    ends: dict[str, list[Row]]
    log: Log


def execute(whole: plan.Plan, rows: list[Row]) -> Done:
    log = Log()
    shared = run(whole.shared, rows, None, 0, log)
    position = len(whole.shared)
    ends: dict[str, list[Row]] = {}
    for branch in (*whole.stages, *whole.sinks):
        start = shared if branch.base is None else ends[branch.base]
        ends[branch.name] = run(branch.steps, start, branch.name, position, log)
        position += len(branch.steps)
    return Done(shared, ends, log)


def tools_of(tools_json: str | None) -> list[Row] | None:
    """The tools shown to a run, as rows of their level."""
    if tools_json is None:
        return None
    functions = [tool["function"] for tool in json.loads(tools_json)]
    return [{"name": f.get("name"), "description": f.get("description")} for f in functions]
