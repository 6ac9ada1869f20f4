"""The variants of the fixed job select the same rows: five implementations of one meaning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import by_hand_data_juicer as juicer
import corpus
import job
import measure
import orjson
import pytest
import rows

from curatec.compiler import text
from tests.benchmarks import BENCHMARKS

RUNS = 1_000  # the largest task has more good runs than the cap


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixed_job")
    with (folder / "corpus.jsonl").open("wb") as file:
        file.writelines(corpus.runs(RUNS, 1))
    shutil.copy(BENCHMARKS / "fixed_job.curate", folder)
    return folder


@pytest.fixture(scope="module")
def loop(place: Path) -> rows.Rows:
    return by_hand(place, "orjson")


def by_hand(place: Path, name: str) -> rows.Rows:
    subprocess.run([sys.executable, BENCHMARKS / f"by_hand_{name}.py", "corpus.jsonl", name], cwd=place, check=True)
    return rows.by_hand(place / name)


def test_the_compiler(place: Path, loop: rows.Rows) -> None:
    command = [sys.executable, "-m", "curatec.runtime.cli", "compile", "fixed_job.curate", "-o", "out", "-q"]
    subprocess.run(command, cwd=place, check=True)
    assert rows.difference(rows.compiled(place / "out"), loop) is None


@pytest.mark.parametrize("name", ["polars", "duckdb", pytest.param("datasets", marks=pytest.mark.slow)])
def test_by_hand(place: Path, loop: rows.Rows, name: str) -> None:
    pytest.importorskip(name)
    assert rows.difference(by_hand(place, name), loop) is None


def test_every_step_of_the_job_bites(place: Path, loop: rows.Rows) -> None:
    assert max(Counter(task for _, task, _ in loop.values()).values()) == job.CAP
    assert {split for split, _, _ in loop.values()} == set(job.SPLITS)
    whole = {record["id"]: record for record in map(orjson.loads, (place / "corpus.jsonl").open("rb"))}
    assert all(whole[id_]["reward"] >= job.REWARD for id_ in loop)
    lines = [orjson.loads(line) for split in job.SPLITS for line in (place / "orjson" / f"{split}.jsonl").open("rb")]
    results = [m["content"] for row in lines for m in row["messages"] if m["role"] == "tool"]
    assert max(map(len, results)) == job.CUT
    assert not any(text.startswith("Error:") for text in results)
    assert any(len(row["messages"]) < len(whole[row["id"]]["messages"]) for row in lines)


def test_another_row_is_told(loop: rows.Rows) -> None:
    (some, (split, task, said)), *others = loop.items()
    assert "1 rows are only here" in str(rows.difference(loop, dict(others)))
    assert f"1 differ, such as {some}" in str(rows.difference(loop, loop | {some: (split, task, said ^ 1)}))


def test_the_split_is_the_compilers() -> None:
    import polars as pl

    tasks = pl.Series([f"airline/{i}" for i in range(500)])
    low = text.draw("split", 7, tasks) < text.threshold(job.TRAIN)
    assert [job.split(task) == "train" for task in tasks] == low.to_list()


def test_the_easier_job(place: Path) -> None:
    """Of equal texts the first stays; a text that is too short goes."""
    ready = place / "texts.jsonl"
    juicer.made_ready(place / "corpus.jsonl", ready)
    made = [orjson.loads(line) for line in ready.open("rb")]
    expected = juicer.expected(ready)
    equal: dict[str, list[dict[str, Any]]] = {}
    for row in made:
        if (row["reward"] or 0) >= job.REWARD:
            equal.setdefault("".join(row["text"].lower().split()), []).append(row)
    assert any(len(group) > 1 for group in equal.values())
    assert expected == {first["id"] for first, *_ in equal.values() if 500 <= len(first["text"]) <= 20_000}


def test_what_a_process_costs(tmp_path: Path) -> None:
    """Memory of children is counted, CPU is not wall time, and a failure says what it said."""
    hog = "import time; x = bytearray(200_000_000); time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hog!r}], check=True)"
    # In a small process: what a child shares with the one that starts it counts as its own for a moment.
    code = (
        f"import measure, pathlib, sys; c = measure.cost([sys.executable, '-c', {parent!r}], pathlib.Path('.'), {{}}); "
    )
    code += "print(c.wall, c.cpu, c.peak)"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(BENCHMARKS)},
        capture_output=True,
        check=True,
    )
    wall, cpu, peak = map(float, said.stdout.split())
    assert 200 < peak < 300
    assert cpu < wall
    with pytest.raises(measure.Failed, match="exit code 3: no"):
        measure.cost([sys.executable, "-c", "import sys; print('no', file=sys.stderr); sys.exit(3)"], tmp_path, {})
