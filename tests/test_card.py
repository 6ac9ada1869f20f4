"""The dataset card: front matter that `datasets` loads by, numbers of the manifest, text that cannot break out."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from curatec.runtime.compile import Request, compile_spec
from curatec.runtime.report import card
from curatec.runtime.report.text import code, markdown, prose
from curatec.runtime.sinks.written import Written
from tests import every_step
from tests.test_report import QUICKSTART, Made, conversation, make, spec

Json = dict[str, Any]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(QUICKSTART / "service.curate", tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Every step that makes, replaces, redacts, joins or seals rows."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    folder = tmp_path_factory.mktemp("every")
    return make(every_step.write(folder), folder / "work")


def without_run(summary: Json) -> Json:
    return {key: value for key, value in copy.deepcopy(summary).items() if key != "run"}


def front(text: str) -> Json:
    _, matter, _ = text.split("---\n", 2)
    found: Json = YAML(typ="safe").load(matter)
    return found


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str, first: str) -> dict[str, list[str]]:
    """Rows of the table whose head begins with `first`, by their first cell."""
    lines = iter(text.split("\n"))
    next(line for line in lines if line.startswith(f"| {first} |"))
    next(lines)
    found: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        found[cells[0].strip("`")] = cells[1:]
    return found


def inputs(*licenses: list[str]) -> Json:
    return {"inputs": {f"s{i}": {"licenses": names} for i, names in enumerate(licenses)}}


# ---- front matter ----


@pytest.mark.parametrize(
    ("licenses", "expected"),
    [
        ([["MIT"]], {"license": "mit"}),
        ([["Apache-2.0"], ["Apache License 2.0"]], {"license": "apache-2.0"}),
        ([["MIT"], ["CC-BY-4.0"]], {"license": "other", "license_name": "cc-by-4.0-and-mit"}),
        ([["MIT"], []], {"license": "other", "license_name": "mit-and-unknown"}),
        ([[]], {"license": "other", "license_name": "unknown"}),
        ([["My Own: no\nuse"]], {"license": "other", "license_name": "my-own-no-use"}),
        ([["???"]], {"license": "other", "license_name": "unnamed"}),
    ],
)
def test_one_known_licence_or_other(licenses: list[list[str]], expected: Json) -> None:
    assert card.license_of(inputs(*licenses)) == expected


def test_each_sink_is_a_configuration(shop: Made) -> None:
    found = front(card.render(without_run(shop.summary)))
    assert [c["config_name"] for c in found["configs"]] == ["sft", "rl", "memory", "preference"]
    assert [bool(c.get("default")) for c in found["configs"]] == [True, False, False, False]
    assert {"curatec", "agents", "tool-use", "sft"} <= set(found["tags"])
    for config in found["configs"]:
        files = shop.summary["sinks"][config["config_name"]]["files"]
        assert {f["path"] for f in config["data_files"]} == {path for path in files if path.endswith(".parquet")}
        assert {f["split"] for f in config["data_files"]} == set(shop.summary["sinks"][config["config_name"]]["rows"])


def test_splits_without_rows_are_left_out() -> None:
    files = ["a/train.parquet", "a/train.jsonl", "a/validation.parquet"]
    assert card.splits_of({"files": files, "rows": {"train": 0, "validation": 3}}) == {
        "validation": "a/validation.parquet"
    }
    assert card.splits_of({"files": ["memory/memory.parquet"], "rows": {"train": 2}}) == {
        "train": "memory/memory.parquet"
    }
    assert card.splits_of({"files": ["memory/memory.parquet"], "rows": {}}) == {}


# ---- the body ----


def test_numbers_are_those_of_the_manifest(shop: Made) -> None:
    text = card.render(without_run(shop.summary))
    rows = table(text, "sink")
    for name, written in shop.written.items():
        assert rows[name][0] == str(sum(written.rows.values()))
        assert rows[name][2:] == [f"{written.tokens:,}", f"{written.trained_tokens:,}"]
    for part, own in (("**all sinks**", None), ("**sft**", "sft"), ("**rl**", "rl")):
        steps = table(text.split(part, 1)[1], "step")
        for count in shop.executed.ledger.counts:
            if count.sink == own:
                assert steps[count.label][1:4] == [str(count.entered), str(count.dropped), str(count.left)]
                assert (count.because or "") in steps[count.label][4]
    desk = table(section(text, "Sources"), "source")["desk"]
    assert desk[:2] == ["358", "2"]
    assert shop.summary["inputs"]["desk"]["digest"] in desk[-1]


def rows_of(made: Made, sink: str) -> pl.DataFrame:
    files = [made.out / file for file in made.written[sink].files if file.endswith(".parquet")]
    wanted = ["example_id", "n_tokens", "n_trained", "license", "parents"]
    return pl.concat([pl.read_parquet(file, columns=wanted) for file in files])


def test_tokens_are_those_of_the_files_and_said_to_be_exact(every: Made, shop: Made) -> None:
    text = card.render(without_run(every.summary))
    for name, cells in table(text, "sink").items():
        rows = rows_of(every, name)
        assert cells[0] == str(rows.height)
        trained = rows["n_trained"].sum() or 0
        assert cells[2:] == [f"{rows['n_tokens'].sum():,}", f"{trained:,}"]
    assert "Tokens are exact: those of `builtin:tiny-qwen3`" in text
    assert all(every.summary["render"][digest] in text for digest in ("digest", "template_digest"))
    assert "estimate" not in text.split("## Load")[0]
    assert "Tokens are an estimate" in card.render(shop.summary)


def test_steps_that_make_rows_add_up_from_left_to_right(every: Made) -> None:
    text = card.render(without_run(every.summary))
    ledger = every.executed.ledger.table().filter(pl.col("turn").is_null())
    for branch, labels in (("taught", ("crowded", "renamed", "put_right")), ("rl", ("each_decision", "sealed_again"))):
        steps = table(text.split(f"**{branch}**", 1)[1], "step")
        assert list(steps) == list(labels)
        for label in labels:
            own = ledger.filter((pl.col("sink") == branch) & (pl.col("label") == label))
            came, made, dropped, replaced, left = (int(cell) for cell in steps[label][1:6])
            assert came + made - dropped - replaced == left
            found = [own.filter(pl.col("action") == action).height for action in ("created", "dropped", "replaced")]
            assert [made, dropped, replaced] == found
    accounts = table(text.split("Each sink's account", 1)[1], "sink")
    for sink, cells in accounts.items():
        into, created, out, dropped, replaced, rejected = map(int, cells)
        assert into + created == out + dropped + replaced + rejected
        assert out == rows_of(every, sink).height


def test_side_data_is_counted_and_never_shown(every: Made, tmp_path: Path) -> None:
    text = card.render(without_run(every.summary))
    found = table(section(text, "Sources"), "name")
    assert {name: cells[:2] for name, cells in found.items()} == {
        "verdicts": ["table", "12"],
        "bench": ["test set", "2"],
        "kept_back": ["test set", "1"],
    }
    assert every.summary["side"]["tables"]["verdicts"]["digest"] in found["verdicts"][2]
    outside = text.replace(every.summary["spec"]["text"], "")
    assert not [word for word in ("verdicts.csv", "bench.jsonl", "northern warehouse", "bench-<1>") if word in outside]
    notes = section(text, "Notes")
    held_out = {name: w.dropped["held_out"] for name, w in every.written.items()}
    assert "test set (`bench`, `kept_back`)" in notes
    assert all(f"`{name}` {n}" in notes for name, n in held_out.items())


def test_what_was_redacted_and_what_cannot_be(every: Made, shop: Made) -> None:
    text = card.render(without_run(every.summary))
    assert table(section(text, "Redacted"), "family") == {"pii.email": ["64", "64"], "pii.phone": ["66", "66"]}
    assert "Names of people are not found by patterns" in text
    assert "`rejects.jsonl` is not redacted" in text
    assert "Redacted" not in card.render(shop.summary)


def test_licences_of_made_rows_are_those_of_their_runs(every: Made) -> None:
    text = card.render(without_run(every.summary))
    assert "The licence of such a row is that of its run" in text
    assert "Rows of `crowded` also show schemas of tools from runs of other sources" in text
    licences = dict(every.executed.start.rows.select("id", "license").iter_rows())
    for sink in every.written:
        for licence, parents in rows_of(every, sink).select("license", "parents").iter_rows():
            assert set(licence.split(" AND ")) == {licences[parent] for parent in parents}


# ---- how other formats are loaded ----


def loading(folder: Path, format_: str) -> tuple[Made, str]:
    runs = [conversation(i, f"task {i}") for i in range(6)]
    made = make(spec(folder, runs, f"strategy s {{ from t emit sft {{ format {format_} }} }}"), folder / "work")
    return made, section(card.render(without_run(made.summary)), "Load")


def block(text: str, language: str) -> str:
    return text.split(f"```{language}\n", 2)[1].split("```", 1)[0]


def test_the_entry_for_llama_factory_names_what_the_rows_have(tmp_path: Path) -> None:
    made, text = loading(tmp_path, "sharegpt")
    [entry] = json.loads(block(text, "json")).values()
    assert entry["formatting"] == "sharegpt"
    file = made.out / entry["file_name"].removeprefix("path/to/this/folder/")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 6
    assert all(set(entry["columns"].values()) <= row.keys() for row in rows)
    assert all(set(said) == {"from", "value"} for row in rows for said in row[entry["columns"]["messages"]])
    assert "SFTTrainer" not in text


def test_the_file_for_llama_factory_v1(tmp_path: Path) -> None:
    made, text = loading(tmp_path, "llamafactory")
    [entry] = YAML(typ="safe").load(block(text, "yaml")).values()
    file = made.out / entry["path"].removeprefix("path/to/this/folder/")
    first = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    assert {part["type"] for message in first["messages"] for part in message["content"]} == {"text", "tool_call"}


def test_the_settings_for_verl_name_columns(tmp_path: Path) -> None:
    made, text = loading(tmp_path, "verl")
    keys = re.findall(r"data\.\w+_key=(\w+)", text)
    [file] = re.findall(r"data\.train_files=path/to/this/folder/(\S+)", text)
    assert len(keys) == 3
    assert set(keys) <= set(pl.read_parquet_schema(made.out / file))


def test_lines_of_atif_are_trajectories(tmp_path: Path) -> None:
    made, text = loading(tmp_path, "atif")
    [file] = re.findall(r"`(\S+\.jsonl)`", text)
    lines = [json.loads(line) for line in (made.out / file).read_text(encoding="utf-8").splitlines()]
    assert {line["schema_version"] for line in lines} == {"ATIF-v1.7"}
    assert all(
        set(line) <= {"schema_version", "session_id", "trajectory_id", "agent", "steps", "extra"} for line in lines
    )


def test_trl_is_told_of_the_tokens_only_where_there_are_some(every: Made, shop: Made) -> None:
    assert "`input_ids` and `labels`" in section(card.render(every.summary), "Load")
    assert "input_ids" not in section(card.render(shop.summary), "Load")


def test_the_spec_stands_in_it_as_it_is(shop: Made) -> None:
    assert shop.summary["spec"]["text"].rstrip("\n") in card.render(without_run(shop.summary))


def test_only_the_manifest_without_run_is_read(shop: Made, tmp_path: Path) -> None:
    text = card.render(without_run(shop.summary))
    assert text == card.render(shop.summary)
    assert text == card.render(json.loads(json.dumps(shop.summary)))
    assert str(tmp_path.parent) not in text
    assert shop.summary["run"]["host"] not in text or not shop.summary["run"]["host"]
    assert shop.summary["run"]["started"] not in text


def test_partial_output_says_so(shop: Made) -> None:
    assert "Partial" not in card.render(shop.summary)
    text = card.render({**shop.summary, "partial": True})
    assert "> **Partial.**" in text
    assert "those of a sample" in text


def test_it_says_what_is_odd(shop: Made) -> None:
    summary = copy.deepcopy(shop.summary)
    summary["lints"] = [
        {
            "code": "C0616",
            "severity": "warning",
            "message": "3 runs in `sft` call tools whose schemas are not known",
            "help": [],
            "line": 7,
        }
    ]
    summary["sinks"]["sft"] |= {"rows": {}, "rejected": {"two | users": 4}}
    notes = card.render(summary)
    assert "- warning C0616: 3 runs in `sft` call tools whose schemas are not known (line 7 of the spec)" in notes
    assert "2 records of source `desk` could not be read" in notes
    assert "licence of `desk` is not known" in notes
    assert "4 rejected (two \\| users)" in notes
    assert "`sft` has no rows and so no configuration." in notes


def test_no_sink_has_rows(shop: Made) -> None:
    summary = copy.deepcopy(shop.summary)
    for sink in summary["sinks"].values():
        sink["rows"] = {}
    text = card.render(summary)
    assert "configs" not in front(text)
    assert "No sink wrote a row." in text


HOSTILE = "a | b `c` ``` <script> [x](http://y) \n# title\n---\n*e* \x00 \u202e"


def test_text_cannot_break_out(shop: Made) -> None:
    summary = copy.deepcopy(shop.summary)
    summary["steps"][0] |= {"because": HOSTILE, "see": [HOSTILE], "text": HOSTILE}
    summary["spec"]["text"] = "````\n" + HOSTILE
    summary["inputs"]["desk"]["licenses"] = [HOSTILE]
    summary["sinks"]["sft"]["notes"] = [HOSTILE]
    text = card.render(summary)
    assert front(text)["license"] == "other"
    assert "\n`````\n````\na | b" in text
    row = table(text.split("**all sinks**", 1)[1], "step")["split_task"]
    assert len(row) == 5
    parsed = [*tokens(text)]
    assert not [t for t in parsed if t.type in ("html_block", "html_inline", "em_open", "hr")]
    assert [t.attrs["href"] for t in parsed if t.type == "link_open"] == ["https://huggingface.co/docs/trl"]
    assert sum(t.type == "heading_open" and t.tag == "h1" for t in parsed) == 1
    assert not re.search("[\x00\u202e]", text)


def tokens(text: str) -> Iterator[Any]:
    """What a Markdown parser makes of the body."""
    body = text.split("---\n", 2)[2]
    for token in MarkdownIt("commonmark").enable("table").parse(body):
        yield token
        yield from token.children or ()


@given(st.text())
def test_code_spans_hold_any_text(text: str) -> None:
    found = code(text)
    marks = re.match("`+", found)
    assert marks
    inner = found[len(marks[0]) : -len(marks[0])]
    assert marks[0] not in re.findall("`+", inner)
    assert "\n" not in found


@given(st.text())
def test_prose_and_markdown_are_one_line_without_markup(text: str) -> None:
    assert not re.search(r"(?<!\\)[<>|*_\[\]]", markdown(text).replace("\\\\", ""))
    assert "\n" not in prose(text)


def test_plain_fences_stay_plain() -> None:
    assert card.fence("a\n") == "```\na\n```"
    assert card.fence("a ```` b") == "`````\na ```` b\n`````"


# ---- what loads it ----

LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
names = get_dataset_config_names(sys.argv[1])
found = {name: {split: rows.num_rows for split, rows in load_dataset(sys.argv[1], name).items()} for name in names}
found["by itself"] = {split: rows.num_rows for split, rows in load_dataset(sys.argv[1]).items()}
found["first"] = load_dataset(sys.argv[1], "sft", split="train")[0]["messages"][0]["role"]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_datasets_loads_each_sink_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("CURATEC_CACHE_DIR", str(tmp_path / "cache"))
    out = tmp_path / "out"
    made = compile_spec(Request(str(QUICKSTART / "service.curate"), out=out))
    for name, value in (("HF_HUB_OFFLINE", "1"), ("HF_DATASETS_OFFLINE", "1"), ("HF_HOME", str(tmp_path / "hf"))):
        monkeypatch.setenv(name, value)
    ran = subprocess.run([sys.executable, "-c", LOAD, str(out)], check=True, capture_output=True, text=True)
    found = json.loads(ran.stdout.strip().split("\n")[-1])
    assert found.pop("first") == "system"
    assert found.pop("by itself") == found["sft"]
    assert found == {name: sink["rows"] for name, sink in made.manifest["sinks"].items()}


def test_written_by_hand_is_enough() -> None:
    """The card asks nothing of how a sink came to its numbers."""
    written = Written("sft", ("sft/train.parquet",), {"train": 1}, 2, dropped={"over_length": 1})
    assert card.splits_of({"files": list(written.files), "rows": written.rows}) == {"train": "sft/train.parquet"}
