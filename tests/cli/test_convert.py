"""`curatec convert` as a user calls it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.cli.convert import TARGETS as SHOWN
from curatec.runtime.targets import REASONS, TARGETS
from tests.cli.conftest import Place, corpus, digests, strays, write_lines


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """Two files of runs, one line that cannot be read, one run that ShareGPT cannot say."""
    records = corpus(2)
    records[0]["messages"][1]["content"] = "let me look"
    write_lines(tmp_path / "runs" / "b.jsonl", records, broken='{"messages": [\n')
    write_lines(tmp_path / "runs" / "a.jsonl", [{**record, "id": f"a{i}"} for i, record in enumerate(corpus(1))])
    return Place(tmp_path)


def test_the_targets_of_help_are_all() -> None:
    assert tuple(TARGETS) == SHOWN


def test_to_sharegpt_with_what_was_refused(here: Place) -> None:
    ran = here("convert", "runs", "--to", "sharegpt", "-o", "out/made.jsonl", "--rejects", "lost.jsonl")
    assert ran.out == "11 of 12 runs (openai 12) written to out/made.jsonl as sharegpt\n"
    assert REASONS["text_beside_calls"] in " ".join(ran.err.split())
    assert "not read 1" in ran.err
    assert "lost.jsonl" in ran.err
    made = rows(here.root / "out" / "made.jsonl")
    assert [row["id"] for row in made][:5] == ["a0", "a1", "a2", "a3", "t0.1"]
    assert made[0]["conversations"][0] == {"from": "human", "value": "task 0: how is it?"}
    assert (made[0]["reward"], made[0]["task_id"]) == (1.0, "t0")
    lost = rows(here.root / "lost.jsonl")
    assert [(row["file"], row["line"], row["id"], row["reason"]) for row in lost[1:]] == [
        ("runs/b.jsonl", 1, "t0.0", "text_beside_calls")
    ]
    assert lost[0]["line"] == 9
    assert "raw" in lost[0]
    assert strays(here.root / "out") == []


def test_there_and_back(here: Place) -> None:
    here("convert", "runs/a.jsonl", "--to", "openai", "-o", "one.json", "-q")
    here("convert", "one.json", "--to", "atif", "-o", "two.parquet")
    ran = here("convert", "two.parquet", "--to", "openai", "-o", "three.jsonl", "--json")
    assert ran.json == {
        "out": "three.jsonl", "format": "openai", "runs": 4, "rows": 4, "refused": {}, "unreadable": 0,
        "formats": {"atif": 4}, "about": TARGETS["openai"].about, "diagnostics": [],
    }  # fmt: skip
    first = json.loads((here.root / "one.json").read_text(encoding="utf-8"))
    last = rows(here.root / "three.jsonl")
    assert [_plain(row["messages"]) for row in last] == [_plain(row["messages"]) for row in first]
    assert [(row["reward"], row["task_id"]) for row in last] == [(row["reward"], row["task_id"]) for row in first]


def _plain(messages: list[dict[str, Any]]) -> list[Any]:
    """Messages without what ATIF does not tell apart: null from an empty text, spaces in arguments."""
    return [
        (m["role"], m["content"] or "", m.get("tool_call_id"), [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in m.get("tool_calls", ())
        ])
        for m in messages
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_rows_of_a_compile_come_back(finished: Place, tmp_path: Path, ending: str) -> None:
    finished("convert", f"out/sft/train.{ending}", "--to", "trl", "-o", tmp_path / "x.jsonl", "-q")
    made = rows(finished.root / "out" / "sft" / "train.jsonl")
    back = rows(tmp_path / "x.jsonl")
    assert any(m.get("weight") == 0 for row in made for m in row["messages"])
    assert [row["messages"] for row in back] == [row["messages"] for row in made]
    assert [row["id"] for row in back] == [row["example_id"] for row in made]
    assert [f"{row['domain']}/{row['task_id']}" for row in back] == [row["task"] for row in made]


def test_to_stdout(here: Place) -> None:
    ran = here("convert", "runs/a.jsonl", "--to", "trl", "-o", "-")
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == ["a0", "a1", "a2", "a3"]
    assert "4 of 4 runs" in ran.err
    assert strays(here.root) == []


def test_the_same_bytes_whatever_the_cache(here: Place) -> None:
    for out in ("one", "two"):
        here(
            "convert",
            "runs",
            "--to",
            "llamafactory",
            "-o",
            f"{out}/x.parquet",
            "-q",
            CURATEC_CACHE_DIR=str(here.root / out),
        )
    found = digests(here.root)
    assert found["one/x.parquet"] == found["two/x.parquet"]


def test_a_file_that_is_there_stays(here: Place) -> None:
    (here.root / "x.jsonl").write_text("mine")
    ran = here("convert", "runs", "--to", "trl", "-o", "x.jsonl", code=1)
    assert "C0626" in ran.err
    assert "--force" in ran.err
    assert (here.root / "x.jsonl").read_text() == "mine"
    here("convert", "runs", "--to", "trl", "-o", "x.jsonl", "--force")
    assert len(rows(here.root / "x.jsonl")) == 12


def test_runs_are_never_written_over(here: Place) -> None:
    before = digests(here.root / "runs")
    ran = here("convert", "runs", "--to", "trl", "-o", "runs/a.jsonl", "--force", code=1)
    assert "one of the files that are read" in ran.err
    for force in ((), ("--force",)):
        ran = here(
            "convert", "runs", "--to", "trl", "-o", "x.jsonl", "--rejects", "runs/../runs/a.jsonl", *force, code=1
        )
        assert "C0626" in ran.err
    assert digests(here.root / "runs") == before
    assert not (here.root / "x.jsonl").exists()


def test_what_was_refused_does_not_take_the_place_of_the_rows(here: Place) -> None:
    assert "same file" in here("convert", "runs", "--to", "trl", "-o", "x.jsonl", "--rejects", "./x.jsonl", code=2).err
    (here.root / "lost.jsonl").write_text("mine")
    ran = here("convert", "runs", "--to", "trl", "-o", "x.jsonl", "--rejects", "lost.jsonl", code=1)
    assert "`lost.jsonl` is there already" in ran.err
    assert (here.root / "lost.jsonl").read_text() == "mine"
    here("convert", "runs", "--to", "trl", "-o", "x.jsonl", "--rejects", "lost.jsonl", "--force")
    assert len(rows(here.root / "lost.jsonl")) == 1
    here("convert", "runs", "--to", "trl", "-o", "y.jsonl", "--rejects", "new/lost.jsonl")
    assert strays(here.root / "new") == []
    here("convert", "runs", "--to", "trl", "-o", "z.jsonl", "--rejects", "/dev/null")
    assert not Path("/dev/null").is_file()
    assert digests(here.root / "new") == {"lost.jsonl": digests(here.root)["lost.jsonl"]}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("runs", "--to", "sharegtp", "-o", "x.jsonl"), 2, "sharegpt"),
        (("runs", "--to", "trl"), 2, "-o"),
        (("runs", "--to", "trl", "-o", "x.csv"), 2, "ends with none of"),
        (("runs", "--to", "trl", "-o", "folder.json"), 2, "is a folder"),
        (("--to", "trl", "-o", "x.jsonl"), 2, "RUNS"),
        (("nowhere", "--to", "trl", "-o", "x.jsonl"), 1, "C0603"),
        (("runs", "--to", "trl", "-o", "x.jsonl", "--from", "opanai"), 1, "did you mean openai"),
        (("empty.jsonl", "--to", "trl", "-o", "x.jsonl"), 1, "C0636"),
        (("none.jsonl", "--to", "sharegpt", "-o", "x.jsonl"), 1, "C0635"),
        (("runs", "--to", "trl", "-o", "none.jsonl/x.jsonl"), 1, "C0613"),
        (("runs", "--to", "trl", "-o", "x.jsonl", "--rejects", "none.jsonl/y.jsonl"), 1, "--rejects"),
    ],
)
def test_what_is_wrong_is_told(here: Place, arguments: tuple[str, ...], code: int, said: str) -> None:
    (here.root / "folder.json").mkdir()
    (here.root / "empty.jsonl").write_text("")
    write_lines(here.root / "none.jsonl", [{"messages": [{"role": "user", "content": "x"}]}])
    ran = here("convert", *arguments, code=code)
    assert said in ran.err
    assert ran.out == ""
    assert here("convert", *arguments, "--json", code=code).json["diagnostics"]


def test_json_and_stdout_do_not_mix(here: Place) -> None:
    assert "both" in here("convert", "runs", "--to", "trl", "-o", "-", "--json", code=2).out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(here: Place, number: signal.Signals) -> None:
    write_lines(here.root / "many.jsonl", corpus(3000))
    (here.root / "x.jsonl").write_text("mine")
    process = here.start("convert", "many.jsonl", "--to", "trl", "-o", "x.jsonl", "--force")
    while process.poll() is None and not strays(here.root):
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; x.jsonl is as it was" in err
    assert (here.root / "x.jsonl").read_text() == "mine"
    assert strays(here.root) == []


def test_what_a_killed_process_left_is_removed(here: Place) -> None:
    process = here.start("convert", "nowhere", "--to", "trl", "-o", "x.jsonl")
    process.communicate(timeout=60)
    left = here.root / f".x.jsonl.curatec-{process.pid}"
    left.mkdir()
    here("convert", "runs", "--to", "trl", "-o", "x.jsonl", "-q")
    assert strays(here.root) == []


def test_a_pipe_that_closes_is_no_error(here: Place) -> None:
    write_lines(here.root / "many.jsonl", corpus(2000))
    process = here.start("convert", "many.jsonl", "--to", "trl", "-o", "-")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("{")
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err
