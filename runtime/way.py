"""The way that rows go through a plan: for each branch, what is done to the rows that its base ends with, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from curatec.compiler import plan

# After these a trajectory may say something else, or its tokens are counted by another measure.
_EDITS = (
    plan.TurnsFilter,
    plan.TurnsSet,
    plan.TurnsCut,
    plan.View,
    plan.Redact,
    plan.Render,
    plan.Decompose,
    plan.Distractors,
    plan.Rebind,
    plan.Recover,
)


def edits_turns(step: plan.Step) -> bool:
    return isinstance(step.operation, _EDITS)


@dataclass(frozen=True, slots=True)
class Stop:
    """One thing that is done to rows. Without a step: runs of sealed tasks leave, so that no quota of a sink counts
    what it may not take (semantics 27). `position` is among all steps of the plan; `again`: no step of the spec, a sink
    repeats one on what others made or changed since."""

    step: plan.Step | None = None
    position: int = 0
    again: bool = False

    @property
    def label(self) -> str:
        if self.step is None:
            return "held_out"
        return f"{self.step.label}_again" if self.again else self.step.label


@dataclass(frozen=True, slots=True)
class Way:
    """The stops of a branch; `branch` None: those that all share."""

    branch: str | None
    base: str | None
    stops: tuple[Stop, ...]


def ways(whole: plan.Plan) -> Iterator[Way]:
    """Shared steps, stages, sinks; each behind its base."""
    yield Way(None, None, tuple(Stop(step, i) for i, step in enumerate(whole.shared)))
    position = len(whole.shared)
    for branch in (*whole.stages, *whole.sinks):
        own = [Stop(step, position + i) for i, step in enumerate(branch.steps)]
        position += len(own)
        if branch.target is not None:
            own = [*([Stop()] if whole.sealed else []), *own, *_cleaning(whole, branch)]
        yield Way(branch.name, branch.base, tuple(own))


def _cleaning(whole: plan.Plan, branch: plan.Branch) -> Iterator[Stop]:
    """What later steps made or changed is held against each sealed set again."""
    passed = whole.passed(branch)
    for at, (position, step) in enumerate(passed):
        later = (s for _, s in passed[at + 1 :])
        if isinstance(step.operation, plan.Decontaminate) and any(map(edits_turns, later)):
            yield Stop(step, position, again=True)
