"""Names: what a bare word or a dotted one means in a scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from curatec.compiler.check.coerce import UNKNOWN
from curatec.compiler.check.scope import RESERVED, Scope
from curatec.compiler.core import Column, Const, Core, Path, Quantifier
from curatec.compiler.fields import COLLECTIONS, FIELDS, NEIGHBOURS, SIGNALS
from curatec.compiler.types import Level, Type, article
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean
from curatec.dsl.source import Span

if TYPE_CHECKING:
    from curatec.compiler.check.expr import ExprChecker


def level_fields(scope: Scope, level: Level) -> dict[str, Type]:
    """The columns of a level with their types, derived ones included."""
    fields = {name: field.type for name, field in FIELDS[level].items()}
    if level is Level.TRAJECTORY:
        fields |= scope.derived
    if level is Level.TURN:
        fields |= scope.judged
    if scope.frozen is not None and level is Level.TRAJECTORY:
        fields = {name: type_ for name, type_ in fields.items() if name in scope.frozen}
    return fields


def known(scope: Scope) -> list[str]:
    """Every word that could stand as a value here, for «did you mean»."""
    return [*level_fields(scope, scope.level), *scope.params, *scope.tables]


def bases(scope: Scope) -> list[str]:
    """Every word that could stand before a dot here."""
    neighbours = NEIGHBOURS if scope.level is Level.TURN else ()
    return [*known(scope), *neighbours, *map(str, scope.levels[:-1]), *scope.listed, "signal"]


def in_reach(scope: Scope, name: str, *, any_level: bool = True) -> bool:
    levels = scope.levels if any_level else (scope.level,)
    return name in scope.params or any(name in level_fields(scope, level) for level in levels)


def resolve(checker: ExprChecker, expr: ast.Reference) -> Core:
    """A bare name: a field of this level, a parameter, or an error with the nearest right word."""
    scope, name = checker.scope, expr.name
    fields = level_fields(scope, scope.level)
    if name in fields:
        return _field(checker, scope.level, name, fields[name], expr.span)
    if name in scope.params:
        return scope.params[name]
    outer = next((level for level in reversed(scope.levels[:-1]) if name in level_fields(scope, level)), None)
    if outer is not None:
        return checker.error(
            "C0205",
            f"`{name}` is a field of the {outer}, not of a {scope.level}",
            expr.span,
            "",
            f"write `{outer}.{name}`",
        )
    if name in scope.tables:
        columns = ", ".join(f"`{name}.{column}`" for column in scope.tables[name])
        return checker.error("C0203", f"`{name}` is a table", expr.span, "", f"read a column of it: {columns}")
    if name in RESERVED:
        return checker.error("C0203", f"`{name}` is no value", expr.span, "", f"read a field of it: `{name}.…`")
    return _unknown_field(checker, scope.level, name, expr.span)


def _unknown_field(checker: ExprChecker, level: Level, name: str, span: Span, words: Iterable[str] = ()) -> Const:
    help_ = _elsewhere(level, name) or did_you_mean(name, words or known(checker.scope))
    if not help_:
        help_ = (f"`curatec explain C0203` lists the fields of a {level}",)
    note = f"a {level} has no such field"
    if checker.scope.frozen is not None and level is Level.TRAJECTORY and name in FIELDS[level]:
        note = "it is not known yet when a source is read"
        help_ = ("ask what one run holds: `reward`, `meta.…`, `final_answer`, `any(turns where …)`",)
    return checker.error("C0203", f"unknown field `{name}`", span, note, *help_)


def _elsewhere(level: Level, name: str) -> tuple[str, ...]:
    """What to ask when the name is right and the row is not."""
    if level is Level.TRAJECTORY and name in COLLECTIONS:
        return (f"ask about them: `any({name} where …)`, `count({name}) > 0`",) if name != "tools" else ()
    if level is Level.TRAJECTORY and name in FIELDS[Level.TURN]:
        return (f"a turn has one: `any(turns where {name} …)`, `last(turns where …).{name}`",)
    if level is Level.TRAJECTORY and name in FIELDS[Level.CALL]:
        return (f"a call has one: `any(calls where {name} …)`",)
    if level is Level.TURN and name in FIELDS[Level.CALL]:
        return (f"a call of the turn has one: `any(calls where {name} …)`",)
    return ()


def _field(checker: ExprChecker, level: Level, name: str, type_: Type, span: Span) -> Core:
    if level is Level.TRAJECTORY and name == "failure" and not checker.scope.tagged:
        help_ = "put `tag failure` before this step, and declare families"
        if checker.scope.family:
            help_ = "a family cannot ask for other families: write its condition out"
        return checker.error("C0209", "`failure` is not set here", span, "", help_)
    return Column(level, name, type_)


def attribute(checker: ExprChecker, expr: ast.Attribute) -> Core:
    """`prev.content`, `trajectory.reward`, `verdicts.resolved`, `meta.x`, `last(turns where …).content`."""
    base, name = expr.base, expr.name.name
    if isinstance(base, ast.Reference):
        found = _qualified(checker, base, expr)
        if found is not None:
            return found
        if base.name not in (*known(checker.scope), *RESERVED) and not in_reach(checker.scope, base.name):
            return _unknown_field(checker, checker.scope.level, base.name, base.span, bases(checker.scope))
    if isinstance(base, ast.Quantifier) and base.quantifier in ("first", "last"):
        return checker.quantifier(
            base, lambda inner: _picked(inner, ast.Reference.make(name=name, span=expr.name.span))
        )
    core = checker.check(base)
    match core:
        case Column(type=Type.JSON) | Path(type=Type.JSON):
            return checker.path_step(core, name, expr.span)
        case Quantifier(pick=pick) if pick is not None and pick.type is Type.JSON:
            picked = checker.path_step(pick, name, expr.span)
            return replace(core, pick=picked, type=picked.type)
    if core.type is Type.UNKNOWN:
        return UNKNOWN
    help_ = "only `meta` and `args` have something inside"
    return checker.error("C0307", f"{article(core.type)} has no field `{name}`", expr.name.span, "", help_)


def _picked(inner: ExprChecker, field: ast.Reference) -> Core:
    """The field that `first(…)` or `last(…)` reads."""
    core = resolve(inner, field)
    if core.type is Type.COLLECTION:
        help_ = "read `calls_text`, or ask `any(calls where …)` inside the condition"
        return inner.error("C0309", f"the {field.name} of a turn are no value", field.span, "", help_)
    return core


def _qualified(checker: ExprChecker, base: ast.Reference, expr: ast.Attribute) -> Core | None:
    scope, name = checker.scope, expr.name.name
    if base.name in level_fields(scope, scope.level):
        return None
    if base.name in NEIGHBOURS:
        return _neighbour(checker, base, expr)
    if base.name in (Level.TRAJECTORY, Level.TURN):
        return _outer(checker, Level(base.name), base, expr)
    if base.name == "signal":
        return _signal(checker, expr)
    if base.name in scope.tables:
        columns = scope.tables[base.name]
        if name not in columns:
            return checker.error(
                "C0203",
                f"table `{base.name}` has no column `{name}`",
                expr.name.span,
                "",
                *(did_you_mean(name, columns) or (f"it has {', '.join(columns)}",)),
            )
        return Column(Level.TRAJECTORY, f"{base.name}.{name}", columns[name])
    if base.name in scope.listed:
        return checker.error(
            "C0209",
            f"table `{base.name}` is not joined here",
            base.span,
            "",
            f"put `join {base.name} on …` before this step",
        )
    return None


def _neighbour(checker: ExprChecker, base: ast.Reference, expr: ast.Attribute) -> Core:
    name = expr.name.name
    if checker.scope.level is not Level.TURN:
        where = "inside `turns …`" if checker.scope.level is not Level.CALL else "on a turn, outside `calls …`"
        return checker.error("C0212", f"`{base.name}` is a neighbour of a turn", base.span, "", f"use it {where}")
    if name in NEIGHBOURS:
        return checker.error(
            "C0212", "a neighbour's neighbour cannot be asked for", expr.span, "", "one step away is as far as it goes"
        )
    fields = level_fields(checker.scope, Level.TURN)
    if name not in fields:
        return _unknown_field(checker, Level.TURN, name, expr.name.span, fields)
    if fields[name] is Type.COLLECTION:
        return checker.error(
            "C0212",
            f"the calls of `{base.name}` cannot be asked for",
            expr.span,
            "",
            f"compare `{base.name}.calls_text`",
        )
    return Column(Level.TURN, name, fields[name], via=base.name)  # type: ignore[arg-type]


def _outer(checker: ExprChecker, level: Level, base: ast.Reference, expr: ast.Attribute) -> Core:
    scope, name = checker.scope, expr.name.name
    if level not in scope.levels:
        help_ = "its fields are asked by their bare names" if level is Level.TRAJECTORY else _around(scope)
        return checker.error("C0205", f"there is no {level} around this expression", base.span, "", help_)
    fields = level_fields(scope, level)
    if name not in fields:
        return _unknown_field(checker, level, name, expr.name.span, fields)
    if fields[name] is Type.COLLECTION:
        help_ = f"compare `{base.name}.calls_text`"
        return checker.error("C0309", f"the {name} of a {level} are no value", expr.span, "", help_)
    return _field(checker, level, name, fields[name], expr.name.span)


def _around(scope: Scope) -> str:
    if scope.level is Level.TRAJECTORY:
        return "ask about turns with `any(turns where …)`"
    return f"here is a {scope.level} of a trajectory"


def _signal(checker: ExprChecker, expr: ast.Attribute) -> Core:
    name = expr.name.name
    if name not in SIGNALS:
        words = ", ".join(f"`signal.{word}`" for word in SIGNALS)
        help_ = did_you_mean(name, SIGNALS) or (f"there are {words}",)
        return checker.error("C0203", f"unknown signal `{name}`", expr.name.span, "", *help_)
    if not checker.scope.signals:
        return checker.error(
            "C0209",
            f"`signal.{name}` exists only under `evolve`",
            expr.span,
            "",
            "a file compiled alone must not depend on a run's hidden state",
        )
    return checker.error(
        "C0501",
        "rollout signals are not available yet",
        expr.span,
        "",
        "take it out to compile; this version parses, formats and checks it",
    )
