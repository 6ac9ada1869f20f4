"""Plan rewrites. Each is a pure function from plan to plan; `PASSES` is their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from curatec.compiler import plan
from curatec.compiler.content import TRAJECTORY_CONTENT
from curatec.compiler.core import Apply, Column, Core, Quantifier, Window, walk
from curatec.compiler.frames import KEY
from curatec.compiler.types import Level, Type

Node = TypeVar("Node")


def needs_turns(core: Core) -> bool:
    """Whether a trajectory-level expression reads anything below the trajectory."""
    return any(
        isinstance(n, Quantifier)
        or (isinstance(n, Column) and (n.level is not Level.TRAJECTORY or n.name in TRAJECTORY_CONTENT))
        for n in walk(core)
    )


def hash_long_keys(whole: plan.Plan) -> plan.Plan:
    """Texts made from turns become their hash where they only group or compare rows: key tables stay narrow."""

    def hashed(core: Core) -> Core:
        return Apply(KEY, (core,), Type.TEXT) if core.type is Type.TEXT and needs_turns(core) else core

    def rewrite(node: Any) -> Any:
        match node:
            case Window():
                return replace(node, keys=tuple(hashed(k) for k in node.keys))
            case plan.Dedup():
                return replace(node, on=tuple(hashed(k) for k in node.on))
            case plan.DedupNear():
                return replace(node, over=tuple(hashed(k) for k in node.over))
            case plan.Limit() | plan.Sample():
                return replace(node, per=tuple(hashed(k) for k in node.per))
            case plan.Preference():
                return replace(
                    node, within=tuple(hashed(k) for k in node.within), max_per=tuple(hashed(k) for k in node.max_per)
                )
            case plan.Split():
                return replace(node, by=hashed(node.by))
        return node

    return _everywhere(whole, rewrite)


def _everywhere(node: Node, rewrite: Callable[[Any], Any]) -> Node:
    """Bottom up over a tree of dataclasses and tuples."""
    if isinstance(node, tuple):
        return tuple(_everywhere(item, rewrite) for item in node)  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {
        f.name: new
        for f in fields(node)
        if f.name not in ("span", "source") and (new := _everywhere(old := getattr(node, f.name), rewrite)) is not old
    }
    return rewrite(replace(node, **changed) if changed else node)  # type: ignore[no-any-return]


PASSES: tuple[Callable[[plan.Plan], plan.Plan], ...] = (hash_long_keys,)


def optimise(whole: plan.Plan) -> plan.Plan:
    for rewrite in PASSES:
        whole = rewrite(whole)
    return whole
