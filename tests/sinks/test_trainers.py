"""The real `datasets` and TRL read the files unchanged, and train what the spec says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.training import model, tokenizer

from .conftest import TOOLS, Made, Make, calls, result, run, says, system, trained_texts, user

pytestmark = pytest.mark.slow
for _name in ("datasets", "trl", "torch", "tokenizers"):
    pytest.importorskip(_name)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)  # two threads spin against each other under load
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")


def loaded(made: Made, sink: str, kind: str = "parquet") -> Any:
    from datasets import load_dataset

    suffix = "parquet" if kind == "parquet" else "jsonl"
    return load_dataset(kind, data_files=str(made.out / sink / f"train.{suffix}"), split="train")


def arguments(made: Made, sink: str, tmp_path: Path, **more: Any) -> dict[str, Any]:
    """The `args` of trainer.yaml, and what a test on a CPU needs."""
    from ruamel.yaml import YAML

    settings = YAML(typ="safe").load((made.out / sink / "trainer.yaml").read_text())
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "max_steps": 1}
    cpu = {"use_cpu": True, "bf16": False, "activation_checkpointing": False}
    return settings["args"] | quiet | cpu | {"output_dir": str(tmp_path / "trained")} | more


RECORDS = [
    run(
        str(i),
        system(),
        user(f"Where is {i}?"),
        calls((f"c{i}", "find", f'{{"id": {i}}}'), text="Looking"),
        result(f"c{i}", "Paris", name="find"),
        calls((f"d{i}", "cancel", '{"order": "x", "force": null}')),
        result(f"d{i}", "done"),
        says(f"In Paris: {i} é"),
        user("bye"),
        tools=TOOLS if i % 2 else TOOLS[:1],
        success=i < 3,
        reward=float(i < 3),
        gold=[{"name": "find"}],
    )
    for i in range(6)
]


def test_both_readers_give_the_same_rows(made: Make) -> None:
    got = made(RECORDS, "emit sft { loss on assistant } emit rl { prompt until last assistant }")
    for sink, column in (("sft", "messages"), ("rl", "prompt")):
        parquet, lines = loaded(got, sink), loaded(got, sink, "json")
        assert list(parquet) == list(lines) == got.rows(sink)
        assert set(parquet[0][column][1]) == {"role", "content"}


def test_features_of_the_parquet_file_serve_the_lines(made: Make) -> None:
    """Types are guessed from the first 10 MB of lines; a column that is null there needs them given."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetGenerationError

    bare = [run(f"a{i}", user("x" * 200_000), says("b")) for i in range(60)]
    got = made([*bare, run("b", user("a"), says("b"), tools=TOOLS, license="MIT")], "emit sft { loss on assistant }")
    with pytest.raises(DatasetGenerationError):
        loaded(got, "sft", "json")
    parquet = loaded(got, "sft")
    path = str(got.out / "sft" / "train.jsonl")
    lines = load_dataset("json", data_files=path, split="train", features=parquet.features)
    assert list(lines) == list(parquet)


def trained_by(trainer: Any, names: Any) -> list[str]:
    """The text of each row that has a label."""
    found = []
    for row in trainer.train_dataset:
        kept = [token for token, label in zip(row["input_ids"], row["labels"], strict=True) if label != -100]
        found.append(names.decode(kept))
    return found


@pytest.mark.parametrize(
    ("loss", "mask"),
    [("", "assistant"), ("only last", "completion"), ("where count(calls) == 0 or index > 3", "messages")],
)
def test_sft_trains_the_text_that_the_spec_says(made: Make, tmp_path: Path, loss: str, mask: str) -> None:
    from ruamel.yaml import YAML
    from trl import SFTConfig, SFTTrainer

    got = made(RECORDS, f"emit sft {{ loss on assistant {loss} }}")
    assert YAML(typ="safe").load((got.out / "sft" / "trainer.yaml").read_text())["mask"] == mask
    names = tokenizer()
    trainer = SFTTrainer(
        model(len(names)),
        args=SFTConfig(**arguments(got, "sft", tmp_path, per_device_train_batch_size=2)),
        train_dataset=loaded(got, "sft"),
        processing_class=names,
    )
    expected = []
    for row in got.texts("sft"):
        pieces: dict[int, str] = {}
        for message, _, text in trained_texts(row):
            # The template writes a call as its `function` object; `tojson` puts spaces in, as does the source here.
            spaced = text.replace('":', '": ').replace(',"', ', "').replace('":  ', '": ')
            pieces[message] = pieces.get(message, "") + (spaced if text.startswith('{"name"') else text)
        expected.append("".join(text + "<|e|>" for text in pieces.values()))
    assert [text.replace("\n", "") for text in trained_by(trainer, names)] == expected
    trainer.train()


def test_dpo_takes_pairs(made: Make, tmp_path: Path) -> None:
    from trl import DPOConfig, DPOTrainer

    def attempt(id_: str, answer: str, good: bool) -> dict[str, Any]:
        opening = [system(), user("Find 7"), calls((id_, "find", {"id": 7})), result(id_, "Paris")]
        return run("1", *opening, says(answer), tools=TOOLS, success=good)

    records = [attempt("a", "Paris", True), attempt("b", "Rome", False), attempt("c", "Bonn", False)]
    got = made(
        records,
        "emit preference { pair within task from first difference chosen where success rejected where not success }",
    )
    names = tokenizer()
    trainer = DPOTrainer(
        model(len(names)),
        ref_model=model(len(names)),
        args=DPOConfig(**arguments(got, "preference", tmp_path)),
        train_dataset=loaded(got, "preference"),
        processing_class=names,
    )
    row = trainer.train_dataset[0]
    assert names.decode(row["prompt_ids"]).endswith("<|s|>assistant\n")
    assert names.decode(row["chosen_ids"]) == "Paris<|e|>\n"
    trainer.train()


JUDGED = [
    record | {"gold": {"actions": [{"name": "find", "kwargs": {"id": i}}], "outputs": ["Paris"]}, "trial": i, "seed": i}
    for i, record in enumerate(RECORDS)
]


def test_grpo_gives_rewards_what_they_need(made: Make, tmp_path: Path) -> None:
    from trl import GRPOConfig, GRPOTrainer

    got = made(JUDGED, "emit rl { prompt until last assistant reward 0.8 * state_match + 0.2 * answer_match group 2 }")
    seen: list[dict[str, Any]] = []

    def reward(completions: list[Any], **columns: Any) -> list[float]:
        seen.append(columns)
        return [float(i) for i, _ in enumerate(completions)]

    names = tokenizer()
    config = arguments(got, "rl", tmp_path, per_device_train_batch_size=2, max_completion_length=8)
    trainer = GRPOTrainer(
        model(len(names)),
        reward_funcs=reward,
        args=GRPOConfig(**config),
        train_dataset=loaded(got, "rl"),
        processing_class=names,
    )
    trainer.train()
    columns = seen[0]
    assert set(got.rows("rl")[0]) - {"prompt"} <= set(columns)
    assert columns["group"][0] == columns["group"][1]  # `group 2`: two rollouts of one row
    [row] = [row for row in got.rows("rl") if row["group"] == columns["group"][0]]
    for name in ("gold_calls", "gold_answers", "reset", "reward", "state_digest", "pass_rate", "tools", "gold"):
        assert columns[name] == [row[name]] * 2, name
    trial = columns["reset"][0]["trial"]
    assert columns["gold_calls"][0] == [{"name": "find", "arguments": {"id": trial}}]
    assert columns["reset"][0] == {
        "domain": "runs", "task_id": str(trial), "trial": trial, "format": "openai", "seed": trial,
    }  # fmt: skip
    assert columns["reward"][0] == [{"name": "state_match", "weight": 0.8}, {"name": "answer_match", "weight": 0.2}]


@pytest.mark.filterwarnings("ignore:You are using 'environment_factory'")
def test_grpo_resets_an_environment_with_the_row(made: Make, tmp_path: Path) -> None:
    from importlib.resources import files

    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_template

    got = made(JUDGED, "emit rl { prompt until first assistant reward state_match group 2 }")
    rows = {row["group"]: row for row in got.rows("rl")}
    resets: list[dict[str, Any]] = []

    class Desk:
        """Knows its task from `reset`, and owns the reward."""

        def reset(self, reset: dict[str, Any], **row: Any) -> None:
            self.task = reset
            resets.append({"reset": reset, **row})

        def find(self, id: int) -> str:
            """Find something.

            Args:
                id: Its number.
            """
            return "Paris"

        def get_reward(self) -> float:
            return float(self.task["seed"])

    names = AutoTokenizer.from_pretrained(
        str(files("curatec.runtime.rendering") / "tiny_qwen3"), local_files_only=True, padding_side="left"
    )
    names.response_template = qwen3_template  # how TRL finds the calls in what was generated
    config = arguments(got, "rl", tmp_path, per_device_train_batch_size=2, max_completion_length=4)
    trainer = GRPOTrainer(
        model(len(names)),
        args=GRPOConfig(**config),
        train_dataset=loaded(got, "rl"),
        processing_class=names,
        environment_factory=Desk,
    )
    trainer.train()
    assert len(resets) >= 2
    for row in resets:
        assert row == rows[row["group"]]
