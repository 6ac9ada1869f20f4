"""Steps that this version does not run yet: their names and types are checked all the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span

if TYPE_CHECKING:
    from curatec.compiler.check.steps import StepChecker

AUGMENTATIONS = {
    "distractors": ("n", "pool", "copies"),
    "rebind": ("entities", "copies"),
    "recover": ("max_gap",),
}
REDACTIONS = ("pii", "secrets")
REDACTED = ("all", "content", "arguments", "results", "reasoning", "system")
# `{{` and `}}` are braces; `\u{41}` is an escape of the text.
_PLACEHOLDER = re.compile(r"\\u\{[0-9a-fA-F]+\}|\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PATH = re.compile(r"\s*[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*\s*")


def check_later(steps: StepChecker, s: ast.Statement) -> None:
    """Reports what is wrong with a step; when nothing is, that it is not available yet."""
    before = steps.errors
    what = _check(steps, s)
    if steps.errors == before:
        steps.later(what, steps.verb(s))


def _check(steps: StepChecker, s: ast.Statement) -> str:
    """Check one step; what it is called."""
    match s:
        case ast.TurnsCut():
            steps.expr(Level.TURN).condition(s.where)
            return "`turns cut`"
        case ast.Join():
            if steps.known("table", s.table, steps.declared.tables, "table name { path … key … columns { … } }"):
                columns = steps.declared.tables[s.table.name]
                steps.expr().key(s.on)
                steps.scope = replace(steps.scope, tables={**steps.scope.tables, s.table.name: columns})
            return "`join`"
        case ast.Render():
            return "`render`"
        case ast.View():
            steps.one_of("view", s.side, ("agent", "user"))
            return "`view`"
        case ast.Redact():
            for family in s.families:
                steps.one_of("family of redactions", family, REDACTIONS)
            steps.one_of("place to redact", s.scope, REDACTED)
            return "`redact`"
        case ast.DedupNear():
            steps.expr().text(s.on)
            for key in s.over:
                steps.expr().key(key)
            steps.expr().orders(s.best)
            if not 0 < s.threshold.value <= 1:
                steps.error("C0304", "a threshold is a likeness above 0 and up to 1", s.threshold.span, "try 0.8")
            return "`dedup near`"
        case ast.Limit():
            keys = [steps.expr().key(key) for key in s.per]
            steps.expr().orders(s.order)
            if keys and keys[0].type not in (Type.TEXTS, Type.UNKNOWN):
                steps.error("C0304", "`per each` goes over a list", s.per[0].span, "for example `per each tool_names`")
            return "`limit … per each`"
        case ast.Mix():
            _mix(steps, s)
            return "`mix`"
        case ast.Decompose():
            steps.expr(Level.TURN).condition(s.at)
            steps.decomposed, steps.context = True, s.context is not None
            return "`decompose`"
        case ast.Augment():
            _augment(steps, s)
            return "`augment`"
        case ast.Judge():
            _judge(steps, s)
            return "`judge`"
        case ast.Rewrite():
            _model(steps, s.model)
            steps.settable(s.field)
            _placeholders(steps, s.prompt, Level.TURN)
            if s.where is not None:
                steps.expr(Level.TURN).condition(s.where)
            return "`rewrite`"
        case ast.Decontaminate():
            steps.known("test set or benchmark", s.against, steps.declared.sealed, "test set name { path … }")
            return "`decontaminate`"
    raise AssertionError(s)


def _model(steps: StepChecker, name: Name) -> None:
    steps.known("model", name, steps.declared.models, 'model name { endpoint … name "…" }')


def _mix(steps: StepChecker, s: ast.Mix) -> None:
    sources, before = steps.scope.words.get("source", ()), steps.errors
    for share in s.shares:
        if share.name.name not in sources:
            listed = f"its sources: {', '.join(sources)}"
            help_ = did_you_mean(share.name.name, sources) or (listed,)
            steps.error("C0201", f"the strategy has no source `{share.name}`", share.name.span, *help_)
    for name in sources:
        if steps.errors == before and name not in {share.name.name for share in s.shares}:
            steps.error("C0408", f"source `{name}` has no share", steps.verb(s), "list it too; `0%` leaves it out")
    steps.shares(s.shares, s.span)
    if s.by is not None and (s.by.name != "trained_tokens" or steps.place != "sft"):
        steps.error("C0409", "`mix … by trained_tokens` stands in an sft sink", s.by.span, "leave it out: rows count")


def _augment(steps: StepChecker, s: ast.Augment) -> None:
    name = s.call.function
    if not steps.one_of("augmentation", name, tuple(AUGMENTATIONS), "C0204"):
        return
    words = AUGMENTATIONS[name.name]
    for argument in s.call.arguments:
        if argument.name is not None and argument.name not in words:
            known = ", ".join(f"`{word}`" for word in words)
            help_ = did_you_mean(argument.name, words) or (f"it takes {known}",)
            steps.error("C0304", f"`{name}` has no argument `{argument.name}`", argument.span, *help_)
    if name.name == "rebind" and steps.place == "rl":
        way_out = "a copy's task is not verified again; put it into `emit sft`"
        steps.error("C0409", "`augment rebind` does not stand in `emit rl`", name.span, way_out)
    if steps.decomposed and name.name in ("recover", "rebind"):
        steps.error("C0406", f"`augment {name}` cannot follow `decompose`", steps.verb(s), "put it before")


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
