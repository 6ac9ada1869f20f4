"""Which runs make preference pairs, found on narrow data: one hash and one length a message, no text.

A pair needs equal `within` keys (null is no key), the same split and tools, `chosen` true on one side and `rejected` on
the other (a run on both sides never meets itself), and equal messages before its continuation. With `from first
difference` the continuation starts at the first message that differs, which must be an assistant's on both sides;
without, at the first assistant message after a user's. Where that message stands behind other assistant messages, the
continuation starts with the first of them, so that a prompt always ends with a user's or a tool's message.

Call ids are not compared: they differ between any two runs. Everything else that is shown is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from xxhash import xxh3_64_intdigest

from curatec.compiler import plan
from curatec.runtime.conversation.messages import Message

# Why a run is in no pair, by how far its most promising partner came.
STAGES = (
    "no_pair",
    "splits_differ",
    "tools_differ",
    "prompts_differ",
    "no_difference",
    "margin",
    "length_ratio",
    "over_max",
)


@dataclass(slots=True)
class Side:
    """What is known of a run. `score` is the margin's expression, `quota` the key of `max N per k` (null: no limit)."""

    id: str
    position: int
    group: tuple[Any, ...]
    split: str
    toolset: str | None
    chosen: bool
    rejected: bool
    score: float | None = None
    quota: tuple[Any, ...] | None = ()
    hashes: list[int] = field(default_factory=list)
    roles: str = ""  # one letter a message: s, u, a, t
    lengths: list[int] = field(default_factory=list)  # code points of each message

    def take(self, messages: Sequence[Message]) -> None:
        """Fingerprints of the run's messages."""
        self.hashes = _hashes(messages)
        self.roles = "".join(message.role[0] for message in messages)
        self.lengths = [message.length for message in messages]


class Pair(NamedTuple):
    """`start`: how many messages the prompt has."""

    chosen: Side
    rejected: Side
    start: int


def _hashes(messages: Sequence[Message]) -> list[int]:
    calls: dict[str | None, int] = {}
    found: list[int] = []
    for message in messages:
        calls |= {call.id: len(calls) + k for k, call in enumerate(message.calls)}
        answers = calls.get(message.call_id) if message.role == "tool" else None
        said = [
            message.role,
            message.content,
            message.reasoning,
            [c.function for c in message.calls],
            message.name,
            answers,
        ]
        found.append(xxh3_64_intdigest(orjson.dumps(said)))
    return found


def find(sides: Iterable[Side], target: plan.Preference) -> tuple[list[Pair], dict[str, str]]:
    """The pairs in the order of writing, and for each run in none of them why (one of STAGES)."""
    sides = list(sides)
    reached = dict.fromkeys((side.id for side in sides), 0)
    candidates: list[Pair] = []
    for group in _grouped(sides, lambda side: side.group):
        candidates.extend(_candidates(group, target, reached))
    pairs = _limited(candidates, target)
    used = {side.id for pair in pairs for side in pair[:2]}
    lost = {id_: STAGES[stage] for id_, stage in reached.items() if id_ not in used}
    return sorted(pairs, key=lambda pair: (pair.chosen.position, pair.rejected.position)), lost


def _grouped(sides: Iterable[Side], key: Callable[[Side], Any]) -> list[list[Side]]:
    groups: dict[Any, list[Side]] = {}
    for side in sides:
        groups.setdefault(key(side), []).append(side)
    return list(groups.values())


def _partnered(sides: Sequence[Side]) -> list[Side]:
    """Those that have somebody else on the other side."""
    chosen, rejected = ([s.id for s in sides if s.chosen], [s.id for s in sides if s.rejected])
    return [s for s in sides if (s.chosen and _other(rejected, s.id)) or (s.rejected and _other(chosen, s.id))]


def _other(ids: Sequence[str], own: str) -> bool:
    return len(ids) > 1 or (len(ids) == 1 and ids[0] != own)


def _candidates(group: Sequence[Side], target: plan.Preference, reached: dict[str, int]) -> Iterator[Pair]:
    """Pairs of one group, narrowed from the cheapest condition to the dearest."""
    parts = [_partnered(group)]
    keys: tuple[Callable[[Side], Any], ...] = (lambda s: s.split, lambda s: s.toolset, _opening)
    for stage, key in enumerate(keys, start=1):
        _reach(reached, (side for part in parts for side in part), stage)
        parts = [_partnered(narrow) for part in parts for narrow in _grouped(part, key)]
    for part in parts:
        for chosen in (side for side in part if side.chosen):
            for rejected in (side for side in part if side.rejected and side.id != chosen.id):
                stage, start = _judged(chosen, rejected, target)
                _reach(reached, (chosen, rejected), stage)
                if stage == len(STAGES) - 1:
                    yield Pair(chosen, rejected, start)


def _reach(reached: dict[str, int], sides: Iterable[Side], stage: int) -> None:
    for side in sides:
        reached[side.id] = max(reached[side.id], stage)


def _opening(side: Side) -> tuple[int, ...]:
    """What stands before the first assistant message: equal in any pair."""
    first = side.roles.find("a")
    return tuple(side.hashes[: first if first >= 0 else len(side.hashes)])


def _judged(chosen: Side, rejected: Side, target: plan.Preference) -> tuple[int, int]:
    """How far two runs come (an index of STAGES), and where their continuations start."""
    if chosen.hashes == rejected.hashes:
        return STAGES.index("no_difference"), 0
    start = _difference(chosen, rejected) if target.from_difference else _first_reply(chosen, rejected)
    if start is None:
        return STAGES.index("prompts_differ"), 0
    if target.margin_at_least is not None and not _apart(chosen.score, rejected.score, target.margin_at_least):
        return STAGES.index("margin"), 0
    if target.length_ratio is not None and not _alike(chosen, rejected, start, target.length_ratio):
        return STAGES.index("length_ratio"), 0
    return STAGES.index("over_max"), start


def _difference(chosen: Side, rejected: Side) -> int | None:
    both = zip(chosen.hashes, rejected.hashes, strict=False)
    at = next((i for i, (a, b) in enumerate(both) if a != b), None)
    if at is None or chosen.roles[at] != "a" or rejected.roles[at] != "a":
        return None
    while at and chosen.roles[at - 1] == "a":
        at -= 1
    return at if "u" in chosen.roles[:at] and chosen.roles[at - 1] in "ut" else None


def _first_reply(chosen: Side, rejected: Side) -> int | None:
    start = first_reply(chosen.roles)
    if start is None or start != first_reply(rejected.roles):
        return None
    return start if chosen.hashes[:start] == rejected.hashes[:start] else None


def first_reply(roles: str) -> int | None:
    """The first assistant message after a user's that answers a user or a tool."""
    asked = roles.find("u")
    return (
        next((i for i in range(asked + 1, len(roles)) if roles[i] == "a" and roles[i - 1] in "ut"), None)
        if asked >= 0
        else None
    )


def _apart(chosen: float | None, rejected: float | None, least: float) -> bool:
    return chosen is not None and rejected is not None and chosen - rejected >= least


def _alike(chosen: Side, rejected: Side, start: int, most: float) -> bool:
    short, long = sorted((sum(chosen.lengths[start:]), sum(rejected.lengths[start:])))
    return long <= most * short


def _limited(candidates: Sequence[Pair], target: plan.Preference) -> list[Pair]:
    """At most `max` pairs of each quota (that of the chosen run): the largest margin first where one is given, then the
    longest common prefix, then ids."""
    if target.max_pairs is None:
        return list(candidates)
    taken: dict[tuple[Any, ...], int] = {}
    kept: list[Pair] = []
    for pair in sorted(candidates, key=_preferred(target)):
        quota = pair.chosen.quota
        if quota is not None:
            taken[quota] = taken.get(quota, 0) + 1
            if taken[quota] > target.max_pairs:
                continue
        kept.append(pair)
    return kept


def _preferred(target: plan.Preference) -> Callable[[Pair], tuple[float, int, str, str]]:
    def key(pair: Pair) -> tuple[float, int, str, str]:
        given = target.margin is not None and pair.chosen.score is not None and pair.rejected.score is not None
        margin = (pair.chosen.score or 0.0) - (pair.rejected.score or 0.0) if given else 0.0
        return -margin, -pair.start, pair.chosen.id, pair.rejected.id

    return key
