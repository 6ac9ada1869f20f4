"""Side data of a strategy: columns that are joined, values that stand in them, sealed sets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from curatec.compiler import plan
from curatec.compiler.check.coerce import UNKNOWN, apply, read_json
from curatec.compiler.core import Core, InTable, walk
from curatec.compiler.types import Type, article
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean
from curatec.dsl.source import Span

if TYPE_CHECKING:
    from curatec.compiler.check.expr import ExprChecker
    from curatec.compiler.check.steps import StepChecker

DEFAULT_NGRAM = 13  # words in a row, as papers about contamination count them
_TABLE = "table name { path … key … columns { … } }"


def join(steps: StepChecker, s: ast.Join) -> plan.Operation | None:
    """`join t on E [required]`: its columns are in scope from here on."""
    if not steps.known("table", s.table, steps.declared.tables, _TABLE):
        return None
    table = steps.declared.tables[s.table.name]
    if s.table.name in steps.scope.tables:
        steps.error("C0406", f"`{s.table}` is joined twice", s.table.span, "its columns are here already: keep one")
        return None
    on = steps.expr().key(s.on)
    steps.scope = replace(steps.scope, tables={**steps.scope.tables, s.table.name: dict(table.columns)})
    on = read_json(on, table.key_type)
    if Type.UNKNOWN in (on.type, table.key_type):
        return None
    if not _agree(on.type, table.key_type):
        message = f"{article(on.type)} is looked up in a column of {table.key_type}"
        steps.error("C0301", message, s.on.span, f"say what the key is: `columns {{ {table.key}: {on.type} }}`")
        return None
    return plan.Join(table.name, on, s.required, table.columns)


def _agree(value: Type, column: Type) -> bool:
    return value is column or (value.is_number and column.is_number)


def in_column(checker: ExprChecker, expr: ast.InColumn) -> Core:
    """`a in table.column`: no join is needed, and the key is a column like any other."""
    operand = checker.value(expr.operand)
    tables = checker.scope.listed
    if expr.table.name not in tables:
        help_ = did_you_mean(expr.table.name, tables) or (f"declare one: `{_TABLE}`",)
        return checker.error("C0201", f"no table is called `{expr.table}`", expr.table.span, "", *help_)
    columns = tables[expr.table.name]
    if expr.column.name not in columns:
        help_ = did_you_mean(expr.column.name, columns) or (f"it has {', '.join(columns)}",)
        message = f"table `{expr.table}` has no column `{expr.column}`"
        return checker.error("C0203", message, expr.column.span, "", *help_)
    column = columns[expr.column.name]
    operand = read_json(operand, Type.FLOAT if column.is_number else column)
    if Type.UNKNOWN in (operand.type, column):
        return UNKNOWN
    if not _agree(operand.type, column):
        message = f"{article(operand.type)} is looked up in a column of {column}"
        return checker.error(
            "C0301", message, expr.operand.span, "", f"`{expr.table}.{expr.column}` is {article(column)}"
        )
    found = InTable(operand, expr.table.name, expr.column.name)
    return apply("not", found) if expr.negated else found


def decontaminate(steps: StepChecker, s: ast.Decontaminate) -> plan.Operation | None:
    sealed = {*steps.declared.sealed, *steps.declared.benchmarks}
    if not steps.known("test set or benchmark", s.against, sorted(sealed), "test set name { path … }"):
        return None
    if s.against.name in steps.declared.benchmarks:
        steps.later("`decontaminate against` a benchmark", s.against.span)
        return None
    ngram = s.ngram if s.ngram is not None else DEFAULT_NGRAM
    if ngram < 3:
        steps.error("C0304", "`ngram` is at least 3 words", _number(steps, s), "8 to 13 are usual")
        return None
    return plan.Decontaminate(s.against.name, ngram)


def _number(steps: StepChecker, s: ast.Decontaminate) -> Span:
    """Where the count of words stands: the last word of the statement proper."""
    text = steps.source.excerpt(s.span)
    at = text.find("ngram")
    return Span(s.span.start + at, s.span.start + at + len("ngram")) if at >= 0 else s.span


def asked_tables(declared: dict[str, plan.Table], made: tuple[object, ...]) -> tuple[plan.Table, ...]:
    """The tables that the parts of a plan join or ask."""
    names: set[str] = set()
    for node in plan.nodes(made):
        if isinstance(node, plan.Join):
            names.add(node.table)
        if isinstance(node, InTable):
            names |= {n.table for n in walk(node) if isinstance(n, InTable)}
    return tuple(declared[name] for name in sorted(names))
