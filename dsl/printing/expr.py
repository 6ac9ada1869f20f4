"""Expressions → text with the brackets that the grammar's precedence calls for, and no others."""

from __future__ import annotations

from collections.abc import Iterable

from curatec.dsl import ast
from curatec.dsl.nodes import Node
from curatec.dsl.printing.literals import label, name, number, pattern, string

# The levels of the grammar, from loose to tight.
ANY, OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, POWER, CAST, POSTFIX, ATOM = range(12)

# Operator → its level, and those that its sides must have.
_BINARY = {
    "or": (OR, OR, AND),
    "and": (AND, AND, NOT),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), (COMPARISON, SUM, SUM)),
    **dict.fromkeys(("+", "-"), (SUM, SUM, PRODUCT)),
    **dict.fromkeys(("*", "/"), (PRODUCT, PRODUCT, UNARY)),
    "**": (POWER, CAST, UNARY),
}


def expr(node: Node, level: int = ANY) -> str:
    """In brackets where the node binds less tightly than its place asks."""
    text, own = _text(node)
    return f"({text})" if own < level else text


def exprs(nodes: Iterable[Node]) -> str:
    return ", ".join(expr(node) for node in nodes)


def order_keys(keys: Iterable[ast.OrderKey]) -> str:
    return ", ".join(expr(key.value) + _desc(key.descending) for key in keys)


def choices(values: Iterable[Node]) -> str:
    return "{" + ", ".join(literal(value) for value in values) + "}"


def literal(node: Node) -> str:
    """A value where no expression may stand."""
    return _text(node)[0]


def call(node: ast.Call) -> str:
    arguments = ", ".join(_argument(argument) for argument in node.arguments)
    over = f" over ({exprs(node.over)})" if node.over is not None else ""
    return f"{name(node.function)}({arguments}){over}"


def _argument(node: ast.Argument) -> str:
    head = f"{label(node.name)} " if node.name is not None else ""
    return head + expr(node.value) + _desc(node.descending)


def _desc(descending: bool) -> str:
    return " desc" if descending else ""


def _text(node: Node) -> tuple[str, int]:
    """The text, and the level of the rule that it is read by."""
    match node:
        case ast.Number():
            text = number(node)
            return text, UNARY if text.startswith("-") else ATOM
        case ast.Text():
            return string(node.value), ATOM
        case ast.Flag():
            return "true" if node.value else "false", ATOM
        case ast.Null():
            return "null", ATOM
        case ast.Word():
            return name(node.value), ATOM
        case ast.Reference():
            return name(node.name), ATOM
        case ast.Call():
            return call(node), ATOM
        case ast.Quantifier():
            where = f" where {expr(node.where)}" if node.where is not None else ""
            return f"{name(node.quantifier)}({name(node.collection)}{where})", ATOM
        case ast.ListOf():
            return f"[{exprs(node.items)}]", ATOM
        case ast.Attribute():
            return f"{expr(node.base, POSTFIX)}.{name(node.name)}", POSTFIX
        case ast.Index():
            key = string(node.key) if isinstance(node.key, str) else str(node.key)
            return f"{expr(node.base, POSTFIX)}[{key}]", POSTFIX
        case ast.Cast():
            return f"{expr(node.operand, CAST)} as {name(node.type)}", CAST
        case _:
            return _operation(node)


def _operation(node: Node) -> tuple[str, int]:
    match node:
        case ast.Binary():
            own, left, right = _BINARY[node.operator]
            return f"{expr(node.left, left)} {node.operator} {expr(node.right, right)}", own
        case ast.Unary(operator="not"):
            return f"not {expr(node.operand, NOT)}", NOT
        case ast.Unary():
            return f"-{expr(node.operand, UNARY)}", UNARY
        case ast.Conditional():
            return f"if {expr(node.condition)} then {expr(node.then)} else {expr(node.otherwise)}", ANY
        case ast.Between():
            return f"{_side(node)} between {expr(node.low, SUM)} and {expr(node.high, SUM)}", COMPARISON
        case ast.In():
            return f"{_side(node)}{_not(node.negated)} in {choices(node.choices)}", COMPARISON
        case ast.InColumn():
            column = f"{name(node.table)}.{name(node.column)}"
            return f"{_side(node)}{_not(node.negated)} in {column}", COMPARISON
        case ast.Is():
            return f"{_side(node)} is{_not(node.negated)} {node.state}", COMPARISON
        case ast.Match():
            return f"{_side(node)} {'!~' if node.negated else '~'} {pattern(node.pattern.value)}", COMPARISON
        case _:
            raise TypeError(f"no expression: {type(node).__name__}")


def _side(node: ast.Between | ast.In | ast.InColumn | ast.Is | ast.Match) -> str:
    return expr(node.operand, SUM)


def _not(negated: bool) -> str:
    return " not" if negated else ""
