"""The command line as a user calls it: real processes, their own cache, their own folder."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CURATEC = (sys.executable, "-m", "curatec.runtime.cli")

SPEC = """curate 1

source runs {
  path "runs/*"
  error when content ~ r"^Error"
}

param most = 2 in 1 .. 5

strategy small {
  from runs
  split by task { train 50% validation 50% } seed 3

  crash: drop where outcome == "crash" because "harness noise"
  short_tools: turns set content = truncate(content, 12) where role == "tool"
  once: dedup exact on task, calls_text best by reward desc

  emit sft {
    winners: keep where success
    few: limit 2 per task order by reward desc
    loss on assistant where none(calls where is_error)
  }
  emit memory {
    lessons: keep where not success
    key task_text
    value concat(final_answer, "")
  }

  expect rows(sft) >= most - 1
}
"""


def run_of(task: int, trial: int, *, tool: str = "fine, thank you for asking") -> dict[str, Any]:
    """A run: attempt 0 succeeds at once, 1 after an error, 2 fails, 3 is a copy of what 0 does."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"task {task}: how is it?"}]
    if trial == 1:
        messages += [_call("c0", {"n": -task}), {"role": "tool", "tool_call_id": "c0", "content": "Error: no"}]
    messages += [_call("c1", {"n": task + (trial == 2)}), {"role": "tool", "tool_call_id": "c1", "content": tool}]
    messages.append({"role": "assistant", "content": f"well {trial}" if trial < 3 else "well 0, said otherwise"})
    good = trial != 2
    return {
        "id": f"t{task}.{trial}", "task_id": f"t{task}", "trial": trial, "model": "m", "messages": messages,
        "reward": float(good), "success": good,
    }  # fmt: skip


def _call(id_: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "look", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def corpus(tasks: int, trials: int = 4, **members: Any) -> list[dict[str, Any]]:
    return [run_of(task, trial, **members) for task in range(tasks) for trial in range(trials)]


def write_lines(path: Path, records: list[dict[str, Any]], broken: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + broken, encoding="utf-8")


def digests(out: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its bytes."""
    return {
        p.relative_to(out).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(out.rglob("*"))
        if p.is_file()
    }


def strays(folder: Path) -> list[str]:
    """What a compile must not leave beside its output."""
    return sorted(p.name for p in folder.iterdir() if ".curatec" in p.name)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Place:
    """A folder with a spec, runs and a cache of its own."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "PYTHONIOENCODING")}
        return kept | {"CURATEC_CACHE_DIR": str(self.root / ".cache"), "POLARS_MAX_THREADS": "2"}

    def __call__(
        self, *arguments: str | Path, code: int | None = 0, given: str | None = None, **environment: str
    ) -> Ran:
        """Runs `curatec …` here and asserts its exit code, and that no traceback is shown."""
        done = subprocess.run(
            [*CURATEC, *map(str, arguments)], cwd=self.root, env=self.environment | environment, input=given,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*CURATEC, *map(str, arguments)], cwd=self.root, env=self.environment, stdout=pipe, stderr=pipe, text=True
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Six tasks with four runs each, one line that cannot be read."""
    (tmp_path / "small.curate").write_text(SPEC, encoding="utf-8")
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(6), broken='{"messages": [\n')
    return Place(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same with an output `out`, for commands that only read. Tests must not change it."""
    root = tmp_path_factory.mktemp("finished")
    (root / "small.curate").write_text(SPEC, encoding="utf-8")
    write_lines(root / "runs" / "a.jsonl", corpus(6), broken='{"messages": [\n')
    made = Place(root)
    made("compile", "small.curate", "-o", "out", "-q")
    return made
