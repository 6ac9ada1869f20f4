"""Rewriting of trees of plan and Core nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Node = TypeVar("Node")
APART = ("statement", "span", "source", "written")  # what is written, not what is meant


def everywhere(node: Node, rewrite: Callable[[Any], Any]) -> Node:
    """A tree of dataclasses and tuples, each node rewritten bottom up; what does not change stays the same object."""
    if isinstance(node, tuple):
        items = tuple(everywhere(item, rewrite) for item in node)
        return node if all(a is b for a, b in zip(items, node, strict=True)) else items  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {
        f.name: new
        for f in fields(node)
        if f.name not in APART and (new := everywhere(old := getattr(node, f.name), rewrite)) is not old
    }
    return rewrite(replace(node, **changed) if changed else node)  # type: ignore[no-any-return]
