"""What `explain` prints of a step is the language: read again, it is the same operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatec.compiler import plan
from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.runtime.answers.explain import says

HEAD = """curate 1
source s { path "x" }
strategy t {
  from s
  derive n = turn_count
  x: %s
  emit sft { loss on assistant }
}
"""
STEPS = (
    'keep where not (success and reward > 0.5) or (outcome in {"crash", "truncated"} and trial is not null)',
    'drop where model !~ r"^gpt-\\d" and not (task ~ r"a|b")',
    "keep where (1 + turn_count) * 2 - (3 - trial) >= -n / (2 * 3) and 2 ** 3 ** 2 > 1",
    "keep where if success then reward > 0 else n is null",
    'keep where meta.user_id as int == 3 and meta["x-y"].a[0] == "b" and meta.labels is not empty',
    "keep where any(turns where is_error and prev.content == next.content and count(calls where is_error) > 1)",
    'keep where any(calls where name == "f" and args.x.y == "z" and turn.index > 2 and trajectory.n > 3)',
    "keep where last(turns where is_error).content is not null and mean(reward) over (task, model) > 0.5",
    "keep where rank(reward desc) over (task) <= 2 and count() over (task) > 1",
    'turns set content = replace(truncate(content, 20, keep: ends, marker: "…"), r"[0-9]+", "${0}") where index > 1',
    "turns drop where caller.index is null and reply.content is empty repair",
    "tools keep where used",
    "dedup exact on task, calls_text best by reward desc, turn_count",
    "limit 3 per task, model order by reward desc, coalesce(duration, 0.0)",
    "sample 12.5% per task seed 4",
    "sample 40 seed 1",
    'derive m = concat(task, "-", extract(task_text, r"(x)(y)", 2), lower(trim(text)))',
    "sort by length(tool_names) desc, id",
    'keep where has(tool_names, "a\\"b\\\\c") and starts_with(text, "\\n")',
)


def _operation(step: str) -> plan.Operation:
    found = check(load_text(HEAD % step, "t.curate", Path("/nowhere")))
    errors = [d.message for d in found.diagnostics if d.severity == "error"]
    assert not errors, (step, errors)
    return found.plan("t").shared[-1].operation


@pytest.mark.parametrize("step", STEPS)
def test_printed_steps_read_as_the_same_operation(step: str) -> None:
    operation = _operation(step)
    printed = says(operation)
    assert plan.digest(_operation(printed)) == plan.digest(operation), printed


def test_a_split_is_printed_as_it_is_written() -> None:
    text = HEAD.replace("  derive n = turn_count\n", "") % "split by task { train 80% validation 20% } seed 9"
    step = check(load_text(text, "t.curate", Path("/nowhere"))).plan("t").shared[-1]
    assert says(step.operation) == "split by task { train 80% validation 20% } seed 9"
