"""The logical plan: what a checked strategy means, as pure data.

No text, span or path is in it. Two specs that say the same have equal plans, whatever their comments and layout.
Labels, reasons and places stand beside each operation in `Step`, outside the digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

from curatec.compiler.core import Core
from curatec.compiler.operations import (
    Decompose,
    Decontaminate,
    Dedup,
    DedupNear,
    Derive,
    Distractors,
    Filter,
    Join,
    Limit,
    LimitEach,
    Mix,
    Operation,
    Rebind,
    Recover,
    Redact,
    Render,
    Sample,
    Sort,
    Split,
    Tag,
    ToolsFilter,
    TurnsCut,
    TurnsFilter,
    TurnsSet,
    View,
)
from curatec.compiler.statements import statement_text
from curatec.compiler.targets import (
    SINKS,
    Context,
    Loss,
    Memory,
    Preference,
    Rl,
    Sft,
    Target,
)
from curatec.compiler.types import Type
from curatec.dsl import ast
from curatec.dsl.source import Source, Span

PLAN_VERSION = 1
__all__ = [
    "PLAN_VERSION",
    "SINKS",
    "Branch",
    "Compare",
    "Context",
    "Corpus",
    "Decompose",
    "Decontaminate",
    "Dedup",
    "DedupNear",
    "Derive",
    "Distractors",
    "Expectation",
    "Filter",
    "Join",
    "Limit",
    "LimitEach",
    "Loss",
    "Measure",
    "Memory",
    "Mix",
    "Number",
    "Operation",
    "Plan",
    "Preference",
    "Rebind",
    "Recover",
    "Redact",
    "Render",
    "Rl",
    "Sample",
    "Sft",
    "Sort",
    "Split",
    "Step",
    "Tag",
    "Target",
    "Test",
    "ToolsFilter",
    "TurnsCut",
    "TurnsFilter",
    "TurnsSet",
    "View",
    "canonical",
    "digest",
    "nodes",
]


@dataclass(frozen=True, slots=True)
class Step:
    """An operation under its label, and the statement that it comes from."""

    operation: Operation
    label: str
    statement: ast.Statement = field(compare=False, repr=False)
    because: str | None = None
    see: tuple[str, ...] = ()
    labelled: bool = True
    span: Span = field(default=Span(0, 0), compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The statement in one line, as reports show it. Printed when asked for: checking needs none."""
        return statement_text(self.statement)


# ---- branches ----


@dataclass(frozen=True, slots=True)
class Branch:
    """Steps on top of the shared rows (`base` None) or of another branch. A stage has no target."""

    name: str
    base: str | None
    steps: tuple[Step, ...]
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition over finished rows; with `over` inside, it must hold for each group."""

    condition: Test
    label: str
    text: str
    because: str | None = None
    span: Span = field(default=Span(0, 0), compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """`rows(sft)`, `share(p, sft) over (k)`: a number over a sink's rows, or over the shared ones (`sink` None)."""

    function: str
    argument: Core | None
    sink: str | None
    keys: tuple[Core, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: Test
    right: Test


@dataclass(frozen=True, slots=True)
class Number:
    value: float


Test = Measure | Compare | Number


# ---- sources and the whole ----


@dataclass(frozen=True, slots=True)
class Corpus:
    """One source. Patterns are as written; `base` is the folder they are relative to (outside the digest)."""

    name: str
    path: tuple[str, ...]
    format: str | None = None
    tools_from: str | None = None
    system: str | None = None
    system_from: str | None = None
    domain: str | None = None
    domain_from_path: str | None = None
    model: str | None = None
    model_from_path: str | None = None
    error_when: Core | None = None
    success_when: Core | None = None
    license: str | None = None
    base: str = field(default="", compare=False)
    span: Span = field(default=Span(0, 0), compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A side table: its rows are found by `key`. Patterns are as written, relative to `base`."""

    name: str
    path: tuple[str, ...]
    key: str
    key_type: Type
    columns: tuple[tuple[str, Type], ...]
    base: str = field(default="", compare=False)
    span: Span = field(default=Span(0, 0), compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SealedSet:
    """Tasks to keep out of training: the columns that hold their ids and texts."""

    name: str
    path: tuple[str, ...]
    id: str | None
    text: str | None
    base: str = field(default="", compare=False)
    span: Span = field(default=Span(0, 0), compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """A strategy, ready to run. `derived` gives the type of each derived column of the shared rows."""

    strategy: str
    corpora: tuple[Corpus, ...]
    shared: tuple[Step, ...]
    stages: tuple[Branch, ...]
    sinks: tuple[Branch, ...]
    expectations: tuple[Expectation, ...]
    params: tuple[tuple[str, str], ...] = ()
    derived: tuple[tuple[str, Type], ...] = ()
    tables: tuple[Table, ...] = ()  # those that the strategy joins or asks
    sealed: tuple[SealedSet, ...] = ()  # all of the file: no sink takes their tasks
    written: Plan | None = field(default=None, compare=False, repr=False)  # what it was before it was optimised

    @property
    def as_written(self) -> Plan:
        """What people see and digests are taken of. An optimised plan has the same steps and branches in its places."""
        return self.written or self

    def branch(self, name: str) -> Branch:
        return next(b for b in (*self.stages, *self.sinks) if b.name == name)

    def lineage(self, branch: Branch) -> tuple[Branch, ...]:
        """The branches from the shared rows down to this one."""
        if branch.base is None:
            return (branch,)
        base = next(b for b in self.stages if b.name == branch.base)
        return (*self.lineage(base), branch)

    def passed(self, branch: Branch) -> list[tuple[int, Step]]:
        """The steps that the rows of a branch go through, each with its position among all steps."""
        names = {None, *(own.name for own in self.lineage(branch))}
        return [(position, step) for position, (name, step) in enumerate(self.steps()) if name in names]

    def steps(self) -> Iterator[tuple[str | None, Step]]:
        """All steps with the branch they belong to (None: shared)."""
        for step in self.shared:
            yield None, step
        for branch in (*self.stages, *self.sinks):
            for step in branch.steps:
                yield branch.name, step


def nodes(value: Any) -> Iterator[Any]:
    """Every dataclass in a plan node or tuple, parents first."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        for f in fields(value):
            if f.compare:
                yield from nodes(getattr(value, f.name))


# ---- digests ----

# What a plan node keeps for people, beside all fields that do not compare; it never changes what is computed.
_NAMES = {"label", "because", "see"}
_ASIDE: dict[type, set[str]] = {
    Step: {*_NAMES, "labelled"},
    Expectation: {*_NAMES, "text"},
    Corpus: {"path"},
    Table: {"path"},
    SealedSet: {"path"},
    Plan: {"strategy", "params"},
}


def canonical(value: Any) -> Any:
    """A plan node as JSON-ready data without labels, reasons, places and paths (semantics 34). A whole plan is taken as
    it was written."""
    if isinstance(value, Plan) and value.written is not None:
        return canonical(value.written)
    if is_dataclass(value) and not isinstance(value, type):
        aside = _ASIDE.get(type(value), set())
        kept = {f.name: canonical(getattr(value, f.name)) for f in fields(value) if f.compare and f.name not in aside}
        return {"": type(value).__name__, **kept}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [canonical(v) for v in value]
    return value


def digest(value: Any) -> str:
    """32 hex digits over the canonical form and the plan version."""
    text = json.dumps([PLAN_VERSION, canonical(value)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
