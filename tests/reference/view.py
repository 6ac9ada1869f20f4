"""`view agent` and `view user` over lists of trajectories."""

from __future__ import annotations

from curatec.compiler import plan
from tests.reference.interpreter import Row
from tests.reference.steps import Where, apply

SWAPPED = {"assistant": "user", "user": "assistant"}


@apply.register
def _(operation: plan.View, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    other = "user" if operation.side == "agent" else "agent"
    found = []
    for row in rows:
        makers = {c["result_turn"]: c["requestor"] for t in row["turns"] for c in t["calls"]}
        kept = []
        for turn in row["turns"]:
            calls = [c for c in turn["calls"] if c["requestor"] != other]
            if _gone(turn, calls, makers, other):
                where.add(row, "dropped", turn=turn["turn"], n=1)
                count["edited"] += 1
                continue
            kept.append({**turn, "calls": calls})
            if len(calls) < len(turn["calls"]):
                where.add(row, "edited", turn=turn["turn"], key="calls", n=len(turn["calls"]) - len(calls))
                count["edited"] += 1
        if operation.side == "user":
            found.append({**row, "turns": [_swapped(turn) for turn in kept], "tools": None, "tools_json": None})
        else:
            found.append({**row, "turns": kept})
    return found


def _gone(turn: Row, calls: list[Row], makers: dict[int | None, str], other: str) -> bool:
    """A result of the other's call, or a turn of the other that says nothing else."""
    if turn["role"] == "tool":
        return makers.get(turn["turn"], "agent") == other
    silent = not turn["content"] and not calls
    if other == "user":
        return turn["role"] == "user" and silent and bool(turn["calls"])
    return turn["role"] == "assistant" and silent


def _swapped(turn: Row) -> Row:
    return {
        **turn,
        "role": SWAPPED.get(turn["role"], turn["role"]),
        "reasoning": None if turn["role"] == "assistant" else turn["reasoning"],
        "calls": [{**c, "requestor": "agent"} for c in turn["calls"]],
    }
