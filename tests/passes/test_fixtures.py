"""Each pass against its fixture: `# why`, steps of a strategy, `=>`, the steps after the pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curatec.compiler.passes import PASSES, optimise
from curatec.compiler.plan import Filter, Plan, Step, digest
from curatec.runtime.answers.core_text import core_text
from curatec.runtime.answers.operation_text import says
from tests.semantics.test_strategies import plan_of

FIXTURES = Path(__file__).parent / "fixtures"
HEAD = 'curate 1\nsource t { path "a.jsonl" }\nstrategy s {\n  from t\n'
Pass = Callable[[Plan], Plan]


def cases() -> Iterator[object]:
    for rewrite in PASSES:
        for block in (FIXTURES / f"{rewrite.__name__}.txt").read_text(encoding="utf-8").split("\n\n"):
            why, _, body = block.strip().partition("\n")
            given, _, expected = body.partition("\n=>\n")
            yield pytest.param(rewrite, given, expected, id=f"{rewrite.__name__}: {why.removeprefix('# ')}")


def planned(steps: str, folder: Path) -> Plan:
    return plan_of(f"{HEAD}{steps}\n  emit sft {{ }}\n}}\n", folder)


def printed(step: Step) -> str:
    lines = [f"{step.label}: {says(step.operation)}"]
    if isinstance(step.operation, Filter):
        words = ["asked", *["then"] * len(step.operation.stages)]
        for word, terms in zip(words, step.operation.stages, strict=False):
            lines.append(f"   {word}: {', '.join(map(core_text, terms))}")
    return "\n".join(lines)


@pytest.mark.parametrize(("rewrite", "given", "expected"), list(cases()))
def test_pass(tmp_path: Path, rewrite: Pass, given: str, expected: str) -> None:
    made = planned(given, tmp_path)
    assert "\n".join(map(printed, rewrite(made).shared)) == expected
    assert rewrite(rewrite(made)) == rewrite(made)


def test_what_people_see_is_the_plan_as_written(tmp_path: Path) -> None:
    made = planned('a: keep where text ~ r"x" and success\n  b: dedup exact on text', tmp_path)
    run = optimise(made)
    assert run != made
    assert run.as_written is made
    assert optimise(run).as_written is made
    assert digest(run) == digest(made)
    assert [step.label for _, step in run.steps()] == [step.label for _, step in made.steps()]
