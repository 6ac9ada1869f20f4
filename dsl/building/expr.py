"""Parse tree → AST for expressions."""

from __future__ import annotations

from typing import Any

from lark import Token

from curatec.dsl import ast
from curatec.dsl.building.rules import RULES, Builder, Rule, label, rule
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span

QUANTIFIERS = ("any", "all", "none", "count", "first", "last")
COLLECTIONS = ("turns", "calls", "tools")

_BINARY = {
    "or_": "or",
    "and_": "and",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "pow": "**",
}


def _binary(operator: Any) -> Rule:
    return lambda b, span, c: ast.Binary.make(operator=operator, left=c[0], right=c[1], span=span)


RULES |= {name: _binary(operator) for name, operator in _BINARY.items()}
RULES["not_"] = lambda b, span, c: ast.Unary.make(operator="not", operand=c[0], span=span)
RULES["between"] = lambda b, span, c: ast.Between.make(operand=c[0], low=c[1], high=c[2], span=span)
RULES["is_null"] = lambda b, span, c: ast.Is.make(operand=c[0], state="null", span=span)
RULES["is_not_null"] = lambda b, span, c: ast.Is.make(operand=c[0], state="null", negated=True, span=span)
RULES["is_empty"] = lambda b, span, c: ast.Is.make(operand=c[0], state="empty", span=span)
RULES["is_not_empty"] = lambda b, span, c: ast.Is.make(operand=c[0], state="empty", negated=True, span=span)
RULES["match"] = lambda b, span, c: ast.Match.make(operand=c[0], pattern=c[1], span=span)
RULES["not_match"] = lambda b, span, c: ast.Match.make(operand=c[0], pattern=c[1], negated=True, span=span)
RULES["in_choices"] = lambda b, span, c: ast.In.make(operand=c[0], choices=c[1].values, span=span)
RULES["not_in_choices"] = lambda b, span, c: ast.In.make(operand=c[0], choices=c[1].values, negated=True, span=span)
RULES["in_column"] = lambda b, span, c: ast.InColumn.make(operand=c[0], table=c[1], column=c[2], span=span)
RULES["not_in_column"] = lambda b, span, c: ast.InColumn.make(
    operand=c[0], table=c[1], column=c[2], negated=True, span=span
)
RULES["conditional"] = lambda b, span, c: ast.Conditional.make(condition=c[0], then=c[1], otherwise=c[2], span=span)
RULES["cast"] = lambda b, span, c: ast.Cast.make(operand=c[0], type=c[1], span=span)
RULES["attribute"] = lambda b, span, c: ast.Attribute.make(base=c[0], name=c[1], span=span)
RULES["reference"] = lambda b, span, c: ast.Reference.make(name=c[0].name, span=span)
RULES["list"] = lambda b, span, c: ast.ListOf.make(items=tuple(c), span=span)
RULES["groups"] = lambda b, span, c: c[0]
RULES["order_key"] = lambda b, span, c: ast.OrderKey.make(value=c[0], span=span)
RULES["order_desc"] = lambda b, span, c: ast.OrderKey.make(value=c[0], descending=True, span=span)
RULES["argument"] = lambda b, span, c: ast.Argument.make(value=c[0], span=span)
RULES["argument_desc"] = lambda b, span, c: ast.Argument.make(value=c[0], descending=True, span=span)
RULES["argument_named"] = lambda b, span, c: ast.Argument.make(name=label(c[0]).name, value=c[1], span=span)
# Brackets group; the tree's shape already says how, and the printer puts back those that are needed.
RULES["group_expr"] = lambda b, span, c: c[0]


class _Collection:
    """`turns where E` on its way into its quantifier."""

    def __init__(self, name: Name, where: Any) -> None:
        self.name, self.where = name, where


RULES["collection"] = lambda b, span, c: _Collection(c[0], c[1])


@rule("neg")
def _neg(builder: Builder, span: Span, children: list[Any]) -> Any:
    """A minus before a literal is part of the literal."""
    operand = children[0]
    if isinstance(operand, ast.Number):
        return ast.Number.make(value=-operand.value, percent=operand.percent, span=span)
    return ast.Unary.make(operator="-", operand=operand, span=span)


@rule("index")
def _index(builder: Builder, span: Span, children: list[Any]) -> ast.Index:
    base, key = children
    return ast.Index.make(base=base, key=builder.whole(key) if isinstance(key, Token) else key.value, span=span)


@rule("call")
def _call(builder: Builder, span: Span, children: list[Any]) -> Any:
    function, *rest = children
    over = rest.pop() if rest and isinstance(rest[-1], tuple) else None
    collections = [item for item in rest if isinstance(item, _Collection)]
    if collections or _is_bare_collection(function, rest):
        return _quantifier(builder, span, function, rest, over)
    return ast.Call.make(function=function, arguments=tuple(rest), over=over, span=span)


def _is_bare_collection(function: Name, arguments: list[Any]) -> bool:
    """`count(turns)` speaks of the collection; `coalesce(turns, …)` of a field."""
    return (
        function.name in QUANTIFIERS
        and len(arguments) == 1
        and isinstance(arguments[0].value, ast.Reference)
        and arguments[0].value.name in COLLECTIONS
    )


def _quantifier(builder: Builder, span: Span, function: Name, arguments: list[Any], over: Any) -> ast.Quantifier:
    known = ", ".join(f"`{name}`" for name in QUANTIFIERS)
    name: Any = function.name
    if name not in QUANTIFIERS:
        builder.problem(
            "C0110", f"`{name}` does not take `turns where …`", function.span, help=f"the quantifiers are {known}"
        )
        name = "any"
    if len(arguments) > 1 or over is not None:
        builder.problem(
            "C0111", f"`{name}` takes one collection and nothing else", span, help=f"write `{name}(turns where …)`"
        )
    first = next((a for a in arguments if isinstance(a, _Collection)), None)
    if first is not None:
        return ast.Quantifier.make(quantifier=name, collection=first.name, where=first.where, span=span)
    reference = arguments[0].value
    return ast.Quantifier.make(
        quantifier=name, collection=Name.make(name=reference.name, span=reference.span), span=span
    )
