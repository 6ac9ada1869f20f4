"""Plan rewrites and what they ask of expressions. Each pass is a pure function from plan to plan; `PASSES` is their
order. None changes a row, a ledger or a count (docs/optimiser.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from curatec.compiler.passes.cheap_first import cheap_first
from curatec.compiler.passes.hash_derived_keys import hash_derived_keys
from curatec.compiler.passes.hash_long_keys import hash_long_keys
from curatec.compiler.passes.projection import needs_turns, turn_columns_of
from curatec.compiler.passes.simplify import simplify
from curatec.compiler.plan import Plan

__all__ = ["PASSES", "needs_turns", "optimise", "turn_columns_of"]
PASSES: tuple[Callable[[Plan], Plan], ...] = (simplify, hash_long_keys, hash_derived_keys, cheap_first)


def optimise(whole: Plan) -> Plan:
    """What is run in place of a plan: the same steps in the same places, under the same labels."""
    made = whole
    for rewrite in PASSES:
        made = rewrite(made)
    return replace(made, written=whole.as_written)
