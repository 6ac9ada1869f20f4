"""Cheap predicates first: a filter's condition is asked in stages, and a run that one stage settles is asked no more.

`keep where A and B` drops a run as soon as A is false, `drop where A or B` as soon as A is true; in three-valued logic
neither depends on B, so that rows, reasons and the count of nulls are those of the whole condition. What could fail
(a number that does not fit in 64 bits) or compares rows is asked of all runs that enter, in the first stage: an error
must not depend on the order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curatec.compiler import plan
from curatec.compiler.core import Apply, Core, may_fail
from curatec.compiler.passes.projection import WIDE, turn_columns_of
from curatec.compiler.passes.rewriting import everywhere
from curatec.compiler.types import Type


def cheap_first(whole: plan.Plan) -> plan.Plan:
    return everywhere(whole, _staged)


def _staged(node: Any) -> Any:
    if not isinstance(node, plan.Filter):
        return node
    by_cost: dict[int, list[Core]] = {}
    for term in dict.fromkeys(terms(node.where, node.verb)):
        by_cost.setdefault(_cost(term), []).append(term)
    stages = tuple(tuple(by_cost[cost]) for cost in sorted(by_cost))
    return replace(node, stages=stages) if len(stages) > 1 else node


def terms(where: Core, verb: str) -> list[Core]:
    """What a condition is put together from, each of which settles alone: those that must all hold to keep, or one of
    which is enough to drop."""
    return _terms(where, "and" if verb == "keep" else "or")


def _terms(core: Core, joiner: str) -> list[Core]:
    match core:
        case Apply(function="not", args=(inner,)):
            return [_negated(term) for term in _terms(inner, "or" if joiner == "and" else "and")]
        case Apply(function=function, args=args) if function == joiner:
            return [term for argument in args for term in _terms(argument, joiner)]
    return [core]


def _negated(core: Core) -> Core:
    match core:
        case Apply(function="not", args=(inner,)):
            return inner
    return Apply("not", (core,), Type.BOOL)


def _cost(term: Core) -> int:
    """0: nothing is read, or it has to be asked of all; 1: narrow columns of turns; 2: their texts and calls."""
    read = turn_columns_of([term])
    if not read or may_fail(term):
        return 0
    return 2 if read & WIDE else 1
