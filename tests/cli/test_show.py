"""`curatec show`: rows of every format, what made a row, and the tokens of a row as text."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.answers.tokens import pieces
from tests import every_step
from tests.cli.conftest import SPEC, Place, corpus, write_lines

ONE_FORMAT = """curate 1
source desk {{ path "runs/desk-a.jsonl" error when content ~ r"^Error" }}
strategy s {{ from desk emit sft {{ format {format} loss on assistant {mask} }} }}
"""
MASKED = "where none(calls where is_error)"


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An output of every step that makes, replaces, redacts, joins or seals rows."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    root = tmp_path_factory.mktemp("every")
    every_step.write(root)
    made = Place(root)
    made("compile", "every_step.curate", "-o", "out", "-q")
    return made


# ---- formats ----


@pytest.mark.parametrize(
    ("format_", "roles"),
    [
        ("trl", "system user assistant tool assistant tool assistant tool assistant"),
        ("openai", "system user assistant tool assistant tool assistant tool assistant"),
        ("sharegpt", "system human function_call observation function_call observation function_call observation gpt"),
        ("llamafactory", "system user assistant tool assistant tool assistant tool assistant"),
        ("verl", "system user assistant tool assistant tool assistant tool assistant"),
        ("atif", "system user agent result agent result agent result agent"),
    ],
)
def test_every_format_is_read_alike(tmp_path: Path, format_: str, roles: str) -> None:
    """The run fails a call, puts it right, changes the order, says so. sharegpt has no mask: all is trained."""
    mask = "" if format_ == "sharegpt" else MASKED
    every_step.write(tmp_path, ONE_FORMAT.format(format=format_, mask=mask))
    place = Place(tmp_path)
    place("compile", "every_step.curate", "-o", "out", "-q")
    ran = place("show", "out", "t1.1").out
    assert re.findall(r"^\[\d\] (\w+)", ran, re.MULTILINE) == roles.split()
    assert "tools look_up, change_order" in ran
    assert "(estimate)" in ran
    marked = [re.sub(r"\s+", "", text) for text in re.findall(r"⟦(.*?)⟧", ran, re.DOTALL)]
    order = '"order_id":"#W10138"'
    calls = [
        ("look_up", f'{{{order},"exact":true}}'),
        ("look_up", f"{{{order}}}"),
        ("change_order", f'{{{order},"street":11}}'),
    ]
    if format_ == "sharegpt":
        said = [f'{{"name":"{name}","arguments":{arguments}}}' for name, arguments in calls]
    else:
        said = [f"{name}({arguments})" for name, arguments in calls[1:]]
        assert 'look_up({"order_id": "#W10138", "exact": true})' in ran
    assert marked == [*said, "Parcel1nowgoestostreet11."]
    data = place("show", "out", "t1.1", "--json").json["rows"]
    assert [(row["format"], row["exact"], row["made"]) for row in data] == [(format_, False, [])]


def test_reasoning_parts_and_weights(tmp_path: Path) -> None:
    runs = corpus(1, 1)
    runs[0]["messages"][-1] |= {"reasoning_content": "let me see"}
    write_lines(tmp_path / "runs" / "a.jsonl", runs)
    spec = 'curate 1 source r {{ path "runs/*" }} strategy s {{ from r emit sft {{ format {} loss on assistant {} }} }}'
    for format_, weight in (("llamafactory", "weight 0.5"), ("atif", "")):
        (tmp_path / "s.curate").write_text(spec.format(format_, weight), encoding="utf-8")
        place = Place(tmp_path)
        place("compile", "s.curate", "-o", "out", "-q")
        ran = place("show", "out").out
        assert "(reasoning) ⟦let me see⟧" in ran
        assert "⟦well 0⟧" in ran
        assert ("assistant × 0.5" in ran) == (format_ == "llamafactory")


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("trl", "prompt user hi|chosen assistant ⟦yes⟧|rejected assistant ⟦no⟧"),
        ("openai", "prompt user hi|chosen assistant ⟦yes⟧|rejected assistant ⟦no⟧"),
        ("sharegpt", "prompt human hi|chosen gpt ⟦yes⟧|rejected gpt ⟦no⟧"),
        ("llamafactory", "chosen_messages user hi assistant ⟦yes⟧|rejected_messages user hi assistant ⟦no⟧"),
    ],
)
def test_pairs_of_every_format(tmp_path: Path, format_: str, expected: str) -> None:
    said = [
        {"task_id": "t", "success": good, "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes" if good else "no"}
        ]}
        for good in (True, False)
    ]  # fmt: skip
    write_lines(tmp_path / "runs" / "a.jsonl", said)
    spec = (
        'curate 1 source r { path "runs/*" } strategy s { from r emit preference { '
        f"format {format_} pair within task chosen where success rejected where not success }} }}"
    )
    (tmp_path / "s.curate").write_text(spec, encoding="utf-8")
    place = Place(tmp_path)
    place("compile", "s.curate", "-o", "out", "-q")
    parts = place("show", "out").out.split("\n── ")[1:]
    shown = [re.sub(r"\W*(──|\[\d\]|\(context\))", "", part).split() for part in parts]
    assert "|".join(" ".join(part) for part in shown) == expected


# ---- rows that were made ----


def test_a_made_row_says_what_made_it(every: Place) -> None:
    lineage = pl.read_parquet(every.root / "out" / "lineage.parquet")
    by = dict(lineage.select("out", pl.struct("operator", "in")).iter_rows())
    runs = set(pl.read_parquet(every.root / "out" / "runs.parquet")["id"])
    rows = pl.read_parquet(every.root / "out" / "sft" / "train.parquet", columns=["example_id"])["example_id"]
    deepest = max(rows, key=lambda id_: (id_.count("#"), id_))
    assert deepest.count("#") >= 3
    [data] = every("show", "out", deepest, "--sink", "sft", "--json").json["rows"]
    at, found = deepest, []
    while at not in runs:
        found.append((by[at]["operator"], [by[at]["in"]]))
        at = by[at]["in"]
    assert [(made["by"], made["from"]) for made in data["made"]] == found
    ran = every("show", "out", deepest, "--sink", "sft").out
    labels = {"distractors": " (crowded)", "rebind": " (renamed)", "recover": " (put_right)", "window": ""}
    for operator, [parent] in found:
        assert f"  made by {operator}{labels[operator]} from {parent}\n" in ran
    assert "(estimate)" not in ran


def test_a_pair_says_both_of_its_runs(every: Place) -> None:
    [data] = every("show", "out", "--sink", "preference", "--json").json["rows"]
    assert [(made["by"], made["from"]) for made in data["made"]] == [("pair", data["row"]["parents"])]
    assert f"made by pair from {', '.join(data['row']['parents'])}" in every("show", "out", "--sink", "preference").out


# ---- tokens ----


def test_tokens_of_a_row_by_hand(tmp_path: Path) -> None:
    """What the template of `builtin:tiny-qwen3` writes, put together by hand; the failed call is context."""
    pytest.importorskip("tokenizers")
    text = SPEC.replace("  crash:", '  render "builtin:tiny-qwen3"\n  crash:')
    (tmp_path / "small.curate").write_text(text, encoding="utf-8")
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(6, tool="fine é 東 <b>"))
    place = Place(tmp_path)
    place("compile", "small.curate", "-o", "out", "-q")
    ran = place("show", "out", "t1.1", "--tokens").out
    expected = (
        "<|im_start|>user\ntask 1: how is it?<|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "look", "arguments": {"n": -1}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nError: no\n</tool_response><|im_end|>\n"
        '<|im_start|>assistant\n⟦<tool_call>\n{"name": "look", "arguments": {"n": 1}}\n</tool_call><|im_end|>⟧\n'
        "<|im_start|>user\n<tool_response>\nfine é 東 <b>\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n⟦well 1<|im_end|>⟧\n"
    )
    head, _, shown = ran.partition("\n\n")
    assert shown == expected + "\n"
    assert "(estimate)" not in head
    [data] = place("show", "out", "t1.1", "--sink", "sft", "--tokens", "--json").json["rows"]
    assert "".join(piece["text"] for piece in data["pieces"]) == expected.replace("⟦", "").replace("⟧", "")
    assert "C0622" in place("show", "out", "--sink", "memory", "--tokens", code=1).err


def test_tokens_where_none_were_counted(finished: Place) -> None:
    ran = finished("show", "out", "t1.1", "--tokens", code=1)
    assert "the rows of this output hold no tokens" in ran.err
    assert 'render "…"' in ran.err


def test_tokens_of_rows_without_any(every: Place) -> None:
    ran = every("show", "out", "--sink", "rl", "--tokens", code=1)
    assert "the rows of `rl` hold no tokens" in ran.err


def tokenizer(folder: Path) -> None:
    from curatec.runtime.rendering import tiny

    source = Path(tiny.__file__).parent / "tiny_qwen3"
    folder.mkdir()
    for file in source.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())


def test_the_tokenizer_must_be_the_one_of_then(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    text = SPEC.replace("  crash:", '  render "my tokenizer"\n  crash:')
    (tmp_path / "small.curate").write_text(text, encoding="utf-8")
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(3))
    tokenizer(tmp_path / "my tokenizer")
    place = Place(tmp_path)
    place("compile", "small.curate", "-o", "out", "-q")
    assert "⟦well" in place("show", "out", "--sink", "sft", "--tokens").out
    elsewhere = Place(tmp_path / "elsewhere")
    elsewhere.root.mkdir()
    lost = elsewhere("show", "../out", "--sink", "sft", "--tokens", code=1).err
    assert "C0627" in lost
    assert "call this from where it was compiled" in lost
    file = tmp_path / "my tokenizer" / "tokenizer.json"
    changed = json.loads(file.read_text(encoding="utf-8"))
    changed["added_tokens"][0]["content"] = "<|other|>"
    file.write_text(json.dumps(changed), encoding="utf-8")
    ran = place("show", "out", "--sink", "sft", "--tokens", code=1)
    assert "is not what the rows were made with" in ran.err
    # Without tokens the row is there as before.
    assert "⟦well" in place("show", "out", "--sink", "sft").out


def bytes_of(ids: list[int]) -> str:
    """A tokenizer of single bytes."""
    return bytes(ids).decode("utf-8", errors="replace")


@given(st.lists(st.tuples(st.text(max_size=5), st.booleans()), max_size=8))
def test_pieces_are_the_text_and_its_trained_parts(parts: list[tuple[str, bool]]) -> None:
    parts = [(text.encode("utf-8", "ignore").decode().replace("\ufffd", "?"), trained) for text, trained in parts]
    ids = [byte for text, _ in parts for byte in text.encode()]
    labels = [byte if trained else -100 for text, trained in parts for byte in text.encode()]
    found = pieces(bytes_of, ids, labels)
    assert "".join(piece.text for piece in found) == "".join(text for text, _ in parts)
    assert "".join(piece.text for piece in found if piece.trained) == "".join(text for text, t in parts if t)
    assert all(a.trained != b.trained for a, b in pairwise(found))


def test_a_character_in_two_pieces_stands_once() -> None:
    ids = list("aéb".encode())
    assert [(p.text, p.trained) for p in pieces(bytes_of, ids, [-100, -100, ids[2], ids[3]])] == [
        ("a", False),
        ("éb", True),
    ]


def test_a_space_that_only_context_shows_is_kept() -> None:
    """As decoders of SentencePiece: the space before the first word is not written."""
    words = ["▁I", "▁am", "▁here"]

    def decode(ids: list[int]) -> str:
        return "".join(words[i] for i in ids).replace("▁", " ").removeprefix(" ")

    assert [p.text for p in pieces(decode, [0, 1, 2], [-100, 1, -100])] == ["I", " am", " here"]


# ---- what a run may hold ----


def test_nothing_in_a_run_moves_the_terminal(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    hostile = "a\x1b]0;title\x07 b\x9b2J c\x08\x08 d\u202egnp.exe\ttab"
    messages = [{"role": "user", "content": hostile}, {"role": "assistant", "content": f"said {hostile}"}]
    write_lines(tmp_path / "runs" / "a.jsonl", [{"task_id": hostile, "model": hostile, "messages": messages}])
    (tmp_path / "s.curate").write_text(
        'curate 1 source r { path "runs/*" } strategy s { from r render "builtin:tiny-qwen3"'
        " derive who = model sort by who emit sft { loss on assistant } }",
        encoding="utf-8",
    )
    place = Place(tmp_path)
    place("compile", "s.curate", "-o", "out", "-q")
    for arguments in (("show", "out"), ("show", "out", "--tokens"), ("why", "out", "0"), ("inspect", "runs/a.jsonl")):
        ran = place(*arguments, code=None)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", ran.out + ran.err), arguments
    assert "a␛]0;title␇ b⟨U+009B⟩2J c␈␈ d⟨U+202E⟩gnp.exe\ttab" in place("show", "out").out
    [data] = place("show", "out", "--json").json["rows"]
    assert data["row"]["messages"][0]["content"] == hostile
