"""`limit … per each` and `mix` over lists of trajectories. No code is shared with the engine."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from curatec.compiler import plan
from tests.reference.interpreter import Row
from tests.reference.steps import Failed, Where, _values, apply, ordered
from tests.reference.values import draw


@apply.register
def _(operation: plan.LimitEach, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    lists = _values(rows, operation.each)
    taken: dict[str, int] = {}
    gone: set[int] = set()
    for i in ordered(rows, operation.order, [_values(rows, o.value) for o in operation.order]):
        if not lists[i]:
            count["null_key"] += 1
        elif all(taken.get(element, 0) >= operation.count for element in lists[i]):
            gone.add(i)
            reason = where.step.because or "over the limit"
            where.add(rows[i], "dropped", key=", ".join(lists[i]), reason=reason)
        else:
            for element in lists[i]:
                taken[element] = taken.get(element, 0) + 1
    return [row for i, row in enumerate(rows) if i not in gone]


@apply.register
def _(operation: plan.Mix, rows: list[Row], where: Where, count: dict[str, int]) -> list[Row]:
    """Of rows. Every total is tried, from the largest down."""
    assert operation.target is None
    shares = {name: Fraction(str(share)) for name, share in operation.shares if share}
    have = {name: sum(row["source"] == name for row in rows) for name in shares}
    quotas = dict.fromkeys(shares, 0)
    if rows:
        if not all(have.values()):
            raise Failed("C0632")
        if operation.to is not None and not operation.at_most:
            quotas = largest_remainder(shares, operation.to)
            if any(quotas[name] > have[name] for name in shares):
                raise Failed("C0632")
        else:
            top = len(rows) if operation.to is None else min(len(rows), operation.to)
            totals = (largest_remainder(shares, total) for total in range(top, -1, -1))
            quotas = next(found for found in totals if all(found[name] <= have[name] for name in shares))
    kept: set[int] = set()
    for name, quota in quotas.items():
        own = [i for i, row in enumerate(rows) if row["source"] == name]
        own.sort(key=lambda i: (draw("mix", 0, rows[i]["digest"]), rows[i]["id"]))
        kept |= set(own[:quota])
    for i, row in enumerate(rows):
        if i not in kept:
            where.add(row, "dropped", key=row["source"], reason=where.step.because or "over its share")
    return [row for i, row in enumerate(rows) if i in kept]


def largest_remainder(shares: dict[str, Fraction], total: int) -> dict[str, int]:
    """Ties go to the name that comes first."""
    whole = sum(shares.values())
    exact = {name: total * share / whole for name, share in shares.items()}
    found = {name: floor(part) for name, part in exact.items()}
    for name in sorted(exact, key=lambda name: (found[name] - exact[name], name)):
        if sum(found.values()) < total:
            found[name] += 1
    return found
