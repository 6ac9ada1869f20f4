"""Preference pairs by comparing every run with every other, message by message: the rules of `emit preference` again.

Runs are raw records (OpenAI messages); nothing of the sink is used.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """`pair within … …` as data. `within` and `per` give a key, null for none."""

    within: Callable[[Record], Any]
    chosen: Callable[[Record], bool | None]
    rejected: Callable[[Record], bool | None]
    from_difference: bool = False
    margin: tuple[Callable[[Record], float | None], Fraction] | None = None
    ratio: Fraction | None = None
    most: tuple[int, Callable[[Record], Any]] | None = None


@dataclass(frozen=True)
class Run:
    """A record as it is compared: `shown` has one JSON text a message, without ids."""

    id: str
    split: str
    record: Record
    shown: tuple[str, ...]

    def role(self, at: int) -> str:
        return str(json.loads(self.shown[at])["role"])


def shown_of(messages: Sequence[Record]) -> tuple[str, ...]:
    """The messages up to the last one of the assistant, calls numbered through the run."""
    numbers: dict[str, int] = {}
    texts = []
    for message in messages:
        said: Record = {"role": message["role"], "content": message["content"] or ""}
        if "tool_calls" in message:
            for call in message["tool_calls"]:
                numbers[call["id"]] = len(numbers)
            said["calls"] = [
                [call["function"]["name"], json.loads(call["function"]["arguments"])] for call in message["tool_calls"]
            ]
        if message["role"] == "tool":
            said["answers"] = numbers[message["tool_call_id"]]
        texts.append(json.dumps(said))
    while texts and '"role": "assistant"' not in texts[-1]:
        texts.pop()
    return tuple(texts)


def is_broken(messages: Sequence[Record]) -> bool:
    """Whether a call that is not in the last message shown has no result."""
    shown = len(shown_of(messages))
    answered = {message.get("tool_call_id") for message in messages[:shown]}
    return any(call["id"] not in answered for m in messages[: shown - 1] for call in m.get("tool_calls", ()))


def length(messages: Sequence[Record]) -> int:
    """Code points of what is said and called, a call being its name and arguments as the source writes them."""
    calls = (call["function"] for message in messages for call in message.get("tool_calls", ()))
    called = sum(len('{"name":"","arguments":}') + len(f["name"]) + len(f["arguments"]) for f in calls)
    return called + sum(len(message["content"] or "") for message in messages)


def start_of(chosen: Run, rejected: Run, rule: Rule) -> int | None:
    """How many messages the prompt has; null where the two share none that a continuation can follow."""
    if rule.from_difference:
        both = min(len(chosen.shown), len(rejected.shown))
        at = next((i for i in range(both) if chosen.shown[i] != rejected.shown[i]), None)
        if at is None or chosen.role(at) != "assistant" or rejected.role(at) != "assistant":
            return None
        while at > 0 and chosen.role(at - 1) == "assistant":
            at -= 1
        before = [chosen.role(i) for i in range(at)]
        return at if "user" in before and before[-1] in ("user", "tool") else None
    found = [_first_reply(run) for run in (chosen, rejected)]
    same = found[0] == found[1] is not None and chosen.shown[: found[0]] == rejected.shown[: found[0]]
    return found[0] if same else None


def _first_reply(run: Run) -> int | None:
    roles = [run.role(i) for i in range(len(run.shown))]
    return next(
        (
            i
            for i, role in enumerate(roles)
            if role == "assistant" and "user" in roles[:i] and roles[i - 1] in ("user", "tool")
        ),
        None,
    )


def obstacle(chosen: Run, rejected: Run, rule: Rule) -> str | None:
    """What keeps two partners from being a pair, the first of the rules that fails."""
    if chosen.split != rejected.split:
        return "splits_differ"
    if chosen.record.get("tools") != rejected.record.get("tools"):
        return "tools_differ"
    if chosen.shown == rejected.shown:
        return "no_difference"
    start = start_of(chosen, rejected, rule)
    if start is None:
        return "prompts_differ"
    tails = [run.record["messages"][start : len(run.shown)] for run in (chosen, rejected)]
    for tail in tails:
        if not any(m["role"] == "assistant" and (m.get("tool_calls") or (m["content"] or "").strip()) for m in tail):
            return "no_text"
    if rule.margin is not None:
        values = [rule.margin[0](run.record) for run in (chosen, rejected)]
        if None in values or Fraction(str(values[0])) - Fraction(str(values[1])) < rule.margin[1]:
            return "margin"
    if rule.ratio is not None and max(map(length, tails)) > rule.ratio * min(map(length, tails)):
        return "length_ratio"
    return None


ORDER = (
    "no_pair", "splits_differ", "tools_differ", "prompts_differ", "no_difference", "no_text", "margin", "length_ratio",
    "over_max",
)  # fmt: skip


def pairs_of(
    records: Mapping[str, Record], splits: Mapping[str, str], rule: Rule
) -> tuple[set[tuple[str, str]], dict[str, str]]:
    """The pairs (chosen, rejected) and, for each run in none of them, why."""
    why: dict[str, str] = {}
    runs: list[Run] = []
    for id_, record in records.items():
        run = Run(id_, splits[id_], record, shown_of(record["messages"]))
        if not (rule.chosen(record) or rule.rejected(record)):
            why[id_] = "neither_side"
        elif rule.within(record) is None:
            why[id_] = "null_key"
        elif not run.shown:
            why[id_] = "no_turns"
        elif is_broken(record["messages"]):
            why[id_] = "unanswered_call"
        else:
            runs.append(run)
    furthest = {run.id: "no_pair" for run in runs}
    candidates: list[tuple[Run, Run]] = []
    for chosen in runs:
        for rejected in runs:
            partners = rule.within(chosen.record) == rule.within(rejected.record) and chosen.id != rejected.id
            if partners and rule.chosen(chosen.record) and rule.rejected(rejected.record):
                found = obstacle(chosen, rejected, rule)
                if found is None:
                    candidates.append((chosen, rejected))
                for run in (chosen, rejected):
                    furthest[run.id] = max(furthest[run.id], found or "over_max", key=ORDER.index)
    pairs = {(chosen.id, rejected.id) for chosen, rejected in _within_quota(candidates, rule)}
    used = {id_ for pair in pairs for id_ in pair}
    return pairs, why | {id_: reason for id_, reason in furthest.items() if id_ not in used}


def _within_quota(candidates: list[tuple[Run, Run]], rule: Rule) -> list[tuple[Run, Run]]:
    if rule.most is None:
        return candidates
    most, per = rule.most

    def rank(pair: tuple[Run, Run]) -> tuple[Fraction, int, str, str]:
        values = [rule.margin[0](run.record) for run in pair] if rule.margin else [0, 0]
        apart = Fraction(str(values[0])) - Fraction(str(values[1])) if None not in values else Fraction(0)
        return -apart, -(start_of(*pair, rule) or 0), pair[0].id, pair[1].id

    taken: Counter[Any] = Counter()
    kept = []
    for pair in sorted(candidates, key=rank):
        key = per(pair[0].record)
        if key is None or taken[key] < most:
            kept.append(pair)
        taken[key] += 1
    return kept
