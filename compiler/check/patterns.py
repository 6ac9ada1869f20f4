"""Regexes in specs: problems of the checked subset as diagnostics inside the literal."""

from __future__ import annotations

from collections.abc import Callable

from curatec.compiler.regex import RegexProblem, parse
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.source import Span


def check_pattern(report: Callable[[Diagnostic], None], pattern: ast.Text) -> bool:
    """Reports what is wrong with a pattern; true if anything is."""
    parsed = parse(pattern.value)
    problems = parsed if isinstance(parsed, tuple) else ()
    for problem in problems:
        report(_diagnostic(problem, pattern))
    return bool(problems)


def _diagnostic(problem: RegexProblem, pattern: ast.Text) -> Diagnostic:
    # Only a raw literal shows its value letter for letter; in another one the whole literal is marked.
    start = pattern.span.start + len('r"')
    exact = pattern.span.end - pattern.span.start == len(pattern.value) + len('r""')
    span = Span(start + problem.start, start + max(problem.end, problem.start + 1)) if exact else pattern.span
    return Diagnostic("C0306", problem.message, span, "", (problem.help,) if problem.help else ())
