"""`expect`: conditions over finished rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from curatec.compiler import plan
from curatec.compiler.calls import CallChecker
from curatec.compiler.check_expr import ExprChecker, Report
from curatec.compiler.functions import WINDOWS
from curatec.compiler.scope import Scope
from curatec.compiler.types import Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Node
from curatec.dsl.source import Span

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "/")


@dataclass
class ExpectChecker:
    """`scopes` gives the scope at the end of each sink, and of the shared rows under "shared"."""

    report: Report
    scopes: Mapping[str, Scope]

    def error(self, code: str, message: str, span: Span, *help: str) -> None:  # noqa: A002
        self.report(Diagnostic(code, message, span, "", help))

    def condition(self, expr: ast.Expr) -> plan.Test | None:
        test = self._test(expr)
        if test is None:
            return None
        if not isinstance(test, plan.Compare) or test.operator in "+-*/":
            self.error("C0302", "an expectation compares something", expr.span, "for example `expect rows(sft) >= 100`")
            return None
        return test

    def _test(self, expr: Node) -> plan.Test | None:
        match expr:
            case ast.Number():
                return plan.Number(float(expr.amount))
            case ast.Binary(operator=operator, left=left, right=right) if operator in _COMPARISONS:
                return self._both(operator, left, right)
            case ast.Between(operand=operand, low=low, high=high):
                least = self._both(">=", operand, low)
                most = self._both("<=", operand, high)
                return plan.Compare("and", least, most) if least and most else None
            case ast.Call():
                return self._measure(expr)
        self.error(
            "C0304",
            "an expectation speaks of rows as a whole",
            expr.span,
            "write `rows(sft)`, `share(condition, sft)`, `mean(x, sft)`, with `over (k)` for each group",
        )
        return None

    def _both(self, operator: str, left: Node, right: Node) -> plan.Test | None:
        a, b = self._test(left), self._test(right)
        return plan.Compare(operator, a, b) if a is not None and b is not None else None

    def _measure(self, expr: ast.Call) -> plan.Test | None:
        name = expr.function.name
        if name == "rows":
            return self._rows(expr)
        entry = WINDOWS.get(name)
        if entry is None or name == "rank":
            words = [word for word in WINDOWS if word != "rank"]
            self.error(
                "C0204",
                f"`{name}` measures nothing",
                expr.function.span,
                *(did_you_mean(name, ["rows", *words]) or ("use `rows`, `share`, `mean`, …",)),
            )
            return None
        if entry.argument is None:
            return self._rows(expr)
        if not 1 <= len(expr.arguments) <= 2:
            self.error("C0304", f"`{name}` takes a value and a sink", expr.span, f"write `{name}(…, sft)`")
            return None
        sink = self._sink(expr.arguments[1]) if len(expr.arguments) == 2 else "shared"
        if sink is None:
            return None
        if sink == "preference":
            self.error("C0304", "a preference row has two runs", expr.span, "only `rows(preference)` can be asked")
            return None
        checker = ExprChecker(self.report, self.scopes[sink])
        value = CallChecker(checker).window_value(entry, expr.arguments[0])
        keys = tuple(checker.key(key) for key in expr.over or ())
        if Type.UNKNOWN in (value.type, *(k.type for k in keys)):
            return None
        return plan.Measure(name, value, None if sink == "shared" else sink, keys)

    def _rows(self, expr: ast.Call) -> plan.Test | None:
        if len(expr.arguments) > 1:
            self.error("C0304", "`rows` takes one sink", expr.span, "write `rows(sft)`")
            return None
        sink = self._sink(expr.arguments[0]) if expr.arguments else "shared"
        if sink is None:
            return None
        checker = ExprChecker(self.report, self.scopes[sink])
        keys = tuple(checker.key(key) for key in expr.over or ())
        return plan.Measure("count", None, None if sink == "shared" else sink, keys)

    def _sink(self, argument: ast.Argument) -> str | None:
        value = argument.value
        if isinstance(value, ast.Reference) and value.name in self.scopes:
            return value.name
        sinks = [name for name in self.scopes if name != "shared"]
        word = value.name if isinstance(value, ast.Reference) else ""
        self.error(
            "C0213",
            "this names no sink of the strategy",
            argument.span,
            *(did_you_mean(word, sinks) or (f"its sinks: {', '.join(sinks) or 'none'}",)),
        )
        return None
