"""The benchmarks' corpus: reproducible, and with everything in it that the fixed job looks for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import corpus
import orjson
import pytest

RUNS = 200


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in corpus.runs(2_000, 1)]


def test_the_same_seed_gives_the_same_bytes_whatever_the_size() -> None:
    few, more = list(corpus.runs(RUNS, 1)), list(corpus.runs(2 * RUNS, 1))
    assert few == more[:RUNS]
    assert few != list(corpus.runs(RUNS, 2))


def test_blocks_can_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block has tasks of its own, and copies nothing of another."""
    monkeypatch.setattr(corpus, "BLOCK", 50)
    tasks = [{(r["domain"], r["task_id"]) for r in block} for block in _blocks(50)]
    assert not set.intersection(*tasks)
    texts = [{_said(r) for r in block} for block in _blocks(50)]
    assert not set.intersection(*texts)


def _blocks(size: int) -> list[list[dict[str, Any]]]:
    made = [orjson.loads(line) for line in corpus.runs(2 * size, 1)]
    return [made[:size], made[size:]]


def _said(run: dict[str, Any]) -> str:
    """Without case and white space, and without what fails."""
    texts = [m["content"] for m in run["messages"] if m["role"] != "system" and m["content"]]
    return "".join("".join(texts).lower().split())


def test_ids_and_starts_are_unique_and_task_ids_need_their_domain(made: list[dict[str, Any]]) -> None:
    for name in ("id", "started_at"):
        assert len({run[name] for run in made}) == len(made)
    tasks = {(run["domain"], run["task_id"]) for run in made}
    assert len(tasks) > len({task for _, task in tasks})


def test_what_it_has_on_average(made: list[dict[str, Any]]) -> None:
    size = sum(len(orjson.dumps(run)) for run in made) / len(made)
    lengths = [len(run["messages"]) for run in made]
    assert 10_000 < size < 11_600
    assert 17.5 < sum(lengths) / len(made) < 19.5
    assert min(lengths) <= 5
    assert 55 <= max(lengths) <= 61
    assert 0.40 < sum((run["reward"] or 0) >= 0.5 for run in made) / len(made) < 0.50
    assert 0.06 < 1 - len({_said(run) for run in made}) / len(made) < 0.10
    results = [m["content"] for run in made for m in run["messages"] if m["role"] == "tool"]
    assert 0.08 < sum(text.startswith("Error:") for text in results) / len(results) < 0.12
    assert 0.04 < sum(len(text) > 2_000 for text in results) / len(results) < 0.08
    assert any(run["reward"] is None for run in made)
    assert Counter("success" in run for run in made).keys() == {False, True}


def test_a_result_answers_a_call(made: list[dict[str, Any]]) -> None:
    for run in made:
        open_calls: list[str] = []
        for message in run["messages"]:
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
            else:
                assert not open_calls
            open_calls += [call["id"] for call in message.get("tool_calls", [])]
        assert not open_calls


def test_a_run_told_again_differs_in_case_and_white_space_alone(made: list[dict[str, Any]]) -> None:
    by_text: dict[str, list[dict[str, Any]]] = {}
    for run in made:
        by_text.setdefault(_said(run), []).append(run)
    copies = [group for group in by_text.values() if len(group) > 1]
    assert copies
    for group in copies:
        assert len({(run["domain"], run["task_id"]) for run in group}) == 1
        assert len({orjson.dumps(run["messages"]) for run in group}) > 1
        assert len({orjson.dumps([m.get("tool_calls") for m in run["messages"]]) for run in group}) == 1
