"""`plan` says of each step and sink whether it runs, and why: by keys, never by a guess. `compile` does just that."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from curatec.runtime.answers.planning import Planned, compare
from curatec.runtime.cache import Cache
from curatec.runtime.inputs import read_inputs
from curatec.runtime.memo import code
from curatec.runtime.request import Request, checked, chosen_plan
from curatec.runtime.side import read_side
from tests.cache.conftest import Desk
from tests.cli.conftest import SPEC, corpus, write_lines

TABLE = """table seen {
  path "seen.csv"
  key task
  columns { ok: bool }
}
test set sealed {
  path "sealed.json"
  id task_id
}
"""
WITH_TABLE = (
    SPEC.replace("param most", f"{TABLE}param most")
    .replace("keep where not success", "keep where not success and task not in seen.task")
    .replace("crash: drop where", "known: join seen on task\n  crash: drop where")
)


@pytest.fixture
def small(desk: Desk, all_kept: None) -> Desk:
    desk.write("s.curate", SPEC)
    write_lines(desk.root / "runs" / "a.jsonl", corpus(6))
    desk.compile("s.curate")
    return desk


def planned(desk: Desk, spec: str = "s.curate", out: str = "out") -> Planned:
    request = Request(str(desk.root / spec), out=desk.root / out)
    found = checked(request)
    whole = chosen_plan(found, request)
    side, cache = read_side(whole, desk.root, ()), Cache()
    inputs = read_inputs(whole.corpora, desk.root, (), cache)
    return compare(whole, found, inputs, side, None, desk.root / out, cache)


def words(found: Planned) -> dict[str, str]:
    """Of steps and sinks that run: why."""
    told = [*found.steps, *(replace(sink, name=f"sink {sink.name}") for sink in found.sinks)]
    return {change.name: change.because for change in told if change.runs}


def foretold(desk: Desk) -> dict[str, str]:
    """What the plan says runs, and that a compile runs just that."""
    said = words(planned(desk))
    desk.compile("s.curate")
    steps = {name for name in said if not name.startswith("sink ")}
    assert {name for name in desk.ran if name != "held_out"} == steps
    manifest = json.loads((desk.root / "out" / "manifest.json").read_text(encoding="utf-8"))
    sinks = {f"sink {name}" for name in manifest["sinks"] if name not in manifest["run"]["cached"]["sinks"]}
    assert sinks == {name for name in said if name.startswith("sink ")}
    return said


def test_nothing_changed(small: Desk) -> None:
    found = planned(small)
    assert {change.because for change in (*found.steps, *found.sinks)} == {""}
    assert foretold(small) == {}


def test_a_condition(small: Desk) -> None:
    small.write("s.curate", SPEC.replace("keep where success", "keep where reward > 0"))
    found = {change.name: change for change in planned(small).steps}
    assert found["winners"].why == "was: keep where success"
    assert foretold(small) == {"winners": "it changed", "few": "behind `winners`", "sink sft": "behind `winners`"}


def test_a_step_more_and_one_less(small: Desk) -> None:
    small.write("s.curate", SPEC.replace("  few:", "  some: sample 90% seed 1\n    few:"))
    assert foretold(small) == {"some": "it is new", "few": "behind `some`", "sink sft": "behind `some`"}
    small.write("s.curate", SPEC.replace("    winners: keep where success\n", ""))
    # The first one's result was never made by itself.
    assert foretold(small) == {"few": "it stands at another place", "sink sft": "behind `few`"}


def test_a_setting_of_a_sink(small: Desk) -> None:
    small.write("s.curate", SPEC.replace("where none(calls where is_error)", ""))
    assert foretold(small) == {"sink sft": "its settings changed"}


def test_other_runs(small: Desk) -> None:
    write_lines(small.root / "runs" / "a.jsonl", corpus(7))
    said = foretold(small)
    assert len(said) == 9
    assert set(said.values()) == {"other runs come in"}


def test_an_edit_that_is_taken_back(small: Desk) -> None:
    small.write("s.curate", SPEC.replace("limit 2", "limit 1"))
    small.compile("s.curate")
    small.write("s.curate", SPEC)
    found = {change.name: (change.runs, change.because) for change in (*planned(small).steps, *planned(small).sinks)}
    assert found["few"] == found["sft"] == (False, "kept by another compile")
    assert foretold(small) == {}


def test_another_spec(small: Desk) -> None:
    small.write("t.curate", SPEC.replace("limit 2", "limit 1"))
    found = planned(small, "t.curate", "other")
    assert words(found) == {"few": "the cache holds nothing of it", "sink sft": "the cache holds nothing of it"}
    assert {c.because for c in (*found.steps, *found.sinks) if not c.runs} == {"kept by another compile"}


def test_side_data(small: Desk) -> None:
    (small.root / "seen.csv").write_text("task,ok\nruns/t0,true\n")
    (small.root / "sealed.json").write_text('[{"task_id": "t5"}]')
    small.write("s.curate", WITH_TABLE)
    small.compile("s.curate")
    assert foretold(small) == {}
    (small.root / "seen.csv").write_text("task,ok\nruns/t1,true\n")
    assert foretold(small)["known"] == "table `seen` changed"
    (small.root / "sealed.json").write_text('[{"task_id": "t4"}]')
    every = ["winners", "few", "lessons", "sink sft", "sink memory"]
    assert foretold(small) == dict.fromkeys(every, "a test set changed")


def test_what_left_the_cache(small: Desk) -> None:
    manifest = json.loads((small.root / "out" / "manifest.json").read_text(encoding="utf-8"))
    keys = manifest["run"]["keys"]
    for key in (keys["sinks"]["sft"]["key"], keys["steps"][-1]["key"]):
        shutil.rmtree(small.root / ".cache" / key[:2] / key)
    gone = "it left the cache, which is bound to 32 GB"
    assert foretold(small) == {"lessons": gone, "sink sft": gone}


def test_what_is_sooner_done_than_kept(small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from curatec.runtime.memo import memo

    shutil.rmtree(small.root / ".cache")
    monkeypatch.setattr(memo, "_WRITTEN", 1e9)
    small.compile("s.curate")
    said = words(planned(small))
    assert len(said) == 7
    assert set(said.values()) == {"it is sooner done than kept"}


def test_other_code(small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step's key has the code that computes it; a sink's that of its writer."""
    true = code.code_of

    def changed(module: str) -> str:
        return true(module) + "+" * (module == "curatec.runtime.sinks.sft")

    monkeypatch.setattr("curatec.runtime.memo.keys.code_of", changed)
    assert foretold(small) == {"sink sft": "the code of curatec that writes it changed"}

    def more(module: str) -> str:
        return changed(module) + "+" * (module == "curatec.runtime.steps.filters")

    monkeypatch.setattr("curatec.runtime.memo.keys.code_of", more)
    said = foretold(small)
    assert said["crash"] == "the code of curatec that computes it changed"
    assert said["once"] == "behind `crash`"
    assert "split_task" not in said


def test_a_wide_spec_in_words(small: Desk) -> None:
    from tests.cli.conftest import Place

    small.write("s.curate", SPEC.replace("keep where success", "keep where reward > 0"))
    ran = Place(small.root)("plan", "s.curate", "-o", "out", "--json").json
    told = {step["name"]: (step["runs"], step["because"]) for step in ran["steps"]}
    assert told["winners"] == (True, "it changed")
    said = Place(small.root)("plan", "s.curate", "-o", "out").out
    assert "crash        from the cache" in said
    assert "winners      runs again: it changed; was: keep where success" in said
    done = " ".join(Place(small.root)("compile", "s.curate", "-o", "out").out.split())
    assert "from the cache: 5 of 7 steps, 1 of 2 sinks; ran: winners, few, sink sft" in done
