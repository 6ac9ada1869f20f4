"""Commands that read an output: why, show, verify."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Place


def _runs(place: Place) -> dict[str, str]:
    """The record's own id → the run's id."""
    import polars as pl

    return dict(pl.read_parquet(place.root / "out" / "runs.parquet").select("record_id", "id").iter_rows())


# ---- why ----


def test_overview_has_every_step(finished: Place) -> None:
    ran = finished("why", "out")
    assert all(
        label in ran.out for label in ("split_task", "crash", "short_tools", "once", "winners", "few", "lessons")
    )
    data = finished("why", "out", "--json").json
    assert {"steps", "sinks", "diagnostics"} <= data.keys()


def test_a_kept_run(finished: Place) -> None:
    run = _runs(finished)["t0.1"]
    ran = finished("why", "out", run[:10])
    assert f"run {run}" in ran.out
    assert f"kept as {run}" in ran.out
    assert "dropped by lessons" in ran.out


def test_a_duplicate_names_its_survivor_and_task(finished: Place) -> None:
    ids = _runs(finished)
    data = [finished("why", "out", ids[name], "--json").json["runs"][0] for name in ("t0.0", "t0.3")]
    fates = {run["id"]: next(s for s in run["sinks"][0]["steps"] if s["label"] == "once") for run in data}
    dropped = [fate for fate in fates.values() if fate["action"] == "dropped"]
    survivor = next(id_ for id_, fate in fates.items() if fate["action"] == "passed")
    assert len(dropped) == 1
    assert survivor[:12] in dropped[0]["detail"]
    assert "task runs/t0" in dropped[0]["detail"]
    assert dropped[0]["text"].startswith("dedup exact on task")


def test_record_id_example_id_and_rejected_line(finished: Place) -> None:
    assert "kept as" in finished("why", "out", "t1.1", "--sink", "sft").out
    ran = finished("why", "out", "runs/a.jsonl:25")
    assert "could not be read" in ran.out
    assert finished("why", "out", "a.jsonl:25", "--json").json["reject"]["line"] == 25


def test_a_turn(finished: Place) -> None:
    data = finished("why", "out", "t1.1", "--sink", "sft", "--json", "--turn", "1").json["turns"][0]
    assert data["trained"] is False
    assert "loss on assistant where none" in data["because"]
    good = finished("why", "out", "t1.1", "--sink", "sft", "--json", "--turn", "3").json["turns"][0]
    assert good["trained"] is True
    tool = finished("why", "out", "t1.1", "--sink", "sft", "--turn", "4").out
    assert "short_tools: content changed" in tool
    assert "not trained" in tool
    assert "not in the row" in finished("why", "out", "t1.1", "--sink", "sft", "--turn", "99").out


def test_identical_runs_are_told_apart(place: Place) -> None:
    lines = (place.root / "runs" / "a.jsonl").read_text().splitlines()
    (place.root / "runs" / "b.jsonl").write_text(lines[0] + "\n")
    place("compile", "small.curate", "-o", "out")
    told = place("why", "out", "--label", "once", "--sample", "20").out
    pairs = re.findall(r"^  (\S+) .* (\S+) stands for it", told, re.MULTILINE)
    assert pairs
    assert all(run != survivor for run, survivor in pairs)


def test_label_and_sample(finished: Place) -> None:
    ran = finished("why", "out", "--label", "winners", "--sample", "2")
    assert "keep where success" in ran.out
    assert ran.out.count("failure") == 2
    assert "more" in ran.out
    data = finished("why", "out", "--sample", "1", "--json").json
    assert {one["label"] for one in data["labels"]} >= {"once", "winners"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("out", "nothing-like-it"), 1, "C0622"),
        (("out", "t"), 1, "C0623"),
        (("out", "--label", "winers"), 1, "did you mean `winners`"),
        (("out", "--sink", "stf"), 1, "did you mean `sft`"),
        (("nowhere",), 1, "C0620"),
        (("runs",), 1, "C0620"),
        (("small.curate",), 1, "C0620"),
        (("out", "--turn", "1"), 2, "needs the ID"),
        (("out", "t0.0", "--label", "once"), 2, "either"),
        ((), 2, "OUT"),
    ],
)
def test_what_is_not_there(finished: Place, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = finished("why", *arguments, code=code)
    assert said in ran.err
    assert ran.out == ""
    assert finished("why", *arguments, "--json", code=code).json["diagnostics"]


# ---- show ----


def test_show_marks_what_is_trained(finished: Place) -> None:
    ran = finished("show", "out", "t1.1", "--sink", "sft")
    assert "⟦well 1⟧" in ran.out
    assert '→ look({"n": -1})' in ran.out
    assert '⟦look({"n": 1})⟧' in ran.out
    assert "[2] tool" in ran.out
    assert "(context)" in ran.out


def test_show_json_has_spans_that_fit(finished: Place) -> None:
    row = finished("show", "out", "t1.1", "--sink", "sft", "--json").json["rows"][0]["row"]
    last = row["trained"][-1]
    assert row["messages"][last["message"]]["content"][last["start"] : last["end"]] == "well 1"


def test_show_memory_first_row_and_nothing(finished: Place) -> None:
    assert "value: well 2" in finished("show", "out", "--sink", "memory").out
    assert "sft" in finished("show", "out").out
    assert "no row" in finished("show", "out", "t1.2", "--sink", "sft", code=1).err


# ---- verify ----


@pytest.fixture
def copied(finished: Place, tmp_path: Path) -> Place:
    shutil.copytree(finished.root / "out", tmp_path / "out")
    return Place(tmp_path)


def test_a_whole_output_verifies(finished: Place) -> None:
    assert "nothing is off" in finished("verify", "out").out
    data = finished("verify", "out", "--json").json
    assert data["ok"]
    assert "conservation" in data["checks"]


def _damage_manifest(out: Path, change: object) -> None:
    path = out / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert callable(change)
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_damaged_files_are_named(copied: Place) -> None:
    out = copied.root / "out"
    (out / "README.md").write_text("other")
    (out / "sft" / "train.jsonl").unlink()
    (out / "notes.txt").write_text("mine")
    data = bytearray((out / "ledger.parquet").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (out / "ledger.parquet").write_bytes(data)
    ran = copied("verify", "out", code=1)
    assert all(name in ran.err for name in ("README.md", "sft/train.jsonl", "notes.txt", "ledger.parquet"))
    assert not copied("verify", "out", "--json", code=1).json["ok"]


def test_wrong_sums_are_named(copied: Place) -> None:
    def change(manifest: dict[str, dict[str, dict[str, int]]]) -> None:
        manifest["conservation"]["sft"]["dropped"] += 1
        manifest["sinks"]["memory"]["rows"]["train"] += 1  # type: ignore[index]

    _damage_manifest(copied.root / "out", change)
    ran = copied("verify", "out", code=1)
    assert "`sft`: the ledger has" in ran.err
    assert "`memory` has" in ran.err


def test_a_task_in_both_splits_is_named(copied: Place) -> None:
    import polars as pl
    import pyarrow.parquet as pq

    path = copied.root / "out" / "sft" / "validation.parquet"
    table = pq.read_table(path)
    train = pl.read_parquet(copied.root / "out" / "sft" / "train.parquet")["task"][0]
    index = table.schema.get_field_index("task")
    pq.write_table(table.set_column(index, "task", [[train] * table.num_rows]), path)
    ran = copied("verify", "out", code=1)
    assert f"such as runs/{train.rpartition('/')[2]}" in ran.err or train in ran.err


def test_unreadable_parts(copied: Place) -> None:
    for name in ("ledger.parquet", "runs.parquet"):
        (copied.root / "out" / name).write_bytes(b"")
    assert "C0602" in copied("why", "out", "t0.0", code=1).err
    (copied.root / "out" / "manifest.json").write_text("{}")
    assert "C0620" in copied("why", "out", code=1).err
    (copied.root / "out" / "manifest.json").write_text("{")
    assert "C0602" in copied("verify", "out", code=1).err
