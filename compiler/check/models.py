"""Steps that call a model: this version does not run them, their names, types and prompts are checked all the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span

if TYPE_CHECKING:
    from curatec.compiler.check.steps import StepChecker

# `{{` and `}}` are braces; `\u{41}` is an escape of the text.
_PLACEHOLDER = re.compile(r"\\u\{[0-9a-fA-F]+\}|\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PATH = re.compile(r"\s*[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*\s*")


def check_model_step(steps: StepChecker, s: ast.Judge | ast.Rewrite) -> None:
    """Reports what is wrong with a step; when nothing is, that it is not available yet."""
    before = steps.errors
    if isinstance(s, ast.Judge):
        _judge(steps, s)
    else:
        _rewrite(steps, s)
    if steps.errors == before:
        steps.later("`judge`" if isinstance(s, ast.Judge) else "`rewrite`", steps.verb(s))


def _model(steps: StepChecker, name: Name) -> None:
    steps.known("model", name, steps.declared.models, 'model name { endpoint … name "…" }')


def _rewrite(steps: StepChecker, s: ast.Rewrite) -> None:
    _model(steps, s.model)
    steps.settable(s.field)
    _placeholders(steps, s.prompt, Level.TURN)
    if s.where is not None:
        steps.expr(Level.TURN).condition(s.where)


def _judge(steps: StepChecker, s: ast.Judge) -> None:
    verdict = s.verdict
    _model(steps, s.model)
    _placeholders(steps, s.prompt, Level.TURN if s.turns else Level.TRAJECTORY)
    type_ = Type.INT if verdict.range else Type.TEXT if verdict.choices else Type.BOOL
    if s.turns:
        steps.scope = replace(steps.scope, judged={**steps.scope.judged, verdict.name.name: type_})
    else:
        steps.bind(verdict.name, type_)


def _placeholders(steps: StepChecker, prompt: ast.Text, level: Level) -> None:
    """`{name}` and `{meta.x}` in a prompt are names in scope (semantics 37)."""
    raw = steps.source.excerpt(prompt.span)
    exact = bool(raw)
    for found in _PLACEHOLDER.finditer(raw or prompt.value):
        start = prompt.span.start + found.start()
        span = Span(start, start + len(found[0])) if exact else prompt.span
        if found[0] in ("{{", "}}") or found[0].startswith("\\"):
            continue
        if found[1] is None or not _PATH.fullmatch(found[1]):
            steps.error("C0217", f"`{found[0]}` is no placeholder", span, "write `{{` and `}}` for braces of the text")
            continue
        steps.expr(level).value(_dotted(found[1], Span(span.start + 1, span.end - 1) if exact else span))


def _dotted(text: str, span: Span) -> ast.Expr:
    start = span.start + len(text) - len(text.lstrip())
    first, *rest = text.strip().split(".")
    expr: ast.Expr = ast.Reference(name=first, span=Span(start, start + len(first)))
    for name in rest:
        begin = expr.span.end + 1
        expr = ast.Attribute(
            base=expr,
            name=Name(name=name, span=Span(begin, begin + len(name))),
            span=Span(start, begin + len(name)),
        )
    return expr
