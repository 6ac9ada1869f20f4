"""Steps that make rows from others: `decompose`, `augment`, and the `context` that a made row shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from curatec.compiler import plan
from curatec.compiler.core import Const
from curatec.compiler.types import Level
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean

if TYPE_CHECKING:
    from curatec.compiler.check.steps import StepChecker

AUGMENTATIONS = {
    "distractors": ("n", "pool", "copies"),
    "rebind": ("entities", "copies"),
    "recover": ("max_gap",),
}
ELIDED = "[…]"  # stands for a result where a `context` keeps all calls and gives no text


def decompose(steps: StepChecker, s: ast.Decompose) -> plan.Operation:
    if steps.decomposed:
        steps.error("C0406", "`decompose` stands twice", steps.verb(s), "its rows have one trained turn already")
    at = steps.expr(Level.TURN).condition(s.at)
    steps.decomposed, steps.context = True, s.context is not None
    return plan.Decompose(at, context(steps, s.context) if s.context is not None else None)


def context(steps: StepChecker, c: ast.Context) -> plan.Context:
    """What is listed is shown; dialogue always is."""
    if not c.task:
        help_ = "for example `context { system, task, last 5 results }`"
        steps.error("C0410", "a context shows the `task`, the first user turn", c.span, help_)
    elide = c.elide if c.elide is not None else ELIDED if c.all_calls else None
    return plan.Context(c.system, c.last_results or 0, elide)


def augment(steps: StepChecker, s: ast.Augment) -> plan.Operation | None:
    name = s.call.function
    if not steps.one_of("augmentation", name, tuple(AUGMENTATIONS), "C0204"):
        return None
    given = _arguments(steps, s.call)
    if name.name == "rebind" and steps.place == "rl":
        rebind_in_rl(steps, s)
    if steps.decomposed and name.name in ("recover", "rebind"):
        steps.error("C0406", f"`augment {name}` cannot follow `decompose`", steps.verb(s), "put it before")
    match name.name:
        case "distractors":
            n, copies = _count(steps, given, "n", 3), _count(steps, given, "copies", 1)
            pool = _word(steps, given.get("pool"))
            return None if n is None or copies is None or pool is None else plan.Distractors(n, pool, copies)
        case "rebind":
            entities, copies = _entities(steps, s.call, given), _count(steps, given, "copies", 1)
            return None if entities is None or copies is None else plan.Rebind(entities, copies)
    gap = _count(steps, given, "max_gap", 1)
    return None if gap is None else plan.Recover(gap)


def rebind_in_rl(steps: StepChecker, s: ast.Statement) -> None:
    """A rollout of a copy would meet the environment of its parent."""
    way_out = "a copy's task is not verified again; put it into `emit sft`"
    steps.error("C0409", "`augment rebind` does not stand in `emit rl`", steps.verb(s), way_out)


def _arguments(steps: StepChecker, call: ast.Call) -> dict[str, ast.Expr]:
    """Arguments by name; those without one are taken in the order of the list."""
    words = AUGMENTATIONS[call.function.name]
    given: dict[str, ast.Expr] = {}
    for position, argument in enumerate(call.arguments):
        name = argument.name or (words[position] if position < len(words) else None)
        if name is None or name not in words:
            known = ", ".join(f"`{word}`" for word in words)
            help_ = did_you_mean(name, words) if name is not None else ()
            told = f"argument `{name}`" if name is not None else "such argument"
            span = argument.span
            steps.error("C0304", f"`{call.function}` has no {told}", span, *(help_ or (f"it takes {known}",)))
        elif name in given:
            steps.error("C0112", f"`{name}` is given twice", argument.span, "keep one")
        else:
            given[name] = argument.value
    return given


def _count(steps: StepChecker, given: dict[str, ast.Expr], name: str, default: int) -> int | None:
    match expr := given.get(name):
        case None:
            return default
        case ast.Number():
            return steps.count(expr, f"`{name}`")
        case ast.Reference(name=word) if word in steps.scope.params:
            value = steps.scope.params[word]
            if isinstance(value, Const) and type(value.value) is int and value.value >= 1:
                return value.value
    steps.error("C0304", f"`{name}` is a whole number from 1 on", expr.span, "write 1 or more")
    return None


def _word(steps: StepChecker, expr: ast.Expr | None) -> Literal["all", "source"] | None:
    match expr:
        case None | ast.Reference(name="all"):
            return "all"
        case ast.Reference(name="source"):
            return "source"
    help_ = "`all` takes tools that any run shows, `source` those of the same source"
    steps.error("C0215", "no pool of tools is called so", expr.span, help_)
    return None


def _entities(steps: StepChecker, call: ast.Call, given: dict[str, ast.Expr]) -> tuple[str, ...] | None:
    example = 'for example `rebind(entities: ["user_id", "order_id"], copies: 2)`'
    expr = given.get("entities")
    if expr is None:
        steps.error("C0410", "`rebind` needs `entities`", call.span, example)
        return None
    if not isinstance(expr, ast.ListOf) or not expr.items:
        steps.error("C0304", "`entities` is a list of argument names", expr.span, example)
        return None
    names = [item.value for item in expr.items if isinstance(item, ast.Text)]
    if len(names) < len(expr.items):
        steps.error("C0304", "an entity is named by a text", expr.span, example)
        return None
    return tuple(dict.fromkeys(names))
