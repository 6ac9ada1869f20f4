"""`turns cut` over lists of trajectories."""

from __future__ import annotations

from curatec.compiler import plan
from tests.reference.interpreter import Interpreter, Row, Spot
from tests.reference.steps import Failed, Where, _pairs, _repaired, apply


@apply.register
def _(operation: plan.TurnsCut, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)
    found = []
    for row in rows:
        turns = row["turns"]
        true = [i for i in range(len(turns)) if told.holds(operation.where, Spot(row, i))]
        gone: set[int] = set()
        if true:
            at = true[0] if operation.pick == "first" else true[-1]
            beyond = range(at + 1, len(turns)) if operation.side == "after" else range(at)
            gone = {i for i in beyond if turns[i]["role"] != "system"}
        if operation.repair:
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
        found.append({**row, "turns": [t for i, t in enumerate(turns) if i not in gone]})
    return found
