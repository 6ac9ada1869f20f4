"""A derived text that only groups rows stands in the table as its hash: `derive said = lower(text)`, `dedup on said`.

What a step shows of a key in words keeps the text, so a derived column is hashed only where every use of it is a key
of `dedup` or of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeGuard

from curatec.compiler import plan
from curatec.compiler.core import Column, Window
from curatec.compiler.passes.hash_long_keys import hashed
from curatec.compiler.passes.rewriting import APART, everywhere
from curatec.compiler.types import Level


def hash_derived_keys(whole: plan.Plan) -> plan.Plan:
    keys = {node.name for node in plan.nodes(whole) if _is_column(node)} - set(_shown(whole))

    def rewrite(node: Any) -> Any:
        match node:
            case plan.Derive(name=name, value=value) if name in keys:
                return replace(node, value=hashed(value))
        return node

    return everywhere(whole, rewrite)


def _shown(node: Any) -> Iterator[str]:
    """Names of trajectory columns whose text somebody reads."""
    match node:
        case Column(level=Level.TRAJECTORY, name=name):
            yield name
        case plan.Dedup(on=keys) | Window(keys=keys):
            for key in keys:
                yield from () if _is_column(key) else _shown(key)
            yield from _below(node, apart=keys)
        case _:
            yield from _below(node)


def _is_column(core: Any) -> TypeGuard[Column]:
    return isinstance(core, Column) and core.level is Level.TRAJECTORY


def _below(node: Any, apart: object = None) -> Iterator[str]:
    if isinstance(node, tuple):
        for item in node:
            yield from _shown(item)
    elif is_dataclass(node) and not isinstance(node, type):
        for f in fields(node):
            if f.name not in APART and (value := getattr(node, f.name)) is not apart:
                yield from _shown(value)
