"""Which runs make preference pairs, found on narrow data: one hash and one length a message, no text.

A pair needs equal `within` keys (null is no key), the same split and tools, `chosen` true on one side and `rejected` on
the other, and equal messages before its continuation. With `from first difference` the continuation starts at the first
message that differs, which must be an assistant's on both sides; without, at the first assistant message after a
user's. Where that message stands behind other assistant messages, the continuation starts with the first of them, so
that a prompt always ends with a user's or a tool's message.

Rows of one origin never pair: a run that is on both sides with itself, decisions of one run, a run with its copies.
Both continuations must say something or call a tool. A margin is taken between the decimals that two values are written
as, so that 0.3 is 0.2 more than 0.1; without a value on both sides there is none.

What is compared are `fingerprints`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from curatec.compiler import plan
from curatec.runtime.conversation.messages import Form, Message
from curatec.runtime.sinks.fingerprints import fingerprints

# Why a run is in no pair, by how far its most promising partner came.
STAGES = (
    "no_pair",
    "splits_differ",
    "tools_differ",
    "prompts_differ",
    "no_difference",
    "no_text",
    "margin",
    "length_ratio",
    "over_max",
)


@dataclass(slots=True)
class Side:
    """What is known of a row. `score` is the margin's expression, `quota` the key of `max N per k` (null: no limit)."""

    id: str
    origin: str  # id of the run that it comes from
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
    last_said: int = -1  # the last message of the assistant with text or a call

    def take(self, messages: Sequence[Message], form: Form) -> None:
        """What is compared of the row's messages."""
        self.hashes = fingerprints(messages, form)
        self.roles = "".join(message.role[0] for message in messages)
        self.lengths = [message.length for message in messages]
        speaks = (i for i, message in enumerate(messages) if message.role == "assistant" and _says(message))
        self.last_said = max(speaks, default=-1)


class Pair(NamedTuple):
    """`start`: how many messages the prompt has."""

    chosen: Side
    rejected: Side
    start: int


def _says(message: Message) -> bool:
    return bool(message.calls or (message.content or "").strip())


def margin(chosen: Side, rejected: Side) -> Decimal | None:
    """How much more the chosen side scores, null where a side has no score."""
    if chosen.score is None or rejected.score is None:
        return None
    return Decimal(repr(chosen.score)) - Decimal(repr(rejected.score))


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
    """Those that have a row of another origin on the other side."""
    chosen, rejected = ({s.origin for s in sides if s.chosen}, {s.origin for s in sides if s.rejected})
    return [s for s in sides if (s.chosen and _other(rejected, s)) or (s.rejected and _other(chosen, s))]


def _other(origins: set[str], side: Side) -> bool:
    return len(origins) > (side.origin in origins)


def _candidates(group: Sequence[Side], target: plan.Preference, reached: dict[str, int]) -> Iterator[Pair]:
    """Pairs of one group, narrowed from the cheapest condition to the dearest."""
    parts = [_partnered(group)]
    keys: tuple[Callable[[Side], Any], ...] = (lambda s: s.split, lambda s: s.toolset, _opening)
    for stage, key in enumerate(keys, start=1):
        _reach(reached, (side for part in parts for side in part), stage)
        parts = [_partnered(narrow) for part in parts for narrow in _grouped(part, key)]
    for part in parts:
        for chosen in (side for side in part if side.chosen):
            for rejected in (side for side in part if side.rejected and side.origin != chosen.origin):
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
    if min(chosen.last_said, rejected.last_said) < start:
        return STAGES.index("no_text"), 0
    if target.margin_at_least is not None and not _apart(chosen, rejected, target.margin_at_least):
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


def _apart(chosen: Side, rejected: Side, least: float) -> bool:
    apart = margin(chosen, rejected)
    return apart is not None and apart >= Decimal(repr(least))


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
    for pair in sorted(candidates, key=_preferred):
        quota = pair.chosen.quota
        if quota is not None:
            taken[quota] = taken.get(quota, 0) + 1
            if taken[quota] > target.max_pairs:
                continue
        kept.append(pair)
    return kept


def _preferred(pair: Pair) -> tuple[Decimal, int, str, str]:
    apart = margin(pair.chosen, pair.rejected) or Decimal(0)
    return -apart, -pair.start, pair.chosen.id, pair.rejected.id
