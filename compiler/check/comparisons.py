"""Comparisons: `==` and its like, `between`, `in { … }`, and what a text can never equal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from curatec.compiler.check import names
from curatec.compiler.check.coerce import UNKNOWN, agree, apply, compare_help, read_json
from curatec.compiler.check.scope import RESERVED
from curatec.compiler.check.times import read_time
from curatec.compiler.core import Column, Const, Core, Quantifier, walk
from curatec.compiler.fields import FIELDS, OUTCOMES, ROLES
from curatec.compiler.types import Level, Type, article
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean, nearest
from curatec.dsl.nodes import Node
from curatec.dsl.source import Span

if TYPE_CHECKING:
    from curatec.compiler.check.expr import ExprChecker

# `between` asks twice about its operand, so that each one in another doubles what is computed.
MOST_NODES = 1_000
_ENUMS = {(Level.TRAJECTORY, "outcome"): OUTCOMES, (Level.TURN, "role"): ROLES}


def compare(checker: ExprChecker, expr: ast.Binary) -> Core:
    """`a == b`, `a < b`."""
    left, right = expr.left, expr.right
    if isinstance(left, ast.Null) or isinstance(right, ast.Null):
        return _with_null(checker, expr.operator, expr.span)
    if _bare_word(checker, right, left) or _bare_word(checker, left, right):
        return UNKNOWN
    return _compared(checker, expr.operator, (left, checker.check(left)), (right, checker.check(right)), expr.span)


def between(checker: ExprChecker, expr: ast.Between) -> Core:
    """Both ends in. The operand is checked once, so that nesting stays linear."""
    if any(isinstance(side, ast.Null) for side in (expr.operand, expr.low, expr.high)):
        return _with_null(checker, ">=", expr.span)
    if any(_bare_word(checker, side, expr.operand) for side in (expr.low, expr.high)):
        return UNKNOWN
    operand = expr.operand, checker.check(expr.operand)
    if sum(1 for _ in islice(walk(operand[1]), MOST_NODES)) == MOST_NODES:
        help_ = "`derive` a column with the inner part, and compare that"
        return checker.error("C0304", "this expression is too large", expr.operand.span, "", help_)
    low = _compared(checker, ">=", operand, (expr.low, checker.check(expr.low)), expr.span)
    if low is UNKNOWN:
        return UNKNOWN
    high = _compared(checker, "<=", operand, (expr.high, checker.check(expr.high)), expr.span)
    return UNKNOWN if high is UNKNOWN else apply("and", low, high)


def _with_null(checker: ExprChecker, operator: str, span: Span) -> Const:
    asked = "is not null" if operator == "!=" else "is null"
    return checker.error("C0303", "nothing equals null", span, "never true", f"write `… {asked}`")


def _compared(
    checker: ExprChecker, operator: str, left: tuple[ast.Expr, Core], right: tuple[ast.Expr, Core], span: Span
) -> Core:
    a, b = left[1], right[1]
    if Type.UNKNOWN in (a.type, b.type):
        return UNKNOWN
    if {a.type, b.type} == {Type.JSON, Type.TIME}:
        help_ = "JSON has no times: compare texts, or numbers"
        return checker.error("C0301", "a JSON value is compared with a time", span, "", help_)
    a, b = agree(a, b)
    a, b = _time(checker, a, b, left[0]), _time(checker, b, a, right[0])
    if Type.UNKNOWN in (a.type, b.type):
        return UNKNOWN
    if Type.COLLECTION in (a.type, b.type):
        return checker.collection_as_value(span)
    if Type.TEXTS in (a.type, b.type):
        return checker.error("C0301", "a list is not compared", span, "", 'ask `has(tool_names, "x")` or `length(…)`')
    if a.type is not b.type and not (a.type.is_number and b.type.is_number):
        message = f"{article(a.type)} is compared with {article(b.type)}"
        return checker.error("C0301", message, span, "", *compare_help(a, b))
    if a.type is Type.BOOL and operator not in ("==", "!="):
        return checker.error("C0301", "true and false have no order", span, "", "compare with `==` or `!=`")
    _known_word(checker, a, b, right[0])
    _known_word(checker, b, a, left[0])
    return apply(operator, a, b)


def _time(checker: ExprChecker, core: Core, other: Core, expr: ast.Expr) -> Core:
    """A text beside a time reads as one."""
    if other.type is not Type.TIME or not isinstance(core, Const) or not isinstance(core.value, str):
        return core
    when = read_time(core.value)
    if when is None:
        help_ = 'write "2026-01-31" or "2026-01-31T09:00:00Z"'
        return checker.error("C0301", "this text is no time", expr.span, "", help_)
    return Const(when, Type.TIME)


# ---- sets ----


def one_of(checker: ExprChecker, expr: ast.In) -> Core:
    """`a in {…}`: constants of the operand's type."""
    operand = checker.check(expr.operand)
    words = _words(checker, operand)
    choices = [_choice(checker, choice, words) for choice in expr.choices]
    if operand.type is Type.UNKNOWN or any(c.type is Type.UNKNOWN for c in choices):
        return UNKNOWN
    if operand.type is Type.TEXTS:
        return checker.error("C0301", "a list is not compared", expr.span, "", 'ask `has(tool_names, "x")`')
    types = {"number" if c.type.is_number else c.type for c in choices}
    want = {"number": Type.FLOAT, Type.BOOL: Type.BOOL}.get(next(iter(types)), Type.TEXT)
    operand = read_json(operand, want if len(types) == 1 else Type.TEXT)
    for choice, written in zip(choices, expr.choices, strict=True):
        if choice.type is not operand.type and not (choice.type.is_number and operand.type.is_number):
            message = f"{article(operand.type)} is looked for among {article(choice.type)}"
            return checker.error("C0312", message, written.span, "", "a set holds constants of the field's type")
        _known_word(checker, operand, choice, written)
    found = apply("one_of", operand, *choices)
    return apply("not", found) if expr.negated else found


def _choice(checker: ExprChecker, choice: ast.Literal_, words: Sequence[str]) -> Core:
    if not isinstance(choice, ast.Word):
        return checker.check(choice)
    if choice.value in words:
        return Const(choice.value, Type.TEXT)
    if choice.value in checker.scope.params:
        return checker.scope.params[choice.value]
    if names.in_reach(checker.scope, choice.value):
        message = f"`{choice.value}` is a field, and a set holds constants"
        help_ = f'write "{choice.value}" for the text, or compare with `==`'
        return checker.error("C0312", message, choice.span, "", help_)
    return Const(choice.value, Type.TEXT)


# ---- texts with a fixed list of values ----


def _words(checker: ExprChecker, core: Core) -> tuple[str, ...]:
    """All values that a text can have, where they are known."""
    if isinstance(core, Quantifier):
        return _words(checker, core.pick) if core.pick is not None else ()
    if not isinstance(core, Column):
        return ()
    if core.level is Level.TRAJECTORY and core.name in checker.scope.words:
        return checker.scope.words[core.name]
    return _ENUMS.get((core.level, core.name), ())


def _known_word(checker: ExprChecker, column: Core, const: Core, expr: Node) -> None:
    """`role == "asistant"` can never hold."""
    words = _words(checker, column)
    if words and isinstance(const, Const) and isinstance(const.value, str) and const.value not in words:
        name = column.name if isinstance(column, Column) else "value"
        help_ = did_you_mean(const.value, words) or (f"one of {', '.join(words)}",)
        checker.error("C0216", f'no {name} is called "{const.value}"', expr.span, "never true", *help_)


def _bare_word(checker: ExprChecker, side: ast.Expr, other: ast.Expr) -> bool:
    """`role == assistant`: a text without its quotes. True when it is reported."""
    scope = checker.scope
    if not isinstance(side, ast.Reference) or side.name in scope.params or not _plain(other):
        return False
    core = checker.silent().check(other)
    words = _words(checker, core)
    if side.name in words and side.name in FIELDS[Level.TRAJECTORY]:
        text = f'write "{side.name}" for the text'
        checker.error("C0203", f"`{side.name}` is a field", side.span, "a text stands in quotes", text)
        return True
    if names.in_reach(scope, side.name) or side.name in (*RESERVED, *scope.tables):
        return False
    close = nearest(side.name, words)
    if close is None and (core.type is not Type.TEXT or did_you_mean(side.name, names.known(scope))):
        return False
    text = f'write "{close or side.name}" for the text'
    checker.error("C0203", f"unknown field `{side.name}`", side.span, "a text stands in quotes", text)
    return True


def _plain(expr: ast.Expr) -> bool:
    """A field or a path: little to check twice."""
    while isinstance(expr, (ast.Attribute, ast.Index)):
        expr = expr.base
    return isinstance(expr, (ast.Reference, ast.Quantifier))
