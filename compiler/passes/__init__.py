"""Plan rewrites and what they ask of expressions. Each pass is a pure function from plan to plan; `PASSES` is their
order. None changes a row, a ledger or a count (docs/optimiser.md)."""

from __future__ import annotations

from collections.abc import Callable

from curatec.compiler.passes.cheap_first import cheap_first
from curatec.compiler.passes.hash_long_keys import hash_long_keys
from curatec.compiler.passes.projection import needs_turns, turn_columns_of
from curatec.compiler.plan import Plan

__all__ = ["PASSES", "needs_turns", "optimise", "turn_columns_of"]
PASSES: tuple[Callable[[Plan], Plan], ...] = (hash_long_keys, cheap_first)


def optimise(whole: Plan) -> Plan:
    for rewrite in PASSES:
        whole = rewrite(whole)
    return whole
