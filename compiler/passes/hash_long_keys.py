"""Texts made from turns become their hash where they only group or compare rows: key tables stay narrow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curatec.compiler import plan
from curatec.compiler.core import Apply, Core, Window
from curatec.compiler.frames import KEY
from curatec.compiler.passes.projection import needs_turns
from curatec.compiler.passes.rewriting import everywhere
from curatec.compiler.types import Type


def hash_long_keys(whole: plan.Plan) -> plan.Plan:
    return everywhere(whole, _with_hashes)


def _with_hashes(node: Any) -> Any:
    match node:
        case Window():
            return replace(node, keys=_all_hashed(node.keys))
        case plan.Dedup():
            return replace(node, on=_all_hashed(node.on))
        case plan.DedupNear():
            return replace(node, over=_all_hashed(node.over))
        case plan.Limit() | plan.Sample():
            return replace(node, per=_all_hashed(node.per))
        case plan.Preference():
            return replace(node, within=_all_hashed(node.within), max_per=_all_hashed(node.max_per))
        case plan.Split():
            return replace(node, by=hashed(node.by))
    return node


def _all_hashed(keys: tuple[Core, ...]) -> tuple[Core, ...]:
    return tuple(hashed(key) for key in keys)


def hashed(core: Core) -> Core:
    """The hash of a text that is made from turns; anything else as it is."""
    long = core.type is Type.TEXT and needs_turns(core) and not (isinstance(core, Apply) and core.function == KEY)
    return Apply(KEY, (core,), Type.TEXT) if long else core
