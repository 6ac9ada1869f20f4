"""`expect`: conditions over finished rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from curatec.compiler import plan
from curatec.compiler.check.calls import OTHER_NAMES, CallChecker
from curatec.compiler.check.expr import ExprChecker, Report
from curatec.compiler.check.scope import Scope
from curatec.compiler.functions import WINDOWS
from curatec.compiler.types import Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Node
from curatec.dsl.source import Span

_ARITHMETIC = ("+", "-", "*", "/")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_JOINS = ("and", "or")


@dataclass
class ExpectChecker:
    """`scopes` gives the scope at the end of each sink, and of the shared rows under "shared"."""

    report: Report
    scopes: Mapping[str, Scope]
    misnamed: frozenset[str] = frozenset()  # sinks that do not exist and are reported where they are emitted

    def error(self, code: str, message: str, span: Span, *help: str) -> None:
        self.report(Diagnostic(code, message, span, "", help))

    def condition(self, expr: ast.Expr) -> plan.Test | None:
        """A comparison of rows as a whole, or several joined by `and` and `or`."""
        match expr:
            case ast.Binary(operator=operator, left=left, right=right) if operator in _JOINS:
                return _compare(operator, self.condition(left), self.condition(right))
            case ast.Binary(operator=operator, left=left, right=right) if operator in _COMPARISONS:
                return _compare(operator, self._number(left), self._number(right))
            case ast.Between(operand=operand, low=low, high=high):
                value = self._number(operand)
                least, most = self._number(low), self._number(high)
                return _compare("and", _compare(">=", value, least), _compare("<=", value, most))
        self.error("C0302", "an expectation compares something", expr.span, "for example `expect rows(sft) >= 100`")
        return None

    def _number(self, expr: Node) -> plan.Test | None:
        match expr:
            case ast.Number():
                return plan.Number(float(expr.amount))
            case ast.Reference(name=name) if name in self.scopes["shared"].params:
                value = self.scopes["shared"].params[name].value
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    return plan.Number(float(value))
                self.error("C0304", f"`{name}` is no number", expr.span, "compare with a number")
                return None
            case ast.Unary(operator="-", operand=operand):
                return _compare("-", plan.Number(0.0), self._number(operand))
            case ast.Binary(operator=operator, left=left, right=right) if operator in _ARITHMETIC:
                return _compare(operator, self._number(left), self._number(right))
            case ast.Call():
                return self._measure(expr)
        self.error(
            "C0304",
            "an expectation speaks of rows as a whole",
            expr.span,
            "write `rows(sft)`, `share(condition, sft)` or `mean(x, sft)`, with `over (k)` for each group",
        )
        return None

    def _measure(self, expr: ast.Call) -> plan.Test | None:
        name = expr.function.name
        if name == "rows":
            return self._rows(expr)
        entry = WINDOWS.get(name)
        if entry is None or name == "rank":
            words = [word for word in WINDOWS if word != "rank"]
            usual = (f"write `{OTHER_NAMES[name]}(…)`",) if OTHER_NAMES.get(name) in WINDOWS else ()
            self.error(
                "C0204",
                f"`{name}` measures nothing",
                expr.function.span,
                *(usual or did_you_mean(name, ["rows", *words]) or ("use `rows`, `share`, `mean`, …",)),
            )
            return None
        if entry.argument is None:
            return self._rows(expr)
        lone = expr.arguments[0].value if len(expr.arguments) == 1 else None
        if not 1 <= len(expr.arguments) <= 2 or (isinstance(lone, ast.Reference) and lone.name in self.scopes):
            self.error("C0304", f"`{name}` takes a value and a sink", expr.span, f"write `{name}(…, sft)`")
            return None
        if any(argument.name is not None or argument.descending for argument in expr.arguments):
            self.error("C0304", f"`{name}` takes plain arguments", expr.span, f"write `{name}(…, sft)`")
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
        if isinstance(value, ast.Reference) and value.name in self.misnamed:
            return None
        sinks = [name for name in self.scopes if name != "shared"]
        word = value.name if isinstance(value, ast.Reference) else ""
        self.error(
            "C0213",
            "this names no sink of the strategy",
            argument.span,
            *(did_you_mean(word, sinks) or (f"its sinks: {', '.join(sinks) or 'none'}",)),
        )
        return None


def _compare(operator: str, left: plan.Test | None, right: plan.Test | None) -> plan.Test | None:
    return plan.Compare(operator, left, right) if left is not None and right is not None else None
