"""What holds for copies of every kind: splits, sinks, what was redacted, and what the commands say of them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Place, write_lines
from tests.semantics.tools import Bench, Record, call, record, result
from tests.sinks.conftest import Make

STEPS = {
    "distractors": "a: augment distractors(n: 1)",
    "rebind": 'a: augment rebind(entities: ["user_id"])',
    "recover": "a: augment recover(max_gap: 1)",
}


def tool(name: str) -> Record:
    return {"type": "function", "function": {"name": name}}


def a_run(i: int, **facts: object) -> Record:
    """One that every augmentation makes a copy of."""
    return record(
        {"role": "user", "content": f"I am una_ko_{3600 + i}, una{i}@example.com"},
        call("get", {"user_id": f"una_ko_{3600 + i}"}),
        result("Error: no"),
        call("get", {"user_id": f"una_ko_{3600 + i}", "all": True}, id="2"),
        result("fine", id="2"),
        {"role": "assistant", "content": "done"},
        task_id=f"t{i}",
        tools=[tool("get"), tool(f"more{i % 2}")],
        **facts,
    )


SOURCE = 'path "a.jsonl" format openai error when content ~ r"^Error"'


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_validation_makes_no_copies(bench: Bench, step: str) -> None:
    split = "split by task { train 50% validation 50% } seed 1"
    done = bench.run(f"{split} {step}", [a_run(i) for i in range(20)], source=SOURCE)
    before = dict(done.start.rows.select("id", pl.lit(1)).iter_rows())
    rows = done.shared.rows
    made = rows.filter(~rows["id"].is_in(list(before)))
    assert rows.height == 20 + made.height
    assert set(made["split"]) == {"train"}
    assert sorted(made["origin"]) == sorted(
        rows.filter(rows["id"].is_in(list(before)) & (rows["split"] == "train"))["id"]
    )
    facts = ("source", "task", "reward", "success", "record_id", "license")
    origins = {r["id"]: r for r in rows.to_dicts()}
    assert all(r[name] == origins[r["origin"]][name] for r in made.to_dicts() for name in facts)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_what_was_redacted_of_the_record_stays_so_in_its_copies(bench: Bench, step: str) -> None:
    pytest.importorskip("detect_secrets")
    records = [a_run(i, meta={"mail": f"una{i}@example.com"}, gold={"mail": f"una{i}@example.com"}) for i in range(2)]
    done = bench.run(f"r: redact pii in all {step}", records, source=SOURCE)
    assert done.ledger.counts[1].created == 2
    wide = done.loaded.wide(done.shared, done.shared.rows)
    for name in ("gold_json", "meta_json"):
        assert wide[name].str.contains("[EMAIL_1]", literal=True).all()
        assert not wide[name].str.contains("@example.com", literal=True).any()


def test_a_rebound_copy_takes_its_gold_and_meta_to_every_sink(made: Make) -> None:
    records = [a_run(i, gold={"user_id": f"una_ko_{3600 + i}"}, about=f"una_ko_{3600 + i}") for i in range(3)]
    body = f"{STEPS['rebind']} emit sft {{ loss on assistant }} emit memory {{ key task_text value final_answer }}"
    done = made(records, body, source=SOURCE.removeprefix('path "a.jsonl" '))
    for sink in ("sft", "memory"):
        done.conserved(sink)
        assert done.written[sink].rows == {"train": 6}
    for row in done.rows("sft"):
        old = f"una_ko_{3600 + int(row['task'][-1])}"
        assert (old in json.dumps(row["messages"])) == ("#" not in row["example_id"])


# ---- the commands ----

SPEC = """curate 1
source t { path "a.jsonl" format openai error when content ~ r"^Error" }
strategy s {
  from t
  split by task { train 70% validation 30% } seed 1
  others: augment rebind(entities: ["user_id"], copies: 2) because "state-binding drift"
  emit sft {
    repairs: augment recover(max_gap: 2)
    noise: augment distractors(n: 1)
    short: keep where turn_count < 6
    decisions: decompose at calls is not empty
    loss on assistant
  }
  emit memory { key task_text value final_answer }
}
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("copies")
    (root / "s.curate").write_text(SPEC, encoding="utf-8")
    plain = record({"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, task_id="t0", id="plain")
    write_lines(root / "a.jsonl", [*(a_run(i) for i in range(8)), plain])
    place = Place(root)
    place("compile", "s.curate", "-o", "out", "-q")
    return place


def table(out: Place, name: str) -> pl.DataFrame:
    return pl.read_parquet(out.root / "out" / name)


def test_verify_finds_nothing_off(out: Place) -> None:
    assert "nothing is off" in out("verify", "out").out
    manifest = json.loads((out.root / "out" / "manifest.json").read_text())
    counts = {step["label"]: (step["created"], step["failed"]) for step in manifest["steps"]}
    trained = table(out, "runs.parquet").filter(pl.col("split") == "train").height
    assert counts["others"] == (2 * (trained - 1), 2)  # the plain run is of a trained task and names nobody


def test_why_tells_what_a_made_row_is(out: Place) -> None:
    lineage = table(out, "lineage.parquet")
    kept = table(out, "ledger.parquet").filter(pl.col("example_id").is_not_null())["example_id"]
    deep = lineage.filter(pl.col("out").is_in(kept.implode()), pl.col("out").str.count_matches("#") == 4)
    deepest = deep["out"][0]
    parent = deepest.rpartition("#")[0]
    told = out("why", "out", deepest).out
    assert f"row {deepest}, made from {parent} by decompose" in told
    assert f"kept as {deepest}" in told
    found = out("why", "out", deepest, "--json").json["runs"][0]
    assert (found["id"], found["parent"], found["operator"]) == (deepest, parent, "decompose")
    memory = next(sink for sink in found["sinks"] if sink["sink"] == "memory")
    assert memory["outcome"] == "unknown"
    assert "decisions of `sft` made it" in memory["reason"]
    assert deepest in out("show", "out", deepest).out
    # Its parent has no row of its own; what was made from it is shown.
    assert deepest in out("show", "out", parent).out
    assert "replaced by decisions" in out("why", "out", parent).out


def test_why_tells_what_was_made_from_a_run(out: Place) -> None:
    lineage = table(out, "lineage.parquet")
    copy = lineage.filter(pl.col("operator") == "rebind").sort("out").row(0, named=True)
    told = out("why", "out", copy["in"][:12]).out
    assert f"run {copy['in']}" in told
    assert f"made {copy['out']}" in " ".join(told.split())
    of_copy = out("why", "out", copy["out"]).out
    assert f"row {copy['out']}, made from {copy['in']} by rebind" in of_copy
    turn = out("why", "out", copy["out"], "--turn", "1").out
    assert f"turn 1 of run {copy['out']}" in turn


def test_why_tells_what_could_not_be_made(out: Place) -> None:
    assert "2 not made: no call gives such an argument" in " ".join(out("why", "out", "plain").out.split())
    labelled = out("why", "out", "--label", "others", "--sample", "50").out
    assert "not made: no_entity" in labelled
    assert "made from" in labelled
    assert "2 could not be made" in " ".join(out("why", "out").out.split())


def test_beginnings_of_ids(out: Place) -> None:
    lineage = table(out, "lineage.parquet")
    copy = lineage.filter(pl.col("operator") == "rebind").sort("out").row(0, named=True)
    assert out("why", "out", copy["in"] + "#aothers", code=1).err.count(copy["in"]) >= 3
    made = [id_ for id_ in lineage["out"] if id_.startswith(copy["in"])]
    alone = next(id_ for id_ in made if sum(other.startswith(id_[:-1]) for other in made) == 1)
    assert f"row {alone}" in out("why", "out", alone[:-1]).out


def test_verify_tells_of_sums_that_do_not_hold(out: Place, tmp_path: Path) -> None:
    import shutil

    copy = Place(tmp_path)
    shutil.copytree(out.root / "out", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    step = next(step for step in manifest["steps"] if step["label"] == "others")
    step["failed"] += 1
    step["created"] -= 1
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    told = copy("verify", "out", code=None)
    assert "step `others`: the ledger has 2 copies not made, the manifest says 3" in " ".join(
        (told.out + told.err).split()
    )
