"""Conditions without what cannot matter: `true and x`, `not not x`, a term that comes twice, a comparison of constants.

Constants come from parameters, which switch parts of a spec on and off; what is switched off is not looked up in turns.
All by three-valued logic. What could fail stays, whether it matters or not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import Apply, Const, Core, may_fail
from curatec.compiler.frames import Frames
from curatec.compiler.passes.rewriting import everywhere
from curatec.compiler.types import Type

_TRUE, _FALSE = Const(True, Type.BOOL), Const(False, Type.BOOL)
_NEUTRAL = {"and": _TRUE, "or": _FALSE}
_ABSORBING = {"and": _FALSE, "or": _TRUE}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">=", "one_of"}


def simplify(whole: plan.Plan) -> plan.Plan:
    return replace(everywhere(whole, simpler), corpora=whole.corpora)  # settings of sources are read with their files


def simpler(node: Any) -> Any:
    """A node whose children are as simple as they get."""
    match node:
        case Apply(function="and" | "or"):
            return _joined(node)
        case Apply(function="not", args=(Const(value=bool(value)),)):
            return _FALSE if value else _TRUE
        case Apply(function="not", args=(Apply(function="not", args=(inner,)),)):
            return inner
        case Apply(function="if", args=(Const(value=value), then, otherwise)):
            chosen, other = (then, otherwise) if value else (otherwise, then)
            return chosen if chosen.type is node.type and not may_fail(other) else node
        case Apply(function=function, args=args) if function in _COMPARISONS and all(map(_is_constant, args)):
            return _computed(node)
    return node


def _joined(node: Apply) -> Core:
    """`and` or `or` over its distinct terms; one that decides alone leaves only itself and what could fail."""
    name = node.function
    found = [term for term in dict.fromkeys(_flat(node, name)) if term != _NEUTRAL[name]]
    if _ABSORBING[name] in found:
        found = [term for term in found if term == _ABSORBING[name] or may_fail(term)]
    return reduce(lambda a, b: Apply(name, (a, b), Type.BOOL), found) if found else _NEUTRAL[name]


def _flat(core: Core, name: str) -> list[Core]:
    if isinstance(core, Apply) and core.function == name:
        return [term for argument in core.args for term in _flat(argument, name)]
    return [core]


def _is_constant(core: Core) -> bool:
    return isinstance(core, Const) and core.value is not None


def _computed(node: Apply) -> Core:
    """As the engine says."""
    one = Frames(pl.DataFrame({"row": [0]}, schema={"row": pl.UInt32}))
    return Const(one.series(node)[0], Type.BOOL)
