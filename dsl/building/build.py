"""Parse tree → AST. The rules live in `build_*.py`; importing them here fills the registry."""

from __future__ import annotations

from lark import Token, Tree

from curatec.dsl import ast
from curatec.dsl.building import declarations as build_declarations
from curatec.dsl.building import expr as build_expr
from curatec.dsl.building import steps as build_steps
from curatec.dsl.building.rules import RULES, Builder
from curatec.dsl.diagnostics import Diagnostic

__all__ = ["RULES", "build"]

_REGISTERED = (build_declarations, build_expr, build_steps)


def build(tree: Tree[Token]) -> tuple[ast.File, list[Diagnostic]]:
    """The file's AST and what the grammar alone could not refuse."""
    builder = Builder()
    file = builder.transform(tree)
    return file, builder.problems
