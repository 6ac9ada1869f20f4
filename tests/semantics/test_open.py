"""Where the engine does not do yet what it should. Each test fails until it does, and then wants to move."""

from __future__ import annotations

import pytest
from polars.exceptions import ColumnNotFoundError

from tests.semantics.tools import Bench, record

UNSETTLED = ("task", "id", "pass_rate", "attempts", "spread")
RECORDS = [record(task_id="a", success=True), record(task_id="b")]


@pytest.mark.xfail(strict=True, raises=ColumnNotFoundError, reason="`error when` may name facts that are settled later")
@pytest.mark.parametrize("fact", UNSETTLED)
def test_error_when_asks_only_what_is_known_already(bench: Bench, fact: str) -> None:
    text = bench.spec("", source=f'path "a.jsonl" error when trajectory.{fact} is not null')
    bench.write("a.jsonl", RECORDS)
    if not bench.codes(text):
        bench.execute(text)


@pytest.mark.xfail(strict=True, raises=ColumnNotFoundError, reason="`success when` may name `task`, settled later")
def test_success_when_asks_only_what_is_known_already(bench: Bench) -> None:
    text = bench.spec("", source='path "a.jsonl" success when task == "t/a"')
    bench.write("a.jsonl", RECORDS)
    if not bench.codes(text):
        bench.execute(text)
