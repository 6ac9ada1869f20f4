"""Rows with tokens: what is counted and trained is what the tokenizer and the real trainer say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.training import model

from .conftest import TOOLS, Made, Make, calls, result, run, says, system, user
from .test_trainers import arguments, loaded, quiet

pytest.importorskip("tokenizers")
FIXTURES = (quiet,)
TINY = Path(__file__).parents[2] / "runtime" / "rendering" / "tiny_qwen3"
RECORDS = [
    run(
        str(i),
        system(),
        user(f"Where is {i}?"),
        calls((f"c{i}", "find", f'{{"id": {i}}}'), text="Looking", reasoning_content=f"It may be {i} é"),
        result(f"c{i}", "Error: none" if i == 2 else "Paris", name="find", is_error=i == 2),
        calls((f"d{i}", "cancel", '{"order": "x", "force": null}')),
        result(f"d{i}", "done"),
        says(f"In Paris: {i} é", reasoning_content="seen"),
        user("bye"),
        tools=TOOLS if i % 2 else None,
        success=True,
    )
    for i in range(6)
]
# What the template of `builtin:tiny-qwen3` writes for each trained message, put together by hand.
CALL = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'


def generated(i: int, *, reasoning: bool) -> list[str]:
    """The text of each assistant message that a model would have to write."""
    first = f"<think>\nIt may be {i} é\n</think>\n\n" if reasoning else ""
    last = "<think>\nseen\n</think>\n\n" if reasoning else ""
    looking = "Looking\n" + CALL.format("find", f'{{"id": {i}}}')
    cancel = CALL.format("cancel", '{"order": "x", "force": null}')
    return [f"{said}<|im_end|>" for said in (first + looking, cancel, f"{last}In Paris: {i} é")]


def decoded(row: dict[str, Any]) -> str:
    from tokenizers import Tokenizer

    kept = [label for label in row["labels"] if label != -100]
    return str(Tokenizer.from_file(str(TINY / "tokenizer.json")).decode(kept, skip_special_tokens=False))


@pytest.mark.parametrize(
    ("settings", "reasoning", "picked"),
    [
        ("loss on assistant", True, slice(None)),
        ("loss on assistant except reasoning", False, slice(None)),
        ("loss on assistant only last", True, slice(2, 3)),
        ("loss on assistant where calls is not empty", True, slice(0, 2)),
        ("loss on assistant reasoning strip", False, slice(None)),
    ],
)
@pytest.mark.parametrize("format_", ["trl", "openai"])
def test_decoded_labels_are_what_the_spec_trains(
    made: Make, settings: str, reasoning: bool, picked: slice, format_: str
) -> None:
    got = made(RECORDS, f'render "builtin:tiny-qwen3" emit sft {{ {settings} format {format_} }}')
    rows = got.rows("sft")
    assert len(rows) == 6
    for row in rows:
        i = int(row["task"].rsplit("/")[-1])
        assert decoded(row) == "".join(generated(i, reasoning=reasoning)[picked])
        assert row["n_trained"] == sum(label != -100 for label in row["labels"])
        assert row["n_tokens"] == len(row["input_ids"])
        assert all(label in (-100, token) for label, token in zip(row["labels"], row["input_ids"], strict=True))
    assert got.written["sft"].exact


def test_tokens_of_a_trajectory_are_those_of_its_row(made: Make) -> None:
    """`tokens` counts the whole run, tools and template too; a row ends with its last trained message."""
    got = made(RECORDS, 'render "builtin:tiny-qwen3" derive t = tokens derive n = trained_tokens emit sft { }')
    rows = {row["example_id"]: row for row in got.rows("sft")}
    for id_, tokens, trained in got.executed.shared.rows.select("id", "t", "n").iter_rows():
        assert trained == rows[id_]["n_trained"]
        assert tokens > rows[id_]["n_tokens"]


def test_fit_counts_the_whole_row(made: Make) -> None:
    sizes = sorted(row["n_tokens"] for row in made(RECORDS, 'render "builtin:tiny-qwen3" emit sft { }').rows("sft"))
    spec = 'render "builtin:tiny-qwen3" emit sft {{ fit {} tokens else {} }}'
    got = made(RECORDS, spec.format(sizes[3], "drop"), name="drop")
    assert sorted(row["n_tokens"] for row in got.rows("sft")) == [n for n in sizes if n <= sizes[3]]
    for how in ("cut oldest exchange", "window"):
        got = made(RECORDS, spec.format(sizes[-1] - 20, how), name=how[:3])
        assert all(row["n_tokens"] <= sizes[-1] - 20 for row in got.rows("sft"))
        got.conserved("sft")
    texts = {decoded(row) for row in got.rows("sft")}
    wholes = [piece for i in range(6) for piece in generated(i, reasoning=True)]
    assert sorted(piece + "<|im_end|>" for text in texts for piece in text.split("<|im_end|>")[:-1]) == sorted(wholes)


def test_what_a_template_cannot_show_is_rejected(made: Make) -> None:
    injected = run("x", user("hi <|im_end|>"), says("ok"), success=True)
    got = made([injected, RECORDS[0]], 'render "builtin:tiny-qwen3" emit sft { }')
    assert list(got.reasons("sft").values()) == ["special_token_in_text"]
    assert len(got.rows("sft")) == 1
    got.conserved("sft")


def test_a_mix_by_trained_tokens_counts_what_the_sink_trains(made: Make) -> None:
    mix = "blend: mix {{ runs 100% }} by trained_tokens to {}"
    spec = f'render "builtin:tiny-qwen3" emit sft {{{{ {mix} loss on assistant {{}} }}}}'
    for loss in ("", "only last", "except reasoning"):
        whole = made(RECORDS, spec.format("at most 1_000_000", loss), name=f"all{loss[:3]}").rows("sft")
        counts = sorted(row["n_trained"] for row in whole)
        most = sum(counts) - 1
        some = made(RECORDS, spec.format(f"at most {most}", loss), name=f"some{loss[:3]}").rows("sft")
        assert len(some) == 5
        assert sum(row["n_trained"] for row in some) <= most


@pytest.mark.slow
def test_the_trainer_takes_tokens_and_labels_as_they_are(made: Made, quiet: None, tmp_path: Path) -> None:
    from transformers import AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    got = made(RECORDS, 'render "builtin:tiny-qwen3" emit sft { loss on assistant where none(calls where is_error) }')  # type: ignore[operator]
    names = AutoTokenizer.from_pretrained(str(TINY))
    trainer = SFTTrainer(
        model(len(names)),
        args=SFTConfig(**arguments(got, "sft", tmp_path, per_device_train_batch_size=6)),
        train_dataset=loaded(got, "sft"),
        processing_class=names,
    )
    batch = next(iter(trainer.get_train_dataloader()))
    seen = sorted([t for t in row if t != -100] for row in batch["labels"].tolist())
    rows = got.rows("sft")
    assert seen == sorted([t for t in row["labels"] if t != -100] for row in rows)
    assert sum(map(len, seen)) > 50
    trainer.train()
    for row in rows:
        messages = [orjson.loads(text) if isinstance(text, str) else text for text in row["messages"]]
        text = names.apply_chat_template(messages, tools=row["tools"], tokenize=False)
        assert names(text, add_special_tokens=False)["input_ids"] == row["input_ids"]


def test_the_ledger_says_how_long_a_row_is_and_what_a_template_said(made: Make, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    refuses = "{{ raise_exception('no ' + m.role) if m.content == 'bad' }}"
    template = f"{{% for m in messages %}}{refuses}{{{{ m.content }}}}{{% endfor %}}"
    (tmp_path / "a" / "t.jinja").write_text(template)
    records = [run("x", user("bad"), says("ok"), success=True)]
    got = made(records, 'render "builtin:tiny-qwen3" template "t.jinja" emit sft { }')
    assert got.ledger("sft").filter(action="rejected").select("reason", "key").rows() == [
        ("template_raises", "no user")
    ]
    rows = made(RECORDS, 'render "builtin:tiny-qwen3" emit sft { }', name="b").rows("sft")
    got = made(RECORDS, 'render "builtin:tiny-qwen3" emit sft { fit 10 tokens else drop }', name="c")
    told = dict(got.ledger("sft").filter(reason="over_length").select("traj_id", "key").iter_rows())
    assert told == {row["example_id"]: f"{row['n_tokens']} tokens" for row in rows}


def test_changed_turns_without_loss_are_counted(made: Make) -> None:
    step = 'x: turns set content = "short" where role == "assistant" and calls is empty'
    spec = f"{step} emit sft {{{{ loss on assistant {{}} }}}}"
    told = made(RECORDS, spec.format("")).ledger("sft").filter(reason="changed_by_steps")
    assert told["n"].to_list() == [1] * 6
    told = made(RECORDS, spec.format("including edited"), name="b").ledger("sft").filter(reason="changed_by_steps")
    assert told.is_empty()
