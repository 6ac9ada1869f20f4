"""`render`: whose tokens are counted from here on, and whose masks sinks write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from curatec.compiler import plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place, apply

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer


@apply.register
def _(operation: plan.Render, state: State, place: Place) -> State:
    after = replace(state.edited(state.turns), renderer=place.renderer)
    place.count(state, after)
    return after


def read_renderer(whole: plan.Plan, project: Path, allowed: tuple[Path, ...]) -> Renderer | None:
    """What the `render` of a plan names, loaded before any data is read. Raises CuratecError at the step."""
    for step in whole.shared:
        if isinstance(step.operation, plan.Render):
            from curatec.runtime import rendering

            said = step.operation
            try:
                return rendering.load(said.tokenizer, said.template, Path(said.base), project, allowed)
            except CuratecError as error:
                raise CuratecError(replace(d, span=step.span, source=step.source) for d in error.diagnostics) from None
    return None
