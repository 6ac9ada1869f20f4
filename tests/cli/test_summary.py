"""What a compile says at its end: steps and sinks that make rows, names and numbers that are too wide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curatec.runtime.cli.console import table
from curatec.runtime.cli.summary import sinks_table, steps_table
from tests import every_step
from tests.cli.conftest import Place

LARGE = 1_234_567_890


def step(label: str, **more: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("entered", "left", "dropped", "created", "replaced", "edited", "failed"), 0)
    return {"label": label, "text": "keep where success", **counts, **more}


def sink(rows: dict[str, int], **more: Any) -> dict[str, Any]:
    empty: dict[str, int] = {}
    counts = {"tokens": 0, "trained_tokens": 0, "created": 0, "replaced": 0}
    return {"rows": rows, "exact": True, "dropped": empty, "rejected": empty, **counts, **more}


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def fits(text: str) -> bool:
    return max(map(len, text.split("\n"))) <= 80


def test_long_labels_have_a_line_of_their_own() -> None:
    long = "a_step_with_a_name_that_says_all_that_there_is_to_say_about_it"
    shown = steps_table([step(long, entered=66, left=128, created=62), step("short", entered=128, left=128)])
    assert fits(shown)
    lines = shown.split("\n")
    at = next(i for i, line in enumerate(lines) if line.strip() == long)
    assert lines[at + 1].split() == ["66", "0", "128", "62", "created"]
    assert lines[at + 2].split() == ["short", "128", "0", "128"]
    ends = [[m.end() for m in re.finditer(r"\d+", line)][:3] for line in lines[at + 1 : at + 3]]
    assert ends[0] == ends[1]  # columns of numbers stand below each other


def test_wide_numbers_and_all_there_is_to_say() -> None:
    counts = {"edited": 1, "replaced": 2, "created": 3, "failed": 4, "predicate_null": 5, "null_key": 6, "unmatched": 7}
    said = {name: n * LARGE for name, n in counts.items()}
    shown = steps_table([step("wide", entered=LARGE, dropped=LARGE, left=LARGE, because="x" * 10 + " z" * 60, **said)])
    assert fits(shown)
    assert all(f"{n:,}" in shown for n in said.values())
    assert shown.count("z") == 60


def test_wide_sinks_say_their_splits_below() -> None:
    rows = {"train": LARGE, "validation": LARGE}
    wide = sink(
        rows, tokens=1000 * LARGE, trained_tokens=LARGE, created=LARGE, replaced=3, dropped={"held_out": 2 * LARGE}
    )
    shown = sinks_table({"preference": wide, "sft": sink({"train": 2})})
    assert fits(shown)
    flat = " ".join(shown.split())
    assert f"preference {2 * LARGE:,} {1000 * LARGE:,} {LARGE:,} {2 * LARGE:,}" in flat
    assert f"{LARGE:,} train + {LARGE:,} validation" in flat
    assert f"made: {LARGE:,} from 3" in flat
    assert f"dropped: held_out {2 * LARGE:,}" in flat
    narrow = sinks_table({"sft": sink({"train": 2, "validation": 1})})
    assert narrow.split("\n")[1].split() == ["sft", "2", "train", "+", "1", "validation", "-", "-", "0"]


def test_a_table_of_one_column_is_as_it_was() -> None:
    assert table(("x",), [("y" * 90,)]) == "  x\n  " + "y" * 90


def test_rows_that_steps_and_sinks_make(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    every_step.write(tmp_path)
    place = Place(tmp_path)
    ran = place("compile", "every_step.curate", "-o", "out").out
    assert fits(ran)
    flat = " ".join(ran.split())
    ledger = pl.read_parquet(tmp_path / "out" / "ledger.parquet").filter(pl.col("turn").is_null())

    def n(action: str, **at: str) -> int:
        return ledger.filter(pl.col("action") == action, **at).height

    failed = ledger.filter(pl.col("action") == "rejected", label="crowded")["n"].sum()
    assert f"{n('created', label='crowded')} created; {failed} could not be made" in flat
    assert f"{n('replaced', label='each_decision')} replaced; {n('created', label='each_decision')} created" in flat
    assert f"made: {n('created', reason='window')} from {n('replaced', reason='window')} dropped: held_out" in flat
    assert f"made: {n('created', reason='pair')} from {n('replaced', reason='pair')}" in flat
    assert "sealed_again" in ran
    assert "once more, for what was made or changed since" in flat
    assert "test set kept_back: 1 item kept out" in ran
    assert "tokens of builtin:tiny-qwen3" in ran
    assert "~" not in ran
    most = max(("crowded", "renamed", "put_right", "each_decision"), key=lambda label: n("created", label=label))
    assert ran.rstrip().split("\n")[-4:] == [
        "  curatec why out --label lessons",
        f"  curatec why out --label {most}",
        "  curatec show out --tokens",
        "  curatec verify out",
    ]
    for line in ran.rstrip().split("\n")[-4:]:
        place(*line.split()[1:])


def test_nothing_new_is_said_where_nothing_is_made(place: Place) -> None:
    ran = place("compile", "small.curate", "-o", "out").out
    assert "made:" not in ran
    assert "tokens ~" in ran
    assert ran.rstrip().split("\n")[-2:] == ["  curatec show out", "  curatec verify out"]
