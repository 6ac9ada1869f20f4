"""What the page quotes of a spec that redacts: never more than the rows say.

Examples are runs that steps took out or changed, often before they were redacted. So their texts are looked through
for all families that any `redact` of the spec names, whatever its place and scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import Column
from curatec.compiler.types import Level, Type
from curatec.runtime.execute import Executed

_READ = 20_000  # code points
_TASK_TEXT = Column(Level.TRAJECTORY, "task_text", Type.TEXT)


def redacting(whole: plan.Plan) -> Callable[[str], str]:
    """text → the text as it may be quoted. Without `redact` in the plan that is the text."""
    steps = (step.operation for _, step in whole.steps())
    families = sorted({family for said in steps if isinstance(said, plan.Redact) for family in said.families})
    if not families:
        return lambda text: text
    from curatec.runtime.redaction import Finder, RecogniserFailed, Text, redact

    finder = Finder(families)

    def quoted(text: str) -> str:
        try:
            [found] = redact([Text(text)], finder)
        except RecogniserFailed:  # the step may have had no need to look at it
            return "(not shown: it could not be redacted)"
        return text if found is None else found.value

    return quoted


def heads(executed: Executed, runs: Sequence[str], quoted: Callable[[str], str]) -> dict[str, str]:
    """Run → its first user text as it may be quoted; none where the plan does not redact. Far more is read than is
    shown: a value that is cut in two would not be known."""
    if not any(isinstance(step.operation, plan.Redact) for _, step in executed.plan.steps()):
        return {}
    state = executed.start.keep(executed.start.rows["id"].is_in(pl.Series(runs, dtype=pl.String).implode()))
    state, [texts] = state.values([_TASK_TEXT])
    return {id_: quoted(text[:_READ]) for id_, text in zip(state.rows["id"], texts, strict=True) if text is not None}
