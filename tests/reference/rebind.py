"""`augment rebind` over lists of trajectories: JSON is read, changed as values, and compared as values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from curatec.compiler import plan
from tests.reference.interpreter import Row
from tests.reference.made import copy_of, created, makes_copies
from tests.reference.steps import Where, apply
from tests.reference.values import draw

WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
DIGIT = frozenset("0123456789")


class Number(str):
    """A number of JSON as it is written."""


Pairs = list[tuple[Any, Any]]


def told(text: str | None) -> Any:
    """What a text says: an object (as `("object", pairs)`), a list, or itself; a text in it that is JSON is `("text",
    what it says)`."""
    if text is None or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(
            text, parse_int=Number, parse_float=Number, object_pairs_hook=lambda pairs: ("object", pairs)
        )
    except ValueError:
        return text
    return changed(value, _within, keys=False)


def _within(leaf: str) -> Any:
    inner = leaf if isinstance(leaf, Number) else told(leaf)
    return leaf if isinstance(inner, str) else ("text", inner)


def changed(value: Any, edit: Callable[[str], Any], *, keys: bool = True) -> Any:
    """The value with every text, number and name of a member edited."""
    match value:
        case ("object", list() as pairs):
            return ("object", [(edit(k) if keys else k, changed(v, edit, keys=keys)) for k, v in pairs])
        case ("text", inner):
            return ("text", changed(inner, edit, keys=keys))
        case list():
            return [changed(item, edit, keys=keys) for item in value]
        case Number():
            return Number(edit(value))
        case str():
            return edit(value)
    return value


def leaves(value: Any, member: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Every text and number below, with the member that it is a value of; names of members come with None."""
    match value:
        case ("object", list() as pairs):
            for key, item in pairs:
                yield key, None
                yield from leaves(item, key)
        case ("text", inner):
            yield from leaves(inner, member)
        case list():
            for item in value:
                yield from leaves(item, member)
        case str():
            yield value, member


def written(value: Any) -> str:
    """What `told` reads, in one spelling: that of `json.dumps`, with all letters as they are."""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    match value:
        case ("object", list() as pairs):
            return "{" + ", ".join(f"{_json(k)}: {_json(v)}" for k, v in pairs) + "}"
        case ("text", inner):
            return _json(_json(inner))
        case list():
            return "[" + ", ".join(map(_json, value)) + "]"
        case Number():
            return str(value)
    return json.dumps(value, ensure_ascii=False)


def entities_in(value: Any, names: Sequence[str]) -> set[str]:
    found = (text for text, member in leaves(value) if member in names)
    cores = {re.sub(r"^[\W_]+|[\W_]+$", "", text) for text in found if not re.fullmatch(r"\[[A-Z_]+_\d+\]", text)}
    return cores - {""}


def low(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def occurrences(text: str, cores: set[str]) -> list[tuple[int, int]]:
    """From the left, longest first."""
    found, at, lowered = [], 0, low(text)
    while at < len(text):
        here = max((len(core) for core in cores if lowered.startswith(core, at)), default=0)
        if here:
            found.append((at, at + here))
        at += here or 1
    return found


def alone(text: str, start: int, end: int) -> bool:
    def joined(near: str, far: str, own: str) -> bool:
        return near in WORD or (near in "-@.+" and far in WORD) or (near in ":," and far in DIGIT and own in DIGIT)

    around = "  " + text + "  "
    before, after = around[start : start + 2], around[end + 2 : end + 4]
    return not joined(before[1], before[0], text[start]) and not joined(after[0], after[1], text[end - 1])


def swapped(text: str, new: dict[str, str]) -> str:
    out, at = "", 0
    for start, end in occurrences(text, set(new)):
        other = new[low(text[start:end])]
        cased = (o.upper() if c.isascii() and c.isupper() else o for o, c in zip(other, text[start:end], strict=True))
        out, at = out + text[at:start] + "".join(cased), end
    return out + text[at:]


def said(row: Row) -> list[str]:
    texts = [t[name] for t in row["turns"] for name in ("content", "reasoning")]
    texts += [c[name] for t in row["turns"] for c in t["calls"] for name in ("args_json", "args_raw")]
    return [leaf for text in texts if text for leaf, _ in leaves(told(text))]


def fault(row: Row, names: Sequence[str]) -> str | dict[str, Any]:
    """Why no copy can be made, else the folded cores and all that the run says."""
    calls = [c for t in row["turns"] for c in t["calls"]]
    cores: set[str] = set()
    for call in calls:
        cores |= entities_in(told(call["args_json"]), names)
    if not cores:
        return "no_entity"
    if any(sum(c.isascii() and c.isalnum() for c in core) < 3 for core in cores):
        return "entity_too_short"
    if any(core.isalpha() and core != core.upper() for core in cores):
        return "entity_is_word"
    if any(re.fullmatch(r"[0-9.]+[eE][+-]?[0-9]+", core) for core in cores):
        return "entity_is_number"
    found = set(map(low, cores))
    if any(occurrences(c["args_raw"], found) for c in calls if c["args_raw"] and not c["args_json"]):
        return "entity_in_invalid_arguments"
    if row["tools_json"] and occurrences(row["tools_json"], found):
        return "entity_in_tools"
    spoken = said(row)
    recorded = [leaf for name in ("gold_json", "meta_json") for leaf, _ in leaves(told(row["record"][name]))]
    if any(not alone(t, *span) for t in spoken + recorded for span in occurrences(t, found)):
        return "entity_inside_word"
    if any(a != b and a in b for a in found for b in found):
        return "entity_inside_word"
    gold = entities_in(told(row["record"]["gold_json"]), names)
    if any(low(core) not in low("\n".join(spoken)) for core in gold):
        return "gold_disagrees"
    return {"cores": found, "known": low("\n".join([*spoken, *recorded, row["tools_json"] or ""]))}


def new_values(cores: set[str], known: str, seed: str) -> dict[str, str] | None:
    made: dict[str, str] = {}
    for core in sorted(cores):
        for attempt in range(64):
            new = "".join(char_for(core, i, draw("rebind", attempt, f"{seed} {core} {i}")) for i in range(len(core)))
            clash = [other for other in (*cores, *made.values()) if new in other or other in new]
            if new not in known and not clash:
                made[core] = new
                break
        if core not in made:
            return None
    return made


def char_for(core: str, i: int, number: int) -> str:
    if core[i] in DIGIT:
        return "123456789"[number % 9] if i == 0 and core[i] != "0" else "0123456789"[number % 10]
    return "abcdefghijklmnopqrstuvwxyz"[number % 26] if core[i] in WORD - {"_"} else core[i]


@apply.register
def _(operation: plan.Rebind, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    made = []
    for row in filter(makes_copies, rows):
        found = fault(row, operation.entities)
        if isinstance(found, str):
            where.add(row, "rejected", reason=found, n=operation.copies)
            continue
        failed = 0
        for k in range(operation.copies):
            new = new_values(found["cores"], found["known"], f"{row['digest']}.{k}")
            if new is None:
                failed += 1
                continue
            made.append(copy_of(row, k, where, **rebound(row, new)))
            created(made[-1], where, "rebind")
        if failed:
            where.add(row, "rejected", reason="no_new_value", n=failed)
    return rows + made


def rebound(row: Row, new: dict[str, str]) -> Row:
    def edit(text: str | None) -> str | None:
        return None if text is None else written(changed(told(text), lambda leaf: swapped(leaf, new)))

    turns = [
        {
            **t,
            "content": edit(t["content"]),
            "reasoning": edit(t["reasoning"]),
            "calls": [{**c, "args_json": edit(c["args_json"]), "args_raw": edit(c["args_raw"])} for c in t["calls"]],
        }
        for t in row["turns"]
    ]
    return {"turns": turns, "record": {name: edit(text) for name, text in row["record"].items()}}
