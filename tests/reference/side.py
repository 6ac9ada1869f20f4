"""Side tables and test sets by plain search: `join`, `in table.column` and `decontaminate`.

`Beside` is what a row can ask; it stands in every row under `beside`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from curatec.compiler import plan
from curatec.compiler.text import lower_py
from tests.reference.interpreter import Row
from tests.reference.steps import Failed, Where, _values, apply

Item = tuple[str | None, str | None]  # id and text


@dataclass
class Beside:
    tables: dict[str, dict[Any, Row]] = field(default_factory=dict)  # name → key → row, the key among its columns
    sealed: dict[str, list[Item]] = field(default_factory=dict)


def with_beside(rows: Sequence[Row], beside: Beside) -> list[Row]:
    return [{**row, "beside": beside} for row in rows]


@apply.register
def _(operation: plan.Join, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    found = []
    for row, key in zip(rows, _values(rows, operation.on), strict=True):
        match = None if key is None else row["beside"].tables[operation.table].get(key)
        count["unmatched"] = count.get("unmatched", 0) + (match is None)
        columns = {f"{operation.table}.{name}": match and match[name] for name, _ in operation.columns}
        found.append({**row, **columns})
    if operation.required and count.get("unmatched"):
        raise Failed("C0631")
    return found


@apply.register
def _(operation: plan.Decontaminate, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    kept = []
    for row in rows:
        found = leak_of_run(row, row["beside"].sealed[operation.against], operation.ngram)
        if found is None:
            kept.append(row)
        else:
            where.add(row, "dropped", reason=where.step.because or found[0], key=found[1])
    return kept


def held_out(row: Row) -> bool:
    ids = {id_ for items in row["beside"].sealed.values() for id_, _ in items} - {None}
    return bool({row["task_id"], row["task"]} & ids)


# ---- leaks ----


def words(text: str) -> list[str]:
    """Letters, marks and digits in a row; a Han letter stands alone."""
    spaced = ""
    for char in lower_py(text):
        if unicodedata.category(char)[0] not in "LMN":
            spaced += " "
        elif unicodedata.name(char, "").startswith("CJK "):
            spaced += f" {char} "
        else:
            spaced += char
    return spaced.split()


def leak_of_run(row: Row, items: Sequence[Item], ngram: int) -> tuple[str, str] | None:
    ids = {id_ for id_, _ in items}
    for name in (row["task_id"], row["task"]):
        if name in ids:
            return "test_id", name
    return leak_of(list(texts(row)), items, ngram)


def texts(row: Row) -> Iterator[tuple[str, bool]]:
    """Each text of a run, and whether the user or the agent says it."""
    for turn in row["turns"]:
        if turn["role"] in ("system", "event"):
            continue
        for name in ("content", "reasoning"):
            if turn[name] is not None:
                yield turn[name], turn["role"] in ("user", "assistant")
        for call in turn["calls"]:
            if call["args_json"] is not None:
                yield from ((text, False) for text in _strings(_decoded(call["args_json"])))
            elif call["args_raw"] is not None:
                yield call["args_raw"], False


def _decoded(args_json: str) -> Any:
    try:
        return json.loads(args_json, object_pairs_hook=list)
    except json.JSONDecodeError:
        return None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):  # a member of an object
        yield from _strings(value[1])
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def leak_of(texts: Sequence[tuple[str, bool]], items: Sequence[Item], ngram: int) -> tuple[str, str] | None:
    """Reason and evidence of the first rule that holds, of the first item by id (none last) and words."""
    listed = {(id_, tuple(words(text))) for id_, text in items if text is not None}
    listed = {(id_, told) for id_, told in listed if told}
    in_order = sorted(listed, key=lambda item: (item[0] is None, item[0] or "", " ".join(item[1])))
    heard = [(words(text), said) for text, said in texts]
    for id_, told in in_order:
        if any(said and _inside(told, text) for text, said in heard):
            return "test_text", _evidence(id_, told)
    for id_, told in in_order:
        for i in range(len(told) - ngram + 1):
            gram = told[i : i + ngram]
            if any(_inside(gram, text) for text, _ in heard):
                return "test_ngram", _evidence(id_, gram)
    return None


def _inside(needle: Sequence[str], hay: Sequence[str]) -> bool:
    return any(list(hay[i : i + len(needle)]) == list(needle) for i in range(len(hay) - len(needle) + 1))


def _evidence(id_: str | None, told: Sequence[str]) -> str:
    text = " ".join(told) if id_ is None else f"{id_}: {' '.join(told)}"
    return text if len(text) <= 200 else text[:199] + "…"
