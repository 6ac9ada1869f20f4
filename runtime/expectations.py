"""`expect`: conditions over what would be published. All are asked, all failures told, one fails the compile."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import Window
from curatec.compiler.types import Type
from curatec.dsl.diagnostics import Diagnostic
from curatec.runtime.execute import Executed, written_rows
from curatec.runtime.sinks.written import Written
from curatec.runtime.state import State

Group = tuple[object, ...]
_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else float("nan"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One expectation: whether it held, and what was measured (the first group where it did not, if any)."""

    expectation: plan.Expectation
    held: bool
    measured: str


def ask(executed: Executed, written: Mapping[str, Written]) -> tuple[Outcome, ...]:
    """Every expectation of the plan, in written order."""
    asked = {m.sink for e in executed.plan.expectations for m in plan.nodes(e.condition) if isinstance(m, plan.Measure)}
    finished = {name: written_rows(executed, name) if name is not None else executed.shared for name in asked}
    return tuple(_outcome(e, finished, written) for e in executed.plan.expectations)


def failures(outcomes: tuple[Outcome, ...]) -> list[Diagnostic]:
    return [
        Diagnostic(
            "C0614",
            f"`expect {o.expectation.text.removeprefix('expect ')}` does not hold",
            o.expectation.span,
            o.measured,
            ("nothing was published; change the strategy or the expectation",),
            source=o.expectation.source,
        )
        for o in outcomes
        if not o.held
    ]


def _outcome(
    expectation: plan.Expectation, finished: Mapping[str | None, State], written: Mapping[str, Written]
) -> Outcome:
    values = _evaluate(expectation.condition, finished, written)
    failed = {group: value for group, value in values.items() if not value}
    sides = expectation.condition
    shown = ""
    if isinstance(sides, plan.Compare):
        group = next(iter(failed), next(iter(values), ()))
        left = _at(_evaluate(sides.left, finished, written), group)
        where = f" for {', '.join(map(str, group))}" if group else ""
        shown = f"it is {left:g}{where}" if left is not None else "there is nothing to measure"
    return Outcome(expectation, not failed, shown)


def _at(values: Mapping[Group, float], group: Group) -> float | None:
    return values.get(group, values.get(()))


def _evaluate(
    test: plan.Test, finished: Mapping[str | None, State], written: Mapping[str, Written]
) -> dict[Group, float]:
    """The value for each group; () for a condition without groups."""
    match test:
        case plan.Number(value=value):
            return {(): value}
        case plan.Measure():
            return _measure(test, finished, written)
        case plan.Compare():
            left, right = _evaluate(test.left, finished, written), _evaluate(test.right, finished, written)
            groups = [g for g in {**left, **right} if g != ()] or [()]
            compute = _OPERATORS[test.operator]
            pairs = ((g, _at(left, g), _at(right, g)) for g in groups)
            return {g: compute(a, b) for g, a, b in pairs if a is not None and b is not None}


def _measure(
    measure: plan.Measure, finished: Mapping[str | None, State], written: Mapping[str, Written]
) -> dict[Group, float]:
    if measure.sink is not None and measure.function == "count" and not measure.keys:
        return {(): float(sum(written[measure.sink].rows.values()))}
    state = finished[measure.sink]
    cores = [*measure.keys, *([measure.argument] if measure.argument is not None else [])]
    state, values = state.values(cores)
    keys = values[: len(measure.keys)]
    argument = values[-1] if measure.argument is not None else None
    if state.rows.is_empty():
        return {} if measure.keys else {(): 0.0} if measure.function in ("count", "sum", "share") else {}
    window = Window(
        measure.function,
        measure.argument,
        measure.keys,
        measure.argument.type if measure.argument is not None else Type.INT,
    )
    result = state.engine.aggregate(window, argument, keys, state.rows.height)
    if not keys:
        return {(): float(result[0])} if result[0] is not None else {}
    table = pl.DataFrame({f"k{i}": key for i, key in enumerate(keys)} | {"value": result}).unique(maintain_order=True)
    return {tuple(row[:-1]): float(row[-1]) for row in table.drop_nulls().sort(table.columns[:-1]).iter_rows()}
