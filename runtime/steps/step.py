"""One step at its place: what every operation's function gets, and the table that they register in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import Core
from curatec.compiler.engine import OVERFLOWS, overflowed
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime.corpus import Loaded
from curatec.runtime.ledger import Ledger, StepCount
from curatec.runtime.state import State

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer


T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where a step runs. `ahead` is what later steps will read from turns; `scratch` takes edited turns. Reasons that a
    step gives are names of rules: the spec's own stand in their place when it is told (`done.py`)."""

    step: plan.Step
    position: int
    sink: str | None
    ledger: Ledger
    scratch: Path
    loaded: Loaded
    ahead: tuple[Core, ...] = ()
    renderer: Renderer | None = None  # of the plan's `render`
    partial: bool = False  # only some runs are here: what the whole corpus must have, they may lack
    again: bool = False  # no step of the spec: a sink repeats one

    def drop(self, ids: pl.Series, **columns: object) -> None:
        self.ledger.add(ids, "dropped", **self.common(), **columns)

    def common(self) -> dict[str, object]:
        return {"sink": self.sink, "step": self.position, "label": self.step.label}

    def count(
        self,
        before: State,
        after: State,
        *,
        created: int = 0,
        replaced: int = 0,
        edited: int = 0,
        predicate_null: int = 0,
        null_key: int = 0,
        unmatched: int = 0,
        failed: int = 0,
    ) -> None:
        """What the step did. What neither stayed nor was replaced was dropped."""
        entered, left = before.rows.height, after.rows.height
        made = StepCount(
            self.sink,
            self.position,
            self.step.label,
            self.step.text,
            entered,
            left,
            entered + created - replaced - left,
            created,
            replaced,
            edited,
            predicate_null,
            null_key,
            unmatched,
            failed,
            self.step.because,
            self.step.see,
            self.again,
        )
        self.ledger.count(made)

    def file(self, part: int) -> Path:
        """Where the turns of a part go that this step writes."""
        return self.scratch / f"part-{part}-step-{self.position}-{self.sink or 'shared'}.arrow"

    def fail(self, code: str, message: str, *help: str) -> CuratecError:
        return CuratecError(
            [Diagnostic(code, message, self.step.span, f"step `{self.step.label}`", help, source=self.step.source)]
        )


def run(state: State, place: Place) -> State:
    """One step; numbers that do not fit become a diagnostic at the step."""
    return told(place, lambda: apply(place.step.operation, state, place))


def told(place: Place, work: Callable[[], T]) -> T:
    """Work of a step; numbers that do not fit become a diagnostic at it."""
    try:
        return work()
    except OVERFLOWS as error:
        if not overflowed(error):
            raise
        raise place.fail(
            "C0608",
            "a number of this step does not fit in 64 bits",
            "bring it into range, for example with `least(x, …)`",
        ) from None


@singledispatch
def apply(operation: object, state: State, place: Place) -> State:
    raise AssertionError(operation)
