"""What the ledger says of each label: counts along the way, and runs to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import columns
from curatec.compiler.types import Level
from curatec.runtime.execute import Executed
from curatec.runtime.ledger import LINEAGE, StepCount
from curatec.runtime.reasons import REASONS
from curatec.runtime.sinks.written import Written

EXAMPLES = 3  # of each label
ACTIONS = ("dropped", "edited", "created", "replaced", "rejected")  # of steps
RULES = 20  # rules and reasons of a sink that are listed

Key = tuple[str | None, str, str]  # branch (None: shared), label or rule, action


@dataclass(frozen=True, slots=True)
class Example:
    """One run or made row that a label is about, and the row of the ledger that says what happened. `parents`: what a
    step or sink made it from; `run`: the run at the root."""

    id: str
    run: str
    parents: tuple[str, ...]
    rows: int  # of the ledger, for this run and label
    turn: int | None
    reason: str | None
    key: str | None
    survivor: str | None
    unanswered: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a funnel. `noun`: what comes in, runs or, once steps have made some, rows. `failures`: why rows could
    not be made, most frequent first."""

    count: StepCount
    noun: str
    unit: str  # of `count.edited`
    key: str  # what the ledger's `key` is, in words
    failures: tuple[tuple[str, int], ...]
    reads: tuple[str, ...]  # fields of a run that a filter's condition asks
    examples: tuple[tuple[str, tuple[Example, ...]], ...]  # action → runs


@dataclass(frozen=True, slots=True)
class Rule:
    """What a sink did beyond its steps. `count` is what came in; of `created`, rows made. `about`: its reason in words,
    where it has one."""

    name: str
    about: str | None
    action: str
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """The way of one branch. A sink also has its account. `noun` is what it starts from, `ends` what its steps end
    with; `most`: rows that the longest bar shows."""

    name: str | None
    base: str | None
    entered: int
    noun: str
    ends: str
    most: int
    lines: tuple[Line, ...]
    rules: tuple[Rule, ...] = ()
    more_rules: int = 0
    written: Written | None = None
    sums: Mapping[str, int] | None = None


def branches(executed: Executed, written: Mapping[str, Written], summary: Mapping[str, Any]) -> list[Branch]:
    """Shared steps, stages, sinks: in the order in which they ran."""
    found, failures = examples(executed, written), _failures(executed)
    runs = executed.start.rows.height
    shared = _lines(executed, None, "run", found, failures)
    made = [Branch(None, None, runs, "run", _noun("run", shared), _most(runs, shared), shared)]
    nouns: dict[str | None, str] = {None: made[0].ends}
    for branch in (*executed.plan.stages, *executed.plan.sinks):
        base = executed.ends[branch.base] if branch.base is not None else executed.shared
        noun, entered = nouns[branch.base], base.rows.height
        lines = _lines(executed, branch.name, noun, found, failures)
        nouns[branch.name] = _noun(noun, lines)
        start = (branch.name, branch.base, entered, noun, nouns[branch.name], _most(max(runs, entered), lines), lines)
        if branch.name not in written:
            made.append(Branch(*start))
            continue
        w = written[branch.name]
        rules = [*_rules(w, found), *_changes(executed, branch.name, found)]
        more = max(0, len(rules) - RULES)
        made.append(Branch(*start, tuple(rules[:RULES]), more, w, summary["conservation"][branch.name]))
    return made


def _lines(
    executed: Executed,
    branch: str | None,
    noun: str,
    found: Mapping[Key, tuple[Example, ...]],
    failures: Mapping[tuple[str | None, str], tuple[tuple[str, int], ...]],
) -> tuple[Line, ...]:
    """The steps of a branch, those included that a sink repeats."""
    steps = [step for _, step in executed.plan.steps()]
    made: list[Line] = []
    for count in executed.ledger.counts:
        if count.sink != branch:
            continue
        assert count.step is not None
        operation = steps[count.step].operation
        key = (branch, count.label)
        own = tuple((action, found[*key, action]) for action in ACTIONS if (*key, action) in found)
        unit = "tool schema" if isinstance(operation, plan.ToolsFilter) else "turn"
        made.append(Line(count, noun, unit, _key(operation), failures.get(key, ()), _reads(operation), own))
        noun = "row" if count.created else noun
    return tuple(made)


def _noun(noun: str, lines: Sequence[Line]) -> str:
    """What a branch ends with."""
    return "row" if any(line.count.created for line in lines) else noun


def _most(entered: int, lines: Sequence[Line]) -> int:
    return max([entered, *(line.count.left + line.count.dropped for line in lines)])


def _key(operation: plan.Operation) -> str:
    """What a step's key in the ledger is to a reader."""
    match operation:
        case plan.DedupNear():
            return "likeness"
        case plan.Decontaminate():
            return "evidence"
        case plan.Mix():
            return "source"
    return "key"


def _failures(executed: Executed) -> dict[tuple[str | None, str], tuple[tuple[str, int], ...]]:
    """(branch, label) → why rows could not be made, and how many."""
    failed = pl.col("step").is_not_null() & (pl.col("action") == "rejected")
    frames = [frame.filter(failed) for frame in executed.ledger.frames]
    if not frames:
        return {}
    counts = pl.concat(frames).group_by("sink", "label", "reason").agg(pl.col("n").sum())
    made: dict[tuple[str | None, str], tuple[tuple[str, int], ...]] = {}
    for sink, label, reason, n in counts.sort(-pl.col("n"), "reason").iter_rows():
        made[sink, label] = (*made.get((sink, label), ()), (REASONS.get(reason, reason), n))
    return made


def _reads(operation: plan.Operation) -> tuple[str, ...]:
    if not isinstance(operation, plan.Filter):
        return ()
    return tuple(sorted(columns(operation.where, Level.TRAJECTORY)))


def _rules(written: Written, found: Mapping[Key, tuple[Example, ...]]) -> Iterator[Rule]:
    """Most frequent first."""
    for action, rules in (("dropped", written.dropped), ("rejected", written.rejected)):
        for name, count in sorted(rules.items(), key=lambda rule: (-rule[1], rule[0])):
            yield Rule(name, REASONS.get(name), action, count, found.get((written.name, name, action), ()))


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
        yield Rule(name, REASONS.get(name), action, count, found.get((sink, name, action), ()))


def examples(executed: Executed, written: Mapping[str, Written]) -> dict[Key, tuple[Example, ...]]:
    """The runs with the lowest ids behind each label; ids are digests, so that is a fair draw."""
    if not executed.ledger.frames:
        return {}
    rows = pl.concat([frame.filter(pl.col("action") != "kept") for frame in executed.ledger.frames])
    by = ["sink", "name", "action"]
    rows = rows.with_columns(name=pl.coalesce("label", "reason", pl.lit("")), action=pl.col("action").cast(pl.String))
    lowest = rows.group_by(by).agg(pl.col("traj_id").unique().sort().head(EXAMPLES)).explode("traj_id")
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
    parents = _parents(executed, written, told["traj_id"])
    made: dict[Key, list[Example]] = {}
    for row in told.iter_rows(named=True):
        example = Example(
            row["traj_id"],
            _root(row["traj_id"], parents),
            parents.get(row["traj_id"], ()),
            row["rows"],
            row["turn"],
            REASONS.get(row["reason"], row["reason"]),
            row["key"],
            row["survivor"],
            bool(row["unanswered"]),
        )
        made.setdefault((row["sink"], row["name"], row["action"]), []).append(example)
    return {key: tuple(own) for key, own in made.items()}


def _parents(executed: Executed, written: Mapping[str, Written], ids: pl.Series) -> dict[str, tuple[str, ...]]:
    """What each of some rows was made from, and what these were made from in turn."""
    frames = [*executed.ledger.lineage, *(w.lineage for w in written.values()), pl.DataFrame(schema=LINEAGE)]
    lineage = pl.concat(frames)
    found: dict[str, tuple[str, ...]] = {}
    while len(ids):
        own = lineage.filter(pl.col("out").is_in(ids.implode())).sort("out", "ordinal")
        for out, parent in own.select("out", "in").iter_rows():
            found[out] = (*found.get(out, ()), parent)
        ids = own.filter(~pl.col("in").is_in(list(found)))["in"]
    return found


def _root(id_: str, parents: Mapping[str, tuple[str, ...]]) -> str:
    while id_ in parents:
        id_ = parents[id_][0]
    return id_


def shown_runs(found: list[Branch]) -> list[str]:
    """The ids of the runs behind all examples, each once."""
    lines = (example for branch in found for line in branch.lines for _, own in line.examples for example in own)
    rules = (example for branch in found for rule in branch.rules for example in rule.examples)
    return sorted({example.run for example in (*lines, *rules)})
