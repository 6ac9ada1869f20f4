"""A spec selects what the script that it replaces selects: a second implementation, written without this project."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_quickstart_by_hand(tmp_path: Path) -> None:
    runs = ROOT / "specs" / "quickstart" / "runs"
    by_hand = tmp_path / "by_hand.jsonl"
    subprocess.run([sys.executable, ROOT / "benchmarks" / "hand_written.py", runs, by_hand], check=True)
    shutil.copytree(runs, tmp_path / "runs")
    shutil.copy(ROOT / "benchmarks" / "quickstart_sft.curate", tmp_path)
    command = [sys.executable, "-m", "curatec.runtime.cli", "compile", "quickstart_sft.curate", "-o", "out", "-q"]
    subprocess.run(command, cwd=tmp_path, check=True)

    def said(lines: Path) -> dict[str, list[list[str | None]]]:
        """Task → what each row's messages say."""
        found: dict[str, list[list[str | None]]] = {}
        for line in lines.open(encoding="utf-8"):
            row = json.loads(line)
            texts = [m["content"] or "" for m in row["messages"]]
            found.setdefault(row["task"].removeprefix("desk/"), []).append(texts)
        return found

    theirs, ours = said(by_hand), said(tmp_path / "out" / "sft" / "train.jsonl")
    assert Counter({task: len(rows) for task, rows in ours.items()}) == Counter(
        {task: len(rows) for task, rows in theirs.items()}
    )
    for task, rows in ours.items():
        for row in rows:
            # A row ends with its last trained message; the script keeps what follows.
            match = next(other for other in theirs[task] if other[: len(row)] == row)
            theirs[task].remove(match)
    assert not any(theirs.values())
