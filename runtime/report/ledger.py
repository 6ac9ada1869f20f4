"""What the ledger says of each label: counts along the way, and runs to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import columns
from curatec.compiler.types import Level
from curatec.runtime.execute import Executed
from curatec.runtime.ledger import StepCount
from curatec.runtime.sinks.written import Written

EXAMPLES = 3  # of each label
ACTIONS = ("dropped", "edited", "created", "replaced")  # of steps
RULES = 20  # rules and reasons of a sink that are listed

Key = tuple[str | None, str, str]  # branch (None: shared), label or rule, action


@dataclass(frozen=True, slots=True)
class Example:
    """One run that a label is about, and the row of the ledger that says what happened."""

    id: str
    rows: int  # of the ledger, for this run and label
    turn: int | None
    reason: str | None
    key: str | None
    survivor: str | None
    unanswered: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a funnel."""

    count: StepCount
    unit: str  # of `count.edited`
    reads: tuple[str, ...]  # fields of a run that a filter's condition asks
    examples: tuple[tuple[str, tuple[Example, ...]], ...]  # action → runs


@dataclass(frozen=True, slots=True)
class Rule:
    """What a sink did beyond its steps. `count` is runs; of `created`, rows."""

    name: str
    action: str
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """The way of one branch. A sink also has its account."""

    name: str | None
    base: str | None
    entered: int
    lines: tuple[Line, ...]
    rules: tuple[Rule, ...] = ()
    more_rules: int = 0
    written: Written | None = None
    sums: Mapping[str, int] | None = None


def branches(executed: Executed, written: Mapping[str, Written], summary: Mapping[str, Any]) -> list[Branch]:
    """Shared steps, stages, sinks: in the order in which they ran."""
    found = examples(executed)
    steps = {(branch, step.label): step for branch, step in executed.plan.steps()}
    lines: dict[str | None, list[Line]] = {}
    for count in executed.ledger.counts:
        step = steps.get((count.sink, count.label))  # none: a sink repeats one of the spec
        own = tuple((action, found[key]) for action in ACTIONS if (key := (count.sink, count.label, action)) in found)
        lines.setdefault(count.sink, []).append(Line(count, _unit(step), _reads(step), own))
    made = [Branch(None, None, executed.start.rows.height, tuple(lines.get(None, ())))]
    for branch in (*executed.plan.stages, *executed.plan.sinks):
        base = executed.ends[branch.base] if branch.base is not None else executed.shared
        own_lines = tuple(lines.get(branch.name, ()))
        if branch.name not in written:
            made.append(Branch(branch.name, branch.base, base.rows.height, own_lines))
            continue
        w = written[branch.name]
        rules = [*_rules(w, found), *_changes(executed, branch.name, found)]
        made.append(
            Branch(
                branch.name,
                branch.base,
                base.rows.height,
                own_lines,
                tuple(rules[:RULES]),
                max(0, len(rules) - RULES),
                w,
                summary["conservation"][branch.name],
            )
        )
    return made


def _unit(step: plan.Step | None) -> str:
    return "tool schemas" if step is not None and isinstance(step.operation, plan.ToolsFilter) else "turns"


def _reads(step: plan.Step | None) -> tuple[str, ...]:
    if step is None or not isinstance(step.operation, plan.Filter):
        return ()
    return tuple(sorted(columns(step.operation.where, Level.TRAJECTORY)))


def _rules(written: Written, found: Mapping[Key, tuple[Example, ...]]) -> Iterator[Rule]:
    """Most frequent first."""
    for action, rules in (("dropped", written.dropped), ("rejected", written.rejected)):
        for name, count in sorted(rules.items(), key=lambda rule: (-rule[1], rule[0])):
            yield Rule(name, action, count, found.get((written.name, name, action), ()))


def _changes(executed: Executed, sink: str, found: Mapping[Key, tuple[Example, ...]]) -> Iterator[Rule]:
    """What the sink made of runs that it did not take out."""
    own = (
        (pl.col("sink") == sink) & pl.col("step").is_null() & pl.col("action").is_in(["edited", "created", "replaced"])
    )
    counts: Counter[tuple[str, str]] = Counter()
    for frame in executed.ledger.frames:
        for name, action, rows in frame.filter(own).group_by("reason", "action").len().iter_rows():
            counts[name or "", action] += rows
    for (name, action), count in sorted(counts.items()):
        yield Rule(name, action, count, found.get((sink, name, action), ()))


def examples(executed: Executed) -> dict[Key, tuple[Example, ...]]:
    """The runs with the lowest ids behind each label; ids are digests, so that is a fair draw."""
    if not executed.ledger.frames:
        return {}
    rows = pl.concat([frame.filter(pl.col("action") != "kept") for frame in executed.ledger.frames])
    by = ["sink", "name", "action"]
    rows = rows.with_columns(name=pl.coalesce("label", "reason", pl.lit("")), action=pl.col("action").cast(pl.String))
    lowest = (
        rows.select(*by, "traj_id")
        .unique()
        .sort(*by, "traj_id", nulls_last=False)
        .group_by(by, maintain_order=True)
        .head(EXAMPLES)
    )
    told = (
        rows.join(lowest, on=[*by, "traj_id"], how="semi", nulls_equal=True)
        .group_by(*by, "traj_id")
        .agg(
            pl.len().alias("rows"),
            pl.col("turn").min(),
            *(pl.col(c).min() for c in ("reason", "key", "survivor")),
            pl.col("predicate_null").any().alias("unanswered"),
        )
        .sort(*by, "traj_id", nulls_last=False)
    )
    made: dict[Key, list[Example]] = {}
    for row in told.iter_rows(named=True):
        example = Example(
            row["traj_id"],
            row["rows"],
            row["turn"],
            row["reason"],
            row["key"],
            row["survivor"],
            bool(row["unanswered"]),
        )
        made.setdefault((row["sink"], row["name"], row["action"]), []).append(example)
    return {key: tuple(own) for key, own in made.items()}


def shown_ids(found: list[Branch]) -> list[str]:
    """The ids of all examples, each once."""
    lines = (example for branch in found for line in branch.lines for _, own in line.examples for example in own)
    rules = (example for branch in found for rule in branch.rules for example in rule.examples)
    return sorted({example.id for example in (*lines, *rules)})
