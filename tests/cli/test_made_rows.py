"""`why --label` and `try` where steps and sinks make rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests import every_step
from tests.cli.conftest import Place

ONE_SINK = """curate 1
source desk {{ path "runs/desk-a.jsonl" error when content ~ r"^Error" }}
strategy s {{ from desk emit {sink} }}
"""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Place:
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    root = tmp_path_factory.mktemp("every")
    every_step.write(root)
    made = Place(root)
    made("compile", "every_step.curate", "-o", "out", "-q")
    return made


def ledger(every: Place) -> pl.DataFrame:
    return pl.read_parquet(every.root / "out" / "ledger.parquet").filter(pl.col("turn").is_null())


@pytest.mark.parametrize("label", ["crowded", "put_right", "each_decision", "window", "pair"])
def test_a_label_says_what_it_made_replaced_and_could_not_make(every: Place, label: str) -> None:
    own = ledger(every).filter((pl.col("label") == label) | (pl.col("step").is_null() & (pl.col("reason") == label)))
    expected = {
        action: own.filter(pl.col("action") == action)["n"].sum() if action == "rejected" else n
        for action, n in own.group_by("action").agg(pl.col("traj_id").n_unique()).iter_rows()
    }
    [found] = every("why", "out", "--label", label, "--json", "--sample", "500").json["labels"]
    assert found["actions"] == expected
    assert len(found["sample"]) == found["count"] == own["traj_id"].n_unique()
    ran = " ".join(every("why", "out", "--label", label, "--sample", "500").out.split())
    words = {"rejected": "not made"}
    assert ", ".join(f"{n:,} {words.get(a, a)}" for a, n in sorted(expected.items())) in ran
    lineage = pl.read_parquet(every.root / "out" / "lineage.parquet").sort("ordinal")
    for row in found["sample"]:
        assert row["task"].startswith(("desk/", "night/"))
        if row["action"] == "created":
            assert row["parents"] == lineage.filter(pl.col("out") == row["traj_id"])["in"].to_list()
            assert f"made from {row['parents'][0][:12]}" in ran
    if "replaced" in expected:
        assert "replaced by" in ran


def test_what_took_runs_out_is_counted_as_before(every: Place) -> None:
    assert "alike (shared): 21 runs" in every("why", "out", "--label", "alike").out
    assert "held_out (memory): 2 runs\n" in every("why", "out", "--label", "held_out", "--sink", "memory").out


def test_a_step_that_a_sink_repeats_is_another(tmp_path: Path) -> None:
    """Both stand in one branch at one position; each tells of its own rows."""
    spec = every_step.SPEC.replace(
        '  sealed: decontaminate against bench ngram 8 because "the benchmark stays unseen"\n', ""
    )
    spec = spec.replace("    short_results:", "    sealed: decontaminate against bench ngram 8\n    short_results:")
    every_step.write(tmp_path, spec)
    place = Place(tmp_path)
    place("compile", "every_step.curate", "-o", "out", "-q")
    own = pl.read_parquet(tmp_path / "out" / "ledger.parquet").filter(pl.col("sink") == "sft")
    assert {"sealed_again"} <= {s["label"] for s in place("why", "out", "--json").json["steps"]}
    for label in ("sealed", "sealed_again"):
        [found] = place("why", "out", "--label", label, "--json").json["labels"]
        assert found["count"] == own.filter(pl.col("label") == label)["traj_id"].n_unique()
    gone = own.filter(pl.col("label") == "sealed")["traj_id"].sort()[0]
    [run] = place("why", "out", gone, "--sink", "sft", "--json").json["runs"]
    assert [s["label"] for s in run["sinks"][0]["steps"]][-1] == "sealed"


@pytest.mark.parametrize(
    "sink",
    [
        "preference { pair within task chosen where success rejected where not success }",
        "sft { loss on assistant fit 60 tokens else window }",
        "sft { each: decompose at calls is not empty loss on assistant }",
    ],
)
def test_try_tells_of_runs_where_sinks_and_steps_make_rows(tmp_path: Path, sink: str) -> None:
    every_step.write(tmp_path, ONE_SINK.format(sink=sink))
    ran = Place(tmp_path)("try", "every_step.curate", "--rows", "40")
    assert "kept as" in ran.out
    assert "C0999" not in ran.err
