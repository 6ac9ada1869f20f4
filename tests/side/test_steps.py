"""Side data on the public path: joins, listed values, sealed tasks in no sink, and what people are told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.data_lints import data_lints
from curatec.runtime.execute import Executed
from curatec.runtime.side import read_side
from tests.cli.conftest import Place, Ran, corpus, write_lines
from tests.semantics.tools import SAID, USER, Bench, call, plain, record, result

TABLE = 'table v { path "v.csv" key task columns { resolved: bool  score: float } }'
CSV = "task,resolved,score\nt/a,true,0.5\nt/b,false,\n"


def joined(bench: Bench, body: str, tasks: str = "abca", before: str = TABLE, **files: str) -> Executed:
    for name, text in ({"v.csv": CSV} | {k.replace("_", "."): text for k, text in files.items()}).items():
        (bench.folder / name).write_text(text, encoding="utf-8")
    records = [record(task_id=task, id=f"{task}{i}") for i, task in enumerate(tasks)]
    return bench.run(body, records, before=before)


# ---- join and `in` ----


def test_a_join_adds_columns_and_no_rows(bench: Bench) -> None:
    done = joined(bench, "j: join v on task")
    rows = done.shared.rows.sort("record_id")
    assert rows["record_id"].to_list() == ["a0", "a3", "b1", "c2"]
    assert plain(rows["v.resolved"]) == [True, True, False, None]
    assert plain(rows["v.score"]) == [0.5, 0.5, None, None]
    assert [(c.entered, c.left, c.unmatched) for c in done.ledger.counts] == [(4, 4, 1)]


def test_joined_columns_are_columns_like_others(bench: Bench) -> None:
    body = "join v on task\n  k: keep where v.resolved or v.score is null\n  derive s = coalesce(v.score, 9.0) + 1"
    rows = joined(bench, body).shared.rows.sort("record_id")
    assert dict(rows.select("record_id", "s").iter_rows()) == {"a0": 1.5, "a3": 1.5, "b1": 10.0, "c2": 10.0}


def test_a_required_join_names_the_first_run_that_is_lost(bench: Bench) -> None:
    with pytest.raises(CuratecError) as raised:
        joined(bench, "j: join v on task required", "abcc")
    [found] = raised.value.diagnostics
    assert (found.code, found.message) == ("C0631", "2 of 4 runs have no row in `v`")
    assert found.help[0].startswith("the first is ")
    assert found.help[0].endswith("which has the key `t/c`")
    assert joined(bench, "j: join v on task required", "abba").ledger.counts[0].unmatched == 0


def test_a_join_that_matches_nothing_is_warned_of(bench: Bench) -> None:
    def told(body: str, tasks: str) -> list[tuple[str, str]]:
        done = joined(bench, body, tasks)
        return [(lint.code, lint.message) for lint in data_lints(done, {}, []) if lint.code == "C0638"]

    assert told("j: join v on task_id", "abca") == [("C0638", "not one of 4 runs has a row in `v`")]
    assert told("j: join v on task", "ccc") == [("C0638", "not one of 3 runs has a row in `v`")]
    assert told("j: join v on task", "cca") == []
    assert told("gone: drop where true\n  j: join v on task_id", "ab") == []


def test_a_null_key_matches_nothing(bench: Bench) -> None:
    done = joined(bench, "join v on session_id", "ab", v_csv="task,resolved,score\nx,true,1\n")
    assert plain(done.shared.rows["v.resolved"]) == [None, None]
    assert done.ledger.counts[0].unmatched == 2


def test_keys_of_numbers(bench: Bench) -> None:
    """A whole float stands for the int, another one for nothing."""
    (bench.folder / "n.json").write_text('[{"n": 1, "x": "one"}, {"n": 2, "x": "two"}]')
    records = [record(id=str(i), reward=reward) for i, reward in enumerate([1, 2.0, 1.5, None])]
    before = 'table n { path "n.json" key n columns { n: int  x: text } }'
    rows = bench.run("join n on reward", records, before=before).shared.rows.sort("record_id")
    assert plain(rows["n.x"]) == ["one", "two", None, None]


def test_values_that_stand_in_a_column(bench: Bench) -> None:
    (bench.folder / "block.json").write_text('[{"task": "t/a", "tool": "find"}, {"task": "t/z", "tool": null}]')
    before = 'table block { path "block.json" key task columns { tool: text } }'
    records = [
        record(USER, call("find"), result("x"), SAID, task_id="a", id="0"),
        record(USER, call("book"), result("x"), SAID, task_id="b", id="1"),
    ]
    kept = {
        "k: drop where task in block.task": ["1"],
        "k: keep where task in block.task": ["0"],
        "k: keep where task not in block.task": ["1"],
        "k: keep where any(calls where name in block.tool)": ["0"],
        "k: keep where session_id in block.task": [],  # null is in nothing, and in nothing's opposite
        "k: keep where session_id not in block.task": [],
        "derive x = session_id in block.task\n  k: keep where x is null": ["0", "1"],
    }
    for body, expected in kept.items():
        assert bench.kept(body, records, before=before) == expected, body


# ---- sealed tasks ----

TRIED = """curate 1
source runs { path "runs/*.jsonl" }
test set hidden { path "hidden.json" id task text words }
strategy small {
  from runs
  split by task { train 60% validation 40% } seed 3
  BODY
  emit sft { loss on assistant }
  emit rl { prompt until last assistant }
  emit preference { pair within task chosen where success rejected where not success }
  emit memory { key task_text value concat("how to: ", final_answer) }
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(6))
    return Place(tmp_path)


def compiled(place: Place, body: str = "", hidden: Any = ({"task": "t1"}, {"task": "runs/t4"})) -> Any:
    (place.root / "hidden.json").write_text(json.dumps([{"words": None} | item for item in hidden]), encoding="utf-8")
    (place.root / "small.curate").write_text(TRIED.replace("BODY", body), encoding="utf-8")
    place("compile", "small.curate", "-o", "out", "-q")
    place("verify", "out")
    return json.loads((place.root / "out" / "manifest.json").read_text())


def published(place: Place) -> str:
    return "".join(p.read_text() for p in sorted((place.root / "out").glob("*/*.jsonl")))


def test_sealed_tasks_are_in_no_sink(place: Place) -> None:
    """By `task_id` and by `task`, in every sink, whatever the strategy says; every run is accounted for."""
    before = compiled(place, hidden=[{"task": "zz"}])
    assert all("held_out" not in sink["dropped"] for sink in before["sinks"].values())
    manifest = compiled(place)
    for name, sink in manifest["sinks"].items():
        assert sink["dropped"]["held_out"] == 8, name
        assert sink["entered"] == 24, name
    text = published(place)
    assert "task 2: how is it?" in text
    assert not any(word in text for word in ("task 1: how", "task 4: how", "runs/t1", "runs/t4"))
    for sums in manifest["conservation"].values():
        assert sums["in"] + sums["created"] == sums["out"] + sums["dropped"] + sums["replaced"] + sums["rejected"]
    told: Ran = place("why", "out", "--label", "held_out", "--sink", "rl", "--json")
    assert "test set" in told.out
    assert "8" in told.out


def test_what_leaks_goes_with_its_evidence(place: Place) -> None:
    hidden = [
        {"task": "t1"},
        {"task": "other", "words": "Task 2 — How is it?"},
        {"task": None, "words": "error no well done"},  # shares two words with no run in a row of three
        {"task": "third", "words": "nobody asked for this: well 0, said otherwise in any run"},
    ]
    manifest = compiled(place, "clean: decontaminate against hidden ngram 4", hidden)
    step = next(s for s in manifest["steps"] if s["label"] == "clean")
    import polars as pl

    ledger = pl.read_parquet(place.root / "out" / "ledger.parquet").filter(pl.col("label") == "clean")
    assert step["dropped"] == ledger.height
    found = sorted(set(ledger.select("reason", "key").iter_rows()))
    assert found == [
        ("test_id", "t1"),
        ("test_ngram", "third: well 0 said otherwise"),
        ("test_text", "other: task 2 how is it"),
    ]
    # Four runs of each of two tasks, and the copy of each of the four others.
    assert ledger.height == 4 + 4 + 4
    assert "task 2: how" not in published(place)
    told = place("why", "out", "--label", "clean")
    assert "task 2 how is it" in told.out


def test_what_a_later_step_says_is_searched_again(place: Place) -> None:
    """The set's words come in behind `decontaminate`: in the sinks they are found all the same."""
    body = """clean: decontaminate against hidden ngram 3
  late: turns set content = "words of the sealed task" where role == "user" and trajectory.task_id == "t3\""""
    manifest = compiled(place, body, [{"task": None, "words": "Sealed words: of the sealed task!"}])
    assert next(s["dropped"] for s in manifest["steps"] if s["label"] == "clean") == 0
    assert "words of the sealed task" not in published(place)
    for name, sums in manifest["conservation"].items():
        assert sums["dropped"] >= 4, name
        assert sums["in"] + sums["created"] == sums["out"] + sums["dropped"] + sums["replaced"] + sums["rejected"]


def test_entries_of_a_memory_are_searched_as_they_are(place: Place) -> None:
    """A value may be put together so that it says what no turn said."""
    hidden = [{"task": None, "words": "how to well 0"}]
    without = compiled(place, "", hidden)["sinks"]["memory"]
    clean = compiled(place, "decontaminate against hidden", hidden)["sinks"]["memory"]
    assert "leaks_test_set" not in without["dropped"]
    assert clean["dropped"]["leaks_test_set"] > 0
    assert sum(clean["rows"].values()) + clean["dropped"]["leaks_test_set"] == sum(without["rows"].values())
    text = (place.root / "out" / "memory" / "memory.jsonl").read_text()
    assert '"value": "how to: well 0"' not in text.replace('":"', '": "')
    assert "well 1" in text


# ---- what is told of side data ----


def test_plan_tells_what_changed_beside(place: Place) -> None:
    (place.root / "v.csv").write_text("task,resolved,score\nruns/t0,true,0.5\nruns/t1,false,\n")
    spec = TRIED.replace("strategy small {", f"{TABLE}\nstrategy small {{").replace("BODY", "join v on task")
    (place.root / "small.curate").write_text(spec)
    (place.root / "hidden.json").write_text('[{"task": "t1", "words": null}, {"task": "t2", "words": "x"}]')
    said = place("compile", "small.curate", "-o", "out").out
    assert "table v: 2 rows" in said
    assert "test set hidden: 2 items kept out" in said
    side = json.loads((place.root / "out" / "manifest.json").read_text())["side"]
    assert [(kind, name, told["records"]) for kind, found in side.items() for name, told in found.items()] == [
        ("tables", "v", 2),
        ("test_sets", "hidden", 2),
    ]
    assert place("plan", "small.curate", "-o", "out", "--json").json["changes"] is False
    # Another container with the same content is the same table.
    rows = [{"task": "runs/t1", "resolved": False, "more": 1}, {"task": "runs/t0", "resolved": True, "score": 0.5}]
    (place.root / "v.json").write_text(json.dumps(rows))
    (place.root / "small.curate").write_text(spec.replace("v.csv", "v.json"))
    planned = place("plan", "small.curate", "-o", "out", "--json").json
    assert [change["state"] for change in planned["side"]] == ["same", "same"]
    (place.root / "v.json").write_text(json.dumps([*rows, {"task": "runs/t5"}]))
    (place.root / "hidden.json").write_text('[{"task": "t1", "words": null}, {"task": "t3", "words": "x"}]')
    planned = place("plan", "small.curate", "-o", "out", "--json").json
    assert [(c["name"], c["state"], c["why"]) for c in planned["side"]] == [
        ("table v", "changed", "+1 rows"),
        ("test set hidden", "changed", "other rows"),
    ]
    assert planned["changes"] is True
    assert all(change["state"] == "after" for change in planned["sinks"])
    assert "table v" in place("plan", "small.curate", "-o", "out").out


def test_side_files_are_read_before_anything_else(place: Place) -> None:
    (place.root / "small.curate").write_text(TRIED.replace("BODY", ""))
    told = place("compile", "small.curate", "-o", "out", code=1)
    assert "C0603" in told.err
    assert "hidden" in told.err
    assert not (place.root / "out").exists()


def test_the_same_bytes_from_any_container(place: Place) -> None:
    compiled(
        place, "decontaminate against hidden ngram 4", [{"task": "t1"}, {"task": None, "words": "task 2 how is it"}]
    )
    first = json.loads((place.root / "out" / "manifest.json").read_text())["files"]
    (place.root / "hidden.csv").write_text('words,task\n"task 2 how is it",\n,t1\n')
    text = (place.root / "small.curate").read_text().replace("hidden.json", "hidden.csv")
    (place.root / "small.curate").write_text(text)
    place("compile", "small.curate", "-o", "out", "-q")
    second = json.loads((place.root / "out" / "manifest.json").read_text())["files"]
    differ = {name for name in first | second if first.get(name) != second.get(name)}
    assert differ <= {"README.md", "report.html"}  # they show the spec's own text


def test_a_plan_without_side_data_reads_none(bench: Bench) -> None:
    bench.write("a.jsonl", [record()])
    assert read_side(bench.plan(bench.spec("")), bench.folder, ()).tables == {}
