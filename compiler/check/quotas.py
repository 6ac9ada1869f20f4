"""Steps that choose among rows by comparing them: duplicates, quotas, mixes, the split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curatec.compiler import plan
from curatec.compiler.core import Column, Order
from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean
from curatec.dsl.source import Span

if TYPE_CHECKING:
    from curatec.compiler.check.steps import StepChecker

DEFAULT_BEST = (Order(Column(Level.TRAJECTORY, "reward", Type.FLOAT), descending=True),)


def dedup(steps: StepChecker, s: ast.DedupExact) -> plan.Operation:
    keys = tuple(steps.expr().key(key) for key in s.on)
    return plan.Dedup(keys, steps.expr().orders(s.best) or DEFAULT_BEST)


def dedup_near(steps: StepChecker, s: ast.DedupNear) -> plan.Operation | None:
    on = steps.expr().text(s.on)
    over = tuple(steps.expr().key(key) for key in s.over)
    best = steps.expr().orders(s.best) or DEFAULT_BEST
    threshold = likeness(steps, s.threshold)
    if threshold is None or on.type is Type.UNKNOWN:
        return None
    return plan.DedupNear(on, threshold, over, best)


def likeness(steps: StepChecker, number: ast.Number) -> float | None:
    """A threshold of `near`: how alike texts are that count as the same."""
    if 0 < number.amount <= 1:
        return float(number.amount)
    steps.error("C0304", "a threshold is a likeness above 0 and up to 1", number.span, "try 0.8")
    return None


def limit(steps: StepChecker, s: ast.Limit) -> plan.Operation | None:
    count = steps.count(s.count, "a limit")
    keys = tuple(steps.expr().key(key) for key in s.per)
    order = steps.expr().orders(s.order)
    _lint_order(steps, s)
    return None if count is None else plan.Limit(count, keys, order)


def _lint_order(steps: StepChecker, s: ast.Limit) -> None:
    if not s.order:
        help_ = "say which ones matter: `order by reward desc`"
        steps.warn("C0402", "a limit without `order by` keeps arbitrary rows", steps.verb(s), help_)


def sample(steps: StepChecker, s: ast.Sample) -> plan.Operation | None:
    keys = tuple(steps.expr().key(key) for key in s.per)
    if s.amount.percent:
        if not 0 <= s.amount.value <= 100:
            steps.error("C0304", "a share is from 0% to 100%", s.amount.span, "write a share inside")
            return None
        return plan.Sample(None, s.amount.value / 100, keys, s.seed)
    count = steps.count(s.amount, "a sample", 0)
    return None if count is None else plan.Sample(count, None, keys, s.seed)


def split(steps: StepChecker, s: ast.Split) -> plan.Operation | None:
    by = steps.expr().key(s.by)
    shares = shares_of(steps, s.shares, s.span)
    names = [name for name, _ in shares]
    unknown = [share.name for share in s.shares if share.name.name not in ("train", "validation")]
    for name in unknown:
        held = name.name in ("dev", "holdout", "test")
        sealed = "sealed parts come from a `benchmark` or a `test set`, never from the same runs"
        help_ = sealed if held else "the parts are `train` and `validation`"
        steps.error("C0408", f"a split has no part `{name}`", name.span, help_)
    if "train" not in names and not unknown:
        steps.error("C0408", "a split needs `train`", steps.verb(s), "for example `{ train 90% validation 10% }`")
    near = steps.expr().text(ast.Reference.make(name=s.near.name, span=s.near.span)) if s.near is not None else None
    threshold = likeness(steps, s.near_threshold) if s.near_threshold is not None else None
    if Type.UNKNOWN in (by.type, near.type if near is not None else by.type) or (threshold is None) != (near is None):
        return None
    return plan.Split(by, shares, s.seed, near, threshold)


def shares_of(steps: StepChecker, shares: tuple[ast.Share, ...], span: Span) -> tuple[tuple[str, float], ...]:
    seen: set[str] = set()
    for share in shares:
        if share.name.name in seen:
            steps.error("C0408", f"`{share.name}` is given twice", share.name.span, "one share for each name")
        seen.add(share.name.name)
    total = sum(share.percent.value for share in shares)
    if abs(total - 100) > 1e-9:
        place = shares[0].span.to(shares[-1].span) if shares else span
        gap = f"{abs(100 - total):g}% {'are missing' if total < 100 else 'are too many'}"
        steps.error("C0408", f"the shares sum to {total:g}%, not 100%", place, gap)
    return tuple((share.name.name, share.percent.value / 100) for share in shares)


def limit_each(steps: StepChecker, s: ast.Limit) -> plan.Operation | None:
    """`limit N per each LIST`."""
    count = steps.count(s.count, "a limit")
    keys = [steps.expr().key(key) for key in s.per]
    order = steps.expr().orders(s.order)
    if keys[0].type not in (Type.TEXTS, Type.UNKNOWN):
        steps.error("C0304", "`per each` goes over a list", s.per[0].span, "for example `per each tool_names`")
        return None
    _lint_order(steps, s)
    return None if count is None or keys[0].type is Type.UNKNOWN else plan.LimitEach(count, keys[0], order)


def mix(steps: StepChecker, s: ast.Mix) -> plan.Operation | None:
    """Every source of the strategy has a share; tokens are those that the sink trains."""
    sources, before = steps.scope.words.get("source", ()), steps.errors
    for share in s.shares:
        if share.name.name not in sources:
            listed = f"its sources: {', '.join(sources)}"
            help_ = did_you_mean(share.name.name, sources) or (listed,)
            steps.error("C0201", f"the strategy has no source `{share.name}`", share.name.span, *help_)
    for name in sources:
        if steps.errors == before and name not in {share.name.name for share in s.shares}:
            steps.error("C0408", f"source `{name}` has no share", steps.verb(s), "list it too; `0%` leaves it out")
    shares = shares_of(steps, s.shares, s.span)
    if s.by is not None and s.by.name != "trained_tokens":
        steps.error(
            "C0409",
            f"a mix is not made by `{s.by}`",
            s.by.span,
            "write `by trained_tokens`, or leave it out: rows count",
        )
    elif s.by is not None and steps.place != "sft":
        steps.error("C0409", "`mix … by trained_tokens` stands in an sft sink", s.by.span, "leave it out: rows count")
    to = steps.count(s.to, "`to`") if s.to is not None else None
    if steps.errors > before:
        return None
    # What is trained is the sink's to say: `SinkChecker` gives its settings when it has read them all.
    return plan.Mix(shares, to, s.at_most, plan.Sft(plan.Loss()) if s.by is not None else None)
