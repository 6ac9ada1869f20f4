"""Corners where an expression or a corpus is not what one thinks of first."""

from __future__ import annotations

import pytest

from curatec.compiler.fields import FIELDS, INNER
from curatec.compiler.types import Level
from tests.semantics.tools import SAID, USER, Bench, call, record, result

ONE = [record(USER, call("f", {"x": 0.5}), result("r"), SAID, success=True, n=2.25, half=0.5, flag=True, tags=["a"])]
TWO = [*ONE, record({"role": "user", "content": "other"}, success=True)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 > (if success then 5 else 1)", False),  # one value for all rows
        ('length(if success then "ab" else "b")', 2),
        ("1 / (if success then 3 else 2)", 1 / 3),
        ('replace("search", r"s", "") >= (if success then "a" else "b")', True),
        ("coalesce(1, 2) / 3", 1 / 3),
    ],
)
def test_constants_chosen_for_all_rows(bench: Bench, text: str, value: object) -> None:
    assert bench.values(text, ONE) == [value]
    assert bench.values(text, TWO) == [value, value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sqrt(meta.n)", 1.5),
        ("abs(meta.half)", 0.5),
        ("round(meta.half)", 0.0),
        ("least(meta.half, 1)", 0.5),
        ("first(calls).args.x + 1", 1.5),
        ('slice("abc", meta.half)', None),  # no whole number
        ("meta.flag in {true}", True),
        ("length(meta.tags)", None),  # a list has no text
        ("meta.tags is empty", False),
        ("meta is null", False),
        ('any(calls where name == "f" and args is null)', False),
        ('first(calls where name == "g").args.x is null', True),
        ('first(calls where name == "g").args.x is empty', True),
    ],
)
def test_json_values(bench: Bench, text: str, value: object) -> None:
    assert bench.values(text, ONE) == [value]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('has(meta.tags, "a")', "C0304"),
        ("meta.n == started_at", "C0301"),
        ("coalesce(null, null)", "C0304"),
        ("if success then null else null", "C0304"),
        ("coalesce(null, null) == 1", "C0301"),
    ],
)
def test_what_has_no_value_is_an_error(bench: Bench, text: str, code: str) -> None:
    assert bench.codes(bench.spec(f"x: derive y = {text}")) == [code]


EVERY_STEP = """
  a: keep where turn_count > 1
  b: dedup exact on calls_text, tool_names best by length(text)
  c: limit 2 per task_text order by meta.x desc
  d: derive z = mean(turn_count) over (task)
  e: turns drop where role == "tool" repair
  f: turns set content = lower(content)
  g: tools keep where used
  h: tag failure
  i: sample 1 per tool_names seed 2
  j: sort by z, count(calls)
"""


@pytest.mark.parametrize("first", ["", "none: drop where true"])
def test_every_step_on_no_rows(bench: Bench, first: str) -> None:
    family = "failure slow { when turn_count > 3 }"
    records = ONE if first else []
    source = 'path "a.jsonl"' if first else 'path "a.jsonl" success when meta.x == 1'
    split = "split by task { train 100% } seed 1"
    done = bench.run(f"{split} {first} {EVERY_STEP}", records, before=family, source=source)
    assert done.ends["sft"].rows.height == 0
    assert {"split", "z", "failure"} <= set(done.ends["sft"].rows.columns)


def test_split_by_a_list(bench: Bench) -> None:
    records = [record(USER, call(name), task_id=name) for name in "abcdefgh"]
    rows = bench.run("split by tool_names { train 50% validation 50% } seed 1", records).shared.rows
    assert set(rows["split"]) == {"train", "validation"}


def test_no_derived_column_can_replace_one_of_the_run(bench: Bench) -> None:
    """What rows have beside their fields while they run is refused as a name."""
    done = bench.run('split by task { train 50% validation 50% } seed 1\n  decompose at role == "assistant"', TWO)
    columns = {name for state in (done.start, done.shared) for name in state.rows.columns if ":" not in name}
    assert columns - FIELDS[Level.TRAJECTORY].keys() <= INNER
    assert {"part", "row", "origin", "split"} <= columns
