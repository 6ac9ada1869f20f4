"""After `render` the rows of rl and preference sinks count tokens exactly: by hand, by transformers, by TRL."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from .conftest import TOOLS, Made, Make, calls, result, run, says, system, user

pytest.importorskip("tokenizers")
FOLDER = Path(str(files("curatec.runtime.rendering") / "tiny_qwen3"))
RENDER = 'render "builtin:tiny-qwen3"'
PAIRS = "pair within task from first difference chosen where success rejected where not success"


def attempt(answer: str, good: bool, **more: Any) -> dict[str, Any]:
    opening = [system(), user("Find 7"), calls((answer, "find", {"id": 7}), text="Looking"), result(answer, "Paris")]
    return run("1", *opening, says(answer), success=good, gold=[{"name": "find", "arguments": {"id": 7}}], **more)


RECORDS = [attempt("In Paris, é", True, tools=TOOLS), attempt("Rome", False, tools=TOOLS)]


def encoded(text: str) -> int:
    from tokenizers import Tokenizer

    return len(Tokenizer.from_file(str(FOLDER / "tokenizer.json")).encode(text, add_special_tokens=False).ids)


def told(made: Made, sink: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((made.out / sink / "trainer.yaml").read_text())
    return found


def test_counts_by_hand(made: Make) -> None:
    records = [run("1", user("Hi"), says("yes"), success=True), run("1", user("Hi"), says("no no"), success=False)]
    memory = "emit memory { key task_text value final_answer }"
    got = made(records, f"{RENDER} emit rl {{ }} emit preference {{ {PAIRS} }} {memory}")
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    yes, no = (encoded(f"{prompt}{said}<|im_end|>\n") for said in ("yes", "no no"))
    assert {row["n_tokens"] for row in got.rows("rl")} == {encoded(prompt)}
    [pair] = got.rows("preference")
    assert (pair["n_chosen"], pair["n_rejected"]) == (yes, no)
    assert pair["n_trained"] == yes + no - 2 * encoded(prompt)
    assert pair["n_tokens"] == pair["n_trained"] + encoded(prompt)
    assert {(row["value"], row["n_tokens"]) for row in got.rows("memory", "memory")} == {
        (said, encoded("Hi") + encoded(said)) for said in ("yes", "no no")
    }
    renderer = got.executed.shared.renderer
    assert renderer is not None
    for sink in ("rl", "preference", "memory"):
        assert told(got, sink)["tokens"] == "exact"
        assert told(got, sink)["template_digest"] == renderer.template_digest
    assert f"has {max(yes, no)}." in (got.out / "preference" / "trainer.yaml").read_text()


def test_what_the_template_refuses_is_rejected_and_pairs_with_nobody(made: Make) -> None:
    records = [*RECORDS, attempt("<|im_end|>", True, tools=TOOLS)]
    records[2]["messages"][1]["content"] += "<|im_end|>"
    got = made(records, f"{RENDER} emit rl {{ prompt until last assistant }} emit preference {{ {PAIRS} }}")
    for sink in ("rl", "preference"):
        assert got.written[sink].rejected == {"special_token_in_text": 1}
        got.conserved(sink)
    assert len(got.rows("preference")) == 1


def test_a_pair_whose_prompt_the_template_refuses_is_rejected(
    made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs are shown as they are; what asks for an answer is not."""
    text = """{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}{% endfor %}
{% if add_generation_prompt %}{{ raise_exception('no questions') }}{% endif %}"""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mute.jinja").write_text(text)
    monkeypatch.chdir(tmp_path / "a")  # where the spec stands
    records = [run("1", user("Hi"), says("yes"), success=True), run("1", user("Hi"), says("no no"), success=False)]
    got = made(records, f'{RENDER} template "mute.jinja" emit rl {{ }} emit preference {{ {PAIRS} }}')
    assert got.written["rl"].rejected == {"template_raises": 2}
    written = got.written["preference"]
    assert (written.rejected, written.created, written.replaced) == ({"template_raises": 1}, 1, 2)
    assert got.rows("preference") == []
    for sink in ("rl", "preference"):
        got.conserved(sink)


@pytest.mark.parametrize("form", ["trl", "openai"])
def test_both_forms_count_alike(made: Make, form: str) -> None:
    settings = f"emit rl {{ prompt until last assistant format {form} }} emit preference {{ {PAIRS} format {form} }}"
    got = made(RECORDS, f"{RENDER} {settings}")
    plain = made(RECORDS, f"{RENDER} {settings.replace('openai', 'trl')}", name="b")
    for sink in ("rl", "preference"):
        assert [row["n_tokens"] for row in got.rows(sink)] == [row["n_tokens"] for row in plain.rows(sink)]


@pytest.mark.slow
@pytest.mark.parametrize("pick", ["first", "last"])
def test_transformers_counts_the_same_prompts(made: Make, pick: str) -> None:
    transformers = pytest.importorskip("transformers")
    names = transformers.AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    got = made([*RECORDS, attempt("No tools", True)], f"{RENDER} emit rl {{ prompt until {pick} assistant }}")
    assert len(got.rows("rl")) == 3
    for row in got.rows("rl"):
        ids = names.apply_chat_template(
            row["prompt"], tools=row["tools"], add_generation_prompt=True, return_dict=False, tokenize=True
        )
        assert row["n_tokens"] == len(ids)


@pytest.mark.slow
def test_trl_counts_the_same_sides(made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "trl", "datasets"):
        pytest.importorskip(name)
    import torch
    from datasets import load_dataset
    from transformers import AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    from tests.training import model

    torch.set_num_threads(1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf"))
    names = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    got = made(RECORDS, f"{RENDER} emit preference {{ {PAIRS} }}")
    rows = load_dataset("parquet", data_files=str(got.out / "preference" / "train.parquet"), split="train")
    assert rows[0]["tools"] == TOOLS
    quiet = {
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "max_steps": 1,
        "use_cpu": True,
        "bf16": False,
    }
    args = DPOConfig(**told(got, "preference")["args"] | quiet, output_dir=str(tmp_path / "out"))
    trainer = DPOTrainer(
        model(len(names)), ref_model=model(len(names)), args=args, train_dataset=rows, processing_class=names
    )
    for row, prepared in zip(rows, trainer.train_dataset, strict=True):
        prompt = len(prepared["prompt_ids"])
        assert "<tools>" in names.decode(prepared["prompt_ids"])
        assert prompt + len(prepared["chosen_ids"]) == row["n_chosen"]
        assert prompt + len(prepared["rejected_ids"]) == row["n_rejected"]
        assert len(prepared["chosen_ids"]) + len(prepared["rejected_ids"]) == row["n_trained"]
    trainer.train()
