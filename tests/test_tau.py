"""All tau-bench and tau2 runs, through the command line, into the real trainers."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training import model, tokenizer

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("CURATEC_SHARED_DATA", ROOT.parent / "shared" / "data"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DATA / "tau_bench").exists(), reason="the collected runs are not there"),
]
for _name in ("datasets", "trl"):
    pytest.importorskip(_name)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT of `specs/tau_service.curate`, its data linked in and allowed."""
    folder = tmp_path_factory.mktemp("tau")
    shutil.copy(ROOT / "specs" / "tau_service.curate", folder)
    for name in ("tau_bench", "tau2_bench"):
        (folder / name).symlink_to(DATA / name)
    command = ["compile", "tau_service.curate", "-o", "out", "--allow-path", str(DATA)]
    environment = os.environ | {"CURATEC_CACHE_DIR": str(folder / "cache")}
    run = subprocess.run(
        [sys.executable, "-m", "curatec.runtime.cli", *command],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return folder / "out"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf"))


def _rows(out: Path, sink: str) -> Any:
    from datasets import load_dataset

    return load_dataset("parquet", data_files=str(out / sink / "train.parquet"), split="train")


def _source_runs() -> list[dict[str, Any]]:
    """Every record as plain `json` reads it."""
    found: list[dict[str, Any]] = []
    for path in sorted((DATA / "tau_bench").rglob("*.json")):
        found += json.loads(path.read_text())
    for path in sorted((DATA / "tau2_bench").rglob("trajectories/*.json")):
        found += json.loads(path.read_text())["simulations"]
    return found


def test_every_run_of_every_file_is_accounted_for(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    assert len(_source_runs()) == 570
    assert sum(source["records"] for source in manifest["inputs"].values()) == 570
    for name, sums in manifest["conservation"].items():
        assert sums["in"] == 570, name
        assert sums["in"] + sums["created"] == sums["out"] + sums["dropped"] + sums["replaced"] + sums["rejected"]
        assert sums["out"] > 0, name


def _arguments(value: Any) -> Any:
    """Arguments of a source's call: an object, JSON, or Python's repr of a dict."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return ast.literal_eval(value)


def test_no_call_carries_the_nulls_of_another(out: Path) -> None:
    """Each call in the data is one that some run really made: same name, same keys, same values."""
    made = set()
    for run in _source_runs():
        for message in run.get("traj", run.get("messages")):
            for call in message.get("tool_calls") or []:
                function = call.get("function", call)
                made.add(json.dumps([function["name"], _arguments(function["arguments"])], sort_keys=True))
    shown = 0
    for sink, columns in (
        ("sft", ("messages",)),
        ("rl", ("prompt",)),
        ("preference", ("prompt", "chosen", "rejected")),
    ):
        for row in _rows(out, sink):
            for message in (m for column in columns for m in row[column]):
                for call in message.get("tool_calls") or []:
                    function = call["function"]
                    assert json.dumps([function["name"], function["arguments"]], sort_keys=True) in made
                    shown += 1
    assert shown > 1000


def test_prompts_carry_what_the_tasks_of_the_source_say(out: Path) -> None:
    """Gold calls, answers, the digest of the final state and the user's instruction, as `json` reads them."""
    known = {}
    for path in sorted((DATA / "tau_bench").rglob("*.json")):
        for run in json.loads(path.read_text()):
            task = run["info"].get("task")
            if task:
                known[task["instruction"]] = [[a["name"], a["kwargs"]] for a in task["actions"]], task["outputs"]
    for path in sorted((DATA / "tau2_bench").rglob("trajectories/*.json")):
        for task in json.loads(path.read_text())["tasks"]:
            criteria = task["evaluation_criteria"]
            calls = [[a["name"], a["arguments"]] for a in criteria["actions"] or []]
            known[json.dumps(task["user_scenario"])] = calls, criteria["communicate_info"] or []
    rows = _rows(out, "rl")
    assert len(rows) > 20
    for row in rows:
        asked = row["reset"].get("instruction") or json.dumps(row["reset"]["scenario"])
        assert ([[c["name"], c["arguments"]] for c in row["gold_calls"]], row["gold_answers"]) == known[asked]
        assert row["reset"]["task_id"] == row["task_id"]
        assert 0.1 <= row["pass_rate"] <= 0.9
        assert row["attempts"] >= 2
    assert sum(row["state_digest"] is not None for row in rows) > 20


def _settings(tmp_path: Path, **more: Any) -> dict[str, Any]:
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "max_steps": 1}
    cpu = {"use_cpu": True, "bf16": False, "activation_checkpointing": False, "per_device_train_batch_size": 1}
    return quiet | cpu | {"output_dir": str(tmp_path / "trained")} | more


def test_the_sft_trainer_prepares_all_rows(out: Path, tmp_path: Path) -> None:
    from trl import SFTConfig, SFTTrainer

    names, rows = tokenizer(), _rows(out, "sft")
    config = SFTConfig(**_settings(tmp_path, max_length=None, assistant_only_loss=True, packing=False))
    trainer = SFTTrainer(model(len(names)), args=config, train_dataset=rows, processing_class=names)
    assert len(trainer.train_dataset) == len(rows)
    for row, prepared in zip(rows, trainer.train_dataset, strict=True):
        learnt = names.decode([label for label in prepared["labels"] if label != -100])
        trained = [m for m, weight in zip(row["messages"], row["weights"], strict=True) if weight]
        # One end mark for each turn that the spec trains, and its words.
        assert learnt.count("<|e|>") == len(trained)
        assert all(message["content"] in learnt for message in trained)


def test_the_dpo_trainer_prepares_all_pairs(out: Path, tmp_path: Path) -> None:
    from trl import DPOConfig, DPOTrainer

    names, rows = tokenizer(), _rows(out, "preference")
    config = DPOConfig(**_settings(tmp_path, max_length=None))
    trainer = DPOTrainer(
        model(len(names)), ref_model=model(len(names)), args=config, train_dataset=rows, processing_class=names
    )
    prepared = trainer.train_dataset
    assert len(prepared) == len(rows)
    assert all(row["chosen_ids"] != row["rejected_ids"] and row["prompt_ids"] for row in prepared)


def test_the_grpo_trainer_takes_the_prompts(out: Path, tmp_path: Path) -> None:
    from trl import GRPOConfig, GRPOTrainer

    names, rows = tokenizer(), _rows(out, "rl")
    short = sorted(range(len(rows)), key=lambda i: sum(len(m["content"] or "") for m in rows[i]["prompt"]))[:1]
    seen: list[str] = []

    def reward(completions: list[Any], gold: list[str], **rest: Any) -> list[float]:
        seen.extend(gold)
        return [float(i) for i, _ in enumerate(completions)]

    config = GRPOConfig(
        **_settings(tmp_path, num_generations=2, max_completion_length=4) | {"per_device_train_batch_size": 2}
    )
    trainer = GRPOTrainer(
        model(len(names)), reward_funcs=reward, args=config, train_dataset=rows.select(short), processing_class=names
    )
    trainer.train()
    assert "actions" in json.loads(seen[0])
