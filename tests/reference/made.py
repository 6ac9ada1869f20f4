"""Steps that make rows from others, over lists of trajectories: `decompose`, `augment recover`, `augment distractors`.

`tests.reference.rebind` has the fourth. A made row has `parent`.
"""

from __future__ import annotations

import json
from typing import Any

from curatec.compiler import plan
from tests.reference.interpreter import Interpreter, Row, Spot, numbered
from tests.reference.steps import Where, apply, tools_of
from tests.reference.values import canonical, draw

# ---- decompose ----


@apply.register
def _(operation: plan.Decompose, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    told = Interpreter(rows)
    found = []
    for row in rows:
        chosen = [
            i
            for i, turn in enumerate(row["turns"])
            if turn["role"] == "assistant" and told.holds(operation.at, Spot(row, i))
        ]
        if not chosen:
            where.add(row, "dropped", reason=where.step.because or "no decision")
            continue
        where.add(row, "replaced", n=len(chosen), reason=where.step.because or "decompose")
        for i in chosen:
            name = f"{row['id']}#d{row['turns'][i]['turn']}"
            turns = until(row["turns"], i)
            shown = turns if operation.context is None else in_context(turns, operation.context)
            found.append({**row, "id": name, "digest": name, "turns": shown, "parent": row["id"]})
            created(found[-1], where, "decompose")
    return found


def created(row: Row, where: Where, operator: str) -> None:
    where.add(row, "created", key=row["parent"], reason=where.step.because or operator)


def until(turns: list[Row], end: int) -> list[Row]:
    """The turns up to one, which alone carries loss."""
    return [
        {**turn, "loss_weight": turn["loss_weight"] if i == end else 0.0} for i, turn in enumerate(turns[: end + 1])
    ]


def in_context(turns: list[Row], context: plan.Context) -> list[Row]:
    """The last results in full; others go with their call, or a text stands for them. The system prompt if asked."""
    users = {c["result_turn"] for turn in turns for c in turn["calls"] if c["requestor"] == "user"}
    results = [i for i, turn in enumerate(turns) if turn["role"] == "tool" and turn["turn"] not in users]
    old = set(results[: max(0, len(results) - context.results)])
    shown = []
    for i, turn in enumerate(turns):
        if turn["role"] == "system" and not context.system:
            continue
        if context.elide is not None:
            shown.append({**turn, "content": context.elide} if i in old else turn)
        elif i not in old:
            calls = [c for c in turn["calls"] if numbered(turns, c["result_turn"]) not in old]
            if calls or turn["content"] or not turn["calls"]:
                shown.append({**turn, "calls": calls})
    return shown


# ---- augment ----


def copy_of(row: Row, k: int, where: Where, **more: Any) -> Row:
    name = f"#a{where.step.label}.{k}"
    digest = f"{row['digest']}#a{plan.digest(where.step.operation)[:8]}.{k}"
    return {**row, "id": row["id"] + name, "digest": digest, "parent": row["id"], **more}


def makes_copies(row: Row) -> bool:
    return row.get("split") != "validation"


@apply.register
def _(operation: plan.Recover, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    made = []
    for row in filter(makes_copies, rows):
        ends = sorted({end for c in _calls(row) if (end := _correction(row["turns"], c, operation.max_gap))})
        for k, end in enumerate(ends):
            made.append(copy_of(row, k, where, turns=until(row["turns"], end)))
            created(made[-1], where, "recover")
    return rows + made


def _calls(row: Row) -> list[tuple[int, Row]]:
    """The agent's calls that are answered, with the position of their turn."""
    turns = row["turns"]
    return [
        (i, c)
        for i, t in enumerate(turns)
        for c in t["calls"]
        if t["role"] == "assistant" and c["requestor"] == "agent" and numbered(turns, c["result_turn"]) is not None
    ]


def _correction(turns: list[Row], failed: tuple[int, Row], most: int) -> int | None:
    """Where the call is put right, if it failed."""
    at, call = failed
    seen = numbered(turns, call["result_turn"])
    assert seen is not None
    if turns[seen]["is_error"] is not True or call["name"] is None:
        return None
    speaking = [i for i, t in enumerate(turns) if t["role"] == "assistant" and i > at][:most]
    for i in speaking:
        for other in turns[i]["calls"]:
            result = numbered(turns, other["result_turn"])
            good = result is not None and turns[result]["is_error"] is not True and other["requestor"] == "agent"
            if good and i > seen and other["name"] == call["name"] and _arguments(other) != _arguments(call):
                return i
    return None


def _arguments(call: Row) -> str:
    if call["args_json"] is None:
        return call["args_raw"] or ""
    return canonical(call["args_json"]) or str(call["args_json"])


@apply.register
def _(operation: plan.Distractors, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    made = []
    for row in filter(makes_copies, rows):
        if row["tools_json"] is None:
            where.add(row, "rejected", reason="no_tools", n=operation.copies)
            continue
        used = {tool["name"] for tool in row["tools"]} | {c["name"] for t in row["turns"] for c in t["calls"]}
        pool: dict[str, set[str]] = {}
        for other in rows:
            if other["tools_json"] is not None and operation.pool in (
                "all",
                "source" * (other["source"] == row["source"]),
            ):
                for text in _texts(other["tools_json"]):
                    if (name := json.loads(text)["function"].get("name")) is not None:
                        pool.setdefault(name, set()).add(text)
        if len(set(pool) - used) < operation.n:
            where.add(row, "rejected", reason="pool_too_small", n=operation.copies)
            continue
        for k in range(operation.copies):
            shown = _mixed(row, k, {name: sorted(texts) for name, texts in sorted(pool.items())}, used, operation.n)
            made.append(copy_of(row, k, where, tools_json=shown, tools=tools_of(shown)))
            created(made[-1], where, "distractors")
    return rows + made


def _texts(tools_json: str) -> list[str]:
    """The schemas as written: here they are compact, so that writing what was read gives the text again."""
    return [json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in json.loads(tools_json)]


def _mixed(row: Row, k: int, pool: dict[str, list[str]], used: set[str | None], n: int) -> str:
    seed, attempt, more = f"{row['digest']}.{k}", 0, []
    while len(more) < n:
        number = draw("distractors", attempt, seed)
        name = list(pool)[number % len(pool)]
        if name not in used:
            used = used | {name}
            more.append(pool[name][number // len(pool) % len(pool[name])])
        attempt += 1
    shown = _texts(row["tools_json"])
    for i, text in enumerate(more):
        place = draw("distractors place", i, seed) % (len(shown) + 1)
        shown = [*shown[:place], text, *shown[place:]]
    return "[" + ",".join(shown) + "]"
