"""Expressions: names and types. `Expr` → `Core`, with every problem reported and none twice.

A part that is wrong becomes a value of type `UNKNOWN`, which agrees with everything, so that one mistake is one
message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatchmethod

from curatec.compiler.check import comparisons, names
from curatec.compiler.check.calls import CallChecker
from curatec.compiler.check.coerce import (
    UNKNOWN,
    alike,
    apply,
    as_condition_help,
    as_number_help,
    as_text_help,
    read_json,
    whole,
)
from curatec.compiler.check.patterns import check_pattern
from curatec.compiler.check.scope import Scope
from curatec.compiler.check.side import in_column
from curatec.compiler.core import Apply, Column, Const, Core, Order, Path, Quantifier
from curatec.compiler.fields import COLLECTIONS
from curatec.compiler.functions import FUNCTIONS
from curatec.compiler.types import Level, Type, article, kinds
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Node
from curatec.dsl.source import Span

Report = Callable[[Diagnostic], None]


class ExprChecker:
    """Checks expressions in one scope and reports to one list."""

    def __init__(self, report: Report, scope: Scope) -> None:
        self.report = report
        self.scope = scope

    def within(self, scope: Scope) -> ExprChecker:
        return ExprChecker(self.report, scope)

    def silent(self) -> ExprChecker:
        """The same without a report: to ask what something is."""
        return ExprChecker(lambda problem: None, self.scope)

    def error(self, code: str, message: str, span: Span, note: str = "", *help: str) -> Const:
        self.report(Diagnostic(code, message, span, note, help))
        return UNKNOWN

    # ---- entry points ----

    def condition(self, expr: ast.Expr) -> Core:
        """Must be true or false."""
        return self.as_type(expr, self.check(expr), Type.BOOL, "a condition")

    def number(self, expr: ast.Expr) -> Core:
        core = self.check(expr)
        core = read_json(core, Type.FLOAT)
        if not core.type.is_number and core.type not in (Type.UNKNOWN, Type.NULL):
            help_ = as_number_help(core)
            return self.error("C0301", f"this is {article(core.type)} where a number stands", expr.span, "", *help_)
        return core

    def value(self, expr: ast.Expr) -> Core:
        """Any scalar; a JSON value reads as text."""
        core = read_json(self.check(expr), Type.TEXT)
        if core.type is Type.COLLECTION:
            return self.collection_as_value(expr.span)
        return core

    def text(self, expr: ast.Expr) -> Core:
        core = self.value(expr)
        return self.as_type(expr, core, Type.TEXT, "a text")

    def key(self, expr: ast.Expr) -> Core:
        """What rows are grouped or compared by."""
        core = self.value(expr)
        if isinstance(core, Const) and core.type is not Type.UNKNOWN:
            return self.error("C0304", "a constant groups nothing", expr.span, "the same for every row", "name a field")
        return core

    def orders(self, keys: Sequence[ast.OrderKey]) -> tuple[Order, ...]:
        return tuple(Order(self._orderable(key.value), key.descending) for key in keys)

    def _orderable(self, expr: ast.Expr) -> Core:
        core = self.value(expr)
        if core.type is Type.TEXTS:
            return self.error("C0301", "a list of texts has no order", expr.span, "", "order by `length(…)` of it")
        if isinstance(core, Const) and core.type is not Type.UNKNOWN:
            return self.error("C0304", "a constant orders nothing", expr.span, "the same for every row", "name a field")
        return core

    def as_type(self, expr: ast.Expr, core: Core, want: Type, what: str) -> Core:
        core = read_json(core, want)
        if core.type is Type.NULL and want is not Type.BOOL:
            return Const(None, want)
        if core.type in (want, Type.UNKNOWN):
            return core
        if core.type is Type.COLLECTION:
            return self.collection_as_value(expr.span)
        help_ = as_condition_help(core) if want is Type.BOOL else as_text_help(core)
        return self.error("C0302", f"{what} is wanted here, and this is {article(core.type)}", expr.span, "", *help_)

    def collection_as_value(self, span: Span) -> Const:
        return self.error(
            "C0309",
            "a collection is no value",
            span,
            "",
            "write `count(calls where …)`, `any(calls where …)` or `calls is empty`",
        )

    # ---- expressions ----

    @singledispatchmethod
    def check(self, expr: Node) -> Core:
        raise AssertionError(expr)

    @check.register
    def _(self, expr: ast.Number) -> Core:
        value = expr.amount
        return Const(value, Type.FLOAT if isinstance(value, float) else Type.INT)

    @check.register
    def _(self, expr: ast.Text) -> Core:
        return Const(expr.value, Type.TEXT)

    @check.register
    def _(self, expr: ast.Flag) -> Core:
        return Const(expr.value, Type.BOOL)

    @check.register
    def _(self, expr: ast.Null) -> Core:
        return Const(None, Type.NULL)

    @check.register
    def _(self, expr: ast.Word) -> Core:
        return self.error("C0203", f"`{expr.value}` is no name here", expr.span, "", f'write "{expr.value}" for a text')

    @check.register
    def _(self, expr: ast.Reference) -> Core:
        return names.resolve(self, expr)

    @check.register
    def _(self, expr: ast.Attribute) -> Core:
        return names.attribute(self, expr)

    @check.register
    def _(self, expr: ast.Index) -> Core:
        base = self.check(expr.base)
        return self.path_step(base, expr.key, expr.span)

    def path_step(self, base: Core, key: str | int, span: Span) -> Core:
        match base:
            case Column(type=Type.JSON):
                return Path(base, (key,))
            case Path(type=Type.JSON):
                return replace(base, steps=(*base.steps, key))
            case Quantifier(kind="first" | "last", pick=pick) if pick is not None and pick.type is Type.JSON:
                picked = self.path_step(pick, key, span)
                return replace(base, pick=picked, type=picked.type)
        if base.type is Type.UNKNOWN:
            return UNKNOWN
        return self.error(
            "C0307", f"{article(base.type)} has nothing inside", span, "", "paths go into `meta` and `args`"
        )

    @check.register
    def _(self, expr: ast.ListOf) -> Core:
        items = [self.check(item) for item in expr.items]
        if any(item.type is Type.UNKNOWN for item in items):
            return UNKNOWN
        texts = [c.value for c in items if isinstance(c, Const) and isinstance(c.value, str)]
        if len(texts) < len(items):
            return self.error("C0312", "a list holds texts in quotes", expr.span, "", 'for example `["a", "b"]`')
        return Const(tuple(texts), Type.TEXTS)

    @check.register
    def _(self, expr: ast.Call) -> Core:
        return CallChecker(self).call(expr)

    @check.register
    def _(self, expr: ast.Quantifier) -> Core:
        if expr.quantifier in ("first", "last"):
            found = self.quantifier(expr, lambda inner: None)
            if found is UNKNOWN:
                return UNKNOWN
            return self.error(
                "C0309",
                f"`{expr.quantifier}(…)` is a whole row",
                expr.span,
                "",
                f"read a field of it: `{expr.quantifier}({expr.collection} where …).content`",
            )
        return self.quantifier(expr, lambda inner: None)

    def quantifier(self, expr: ast.Quantifier, pick: Callable[[ExprChecker], Core | None]) -> Core:
        """A quantifier; `pick` checks what is read from the row that `first` or `last` finds."""
        level = self._collection_level(expr)
        if level is None:
            return UNKNOWN
        inner = self.within(self.scope.inside(level))
        where = inner.condition(expr.where) if expr.where is not None else None
        picked = pick(inner)
        if picked is UNKNOWN or (where is not None and where.type is Type.UNKNOWN):
            return UNKNOWN
        kind = expr.quantifier
        if kind in ("first", "last"):
            if picked is None:
                return Const(None, Type.NULL)
            return Quantifier(kind, self.scope.level, level, where, picked.type, picked)
        type_ = Type.INT if kind == "count" else Type.BOOL
        return Quantifier(kind, self.scope.level, level, where, type_)

    def _collection_level(self, expr: ast.Quantifier) -> Level | None:
        name, here = expr.collection.name, self.scope.level
        span = expr.collection.span
        if name not in COLLECTIONS or name == "tools":
            help_ = did_you_mean(name, ("turns", "calls")) or ("a trajectory holds `turns` and `calls`",)
            self.error("C0203", f"`{name}` is no collection", span, "", *help_)
            return None
        if here is Level.TURN and name == "turns":
            self.error(
                "C0211", "turns inside turns cannot be asked for", span, "", "use `prev`, `next`, `caller` or `reply`"
            )
            return None
        if here in (Level.CALL, Level.TOOL):
            self.error(
                "C0211", f"a {here} holds no {name}", span, "", f"here are the fields of a {here}, no rows below it"
            )
            return None
        return COLLECTIONS[name]

    @check.register
    def _(self, expr: ast.Unary) -> Core:
        if expr.operator == "not":
            return apply("not", self.condition(expr.operand))
        operand = self.number(expr.operand)
        return UNKNOWN if operand.type is Type.UNKNOWN else apply("negative", operand)

    @check.register
    def _(self, expr: ast.Binary) -> Core:
        if expr.operator in ("and", "or"):
            return apply(expr.operator, self.condition(expr.left), self.condition(expr.right))
        if expr.operator in ("+", "-", "*", "/", "**"):
            return self._arithmetic(expr)
        return comparisons.compare(self, expr)

    def _arithmetic(self, expr: ast.Binary) -> Core:
        left, right = self.check(expr.left), self.check(expr.right)
        if expr.operator == "+" and Type.TEXT in (left.type, right.type):
            return self.error("C0311", "`+` adds numbers", expr.span, "", "put texts together with `concat(a, b)`")
        left, right = self.number_of(expr.left, left), self.number_of(expr.right, right)
        return UNKNOWN if Type.UNKNOWN in (left.type, right.type) else apply(expr.operator, left, right)

    def number_of(self, expr: ast.Expr, core: Core) -> Core:
        core = read_json(core, Type.FLOAT)
        if core.type.is_number or core.type is Type.UNKNOWN:
            return core
        help_ = as_number_help(core)
        return self.error("C0311", f"this is {article(core.type)} where a number stands", expr.span, "", *help_)

    @check.register
    def _(self, expr: ast.Between) -> Core:
        return comparisons.between(self, expr)

    @check.register
    def _(self, expr: ast.In) -> Core:
        return comparisons.one_of(self, expr)

    @check.register
    def _(self, expr: ast.InColumn) -> Core:
        return in_column(self, expr)

    @check.register
    def _(self, expr: ast.Is) -> Core:
        operand = whole(self.check(expr.operand))
        if operand.type is Type.UNKNOWN:
            return UNKNOWN
        if operand.type is Type.COLLECTION:
            if expr.state == "null":
                return self.error("C0309", "`calls` is never null", expr.span, "", "write `calls is empty`")
            return Quantifier("any" if expr.negated else "none", Level.TURN, Level.CALL, None, Type.BOOL)
        if expr.state == "empty" and operand.type not in (Type.TEXT, Type.TEXTS, Type.JSON):
            return self.error("C0301", f"{article(operand.type)} is never empty", expr.span, "", "write `is null`")
        found = apply(f"is_{expr.state}", operand)
        return apply("not", found) if expr.negated else found

    @check.register
    def _(self, expr: ast.Match) -> Core:
        operand = self.text(expr.operand)
        problem = check_pattern(self.report, expr.pattern)
        if operand.type is Type.UNKNOWN or problem:
            return UNKNOWN
        found = Apply("matches", (operand,), Type.BOOL, (("pattern", expr.pattern.value),))
        return apply("not", found) if expr.negated else found

    @check.register
    def _(self, expr: ast.Conditional) -> Core:
        condition = self.condition(expr.condition)
        then, otherwise = self.value(expr.then), self.value(expr.otherwise)
        if Type.UNKNOWN in (condition.type, then.type, otherwise.type):
            return UNKNOWN
        if not alike(then.type, otherwise.type):
            return self.error(
                "C0313",
                f"one branch is {article(then.type)}, the other {article(otherwise.type)}",
                expr.span,
                "",
                "both branches give one type",
            )
        return apply("if", condition, then, otherwise)

    @check.register
    def _(self, expr: ast.Cast) -> Core:
        operand = self.check(expr.operand)
        if expr.type.name not in ("int", "float", "text"):
            return self.error(
                "C0304",
                f"`as {expr.type}` does not exist",
                expr.type.span,
                "",
                "cast with `as int`, `as float` or `as text`",
            )
        if operand.type is Type.UNKNOWN:
            return UNKNOWN
        entry = FUNCTIONS[f"as_{expr.type}"]
        operand = read_json(operand, Type.TEXT)
        if operand.type not in entry.parameters[0].types and expr.type.name != operand.type:
            message = f"{article(operand.type)} cannot be read `as {expr.type}`"
            return self.error(
                "C0304", message, expr.span, "", f"`as {expr.type}` reads {kinds(entry.parameters[0].types)}"
            )
        return operand if expr.type.name == operand.type else apply(entry.name, operand)
