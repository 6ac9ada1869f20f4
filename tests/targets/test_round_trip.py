"""Format → canonical → target → canonical: the same turns, reasoning, calls, results, tools and weights."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatec.runtime.cache import Cache
from curatec.runtime.ingest import ingest, resolve
from curatec.runtime.targets import TARGETS
from tests.formats.conftest import rows_of, shared_data  # noqa: F401
from tests.targets.conftest import SCHEMAS, Said, back, conversations, read, record, said, tools
from tests.targets.rules import RULES

# A format of ours that reads what the target writes; verl's SFT rows are chat messages.
READ_AS = {"verl": "openai"}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_generated_conversations(name: str, data: st.DataObject) -> None:
    turns: list[Said] = data.draw(conversations(strict=name == "sharegpt"))
    schemas = data.draw(SCHEMAS)
    ending = data.draw(st.sampled_from(["jsonl", "json", "parquet"]))
    with tempfile.TemporaryDirectory() as folder:
        root, cache = Path(folder), Cache(Path(folder) / "cache")
        (root / "in.json").write_text(json.dumps([record(turns, schemas)]), encoding="utf-8")
        corpus = read(root / "in.json", cache, "openai")
        assert said(rows_of(corpus)[0]) == turns
        found, again = back(corpus, name, root / f"out.{ending}", cache)
        assert (found.rows, found.refusals) == (1, ())
        assert {run["format"] for run in again} == {READ_AS.get(name, name)} or name in ("trl", "verl")
        assert [said(run) for run in again] == [turns]
        assert [tools(run) for run in again] == [schemas]
        if ending == "jsonl":
            for row in rows(root / "out.jsonl"):
                RULES[name](row)


@pytest.mark.parametrize(
    ("pattern", "name", "least"),
    [
        ("llamafactory_sharegpt/*/data/glaive_toolcall_*.json", "sharegpt", 590),
        ("llamafactory_sharegpt/*/data/*.jsonl", "llamafactory", 555),
        ("llamafactory_sharegpt/*/data/*.jsonl", "sharegpt", 400),
        ("llamafactory_sharegpt/*/data/*.jsonl", "atif", 555),
        ("atif/*.json", "atif", 1),
        ("atif/*.json", "openai", 1),
        ("tau_bench/sierra/historical_trajectories/*.json", "openai", 150),
        ("tau_bench/sierra/historical_trajectories/*.json", "trl", 150),
        ("tau_bench/sierra/historical_trajectories/*.json", "atif", 150),
        ("tau_bench/sierra/historical_trajectories/*.json", "verl", 150),
        ("tau_bench/qwen/*.json", "openai", 1),
        ("tau2_bench/**/*.json", "llamafactory", 50),
        ("tau2_bench/**/*.json", "atif", 50),
    ],
)
def test_real_files(shared_data: Path, tmp_path: Path, pattern: str, name: str, least: int) -> None:  # noqa: F811
    base = shared_data.resolve()
    files = resolve([pattern], base, base)
    cache = Cache(tmp_path / "cache")
    corpus = ingest(files, base=base, cache=cache)
    found, again = back(corpus, name, tmp_path / "out.jsonl", cache)
    order = {file: number for number, file in enumerate(corpus.files)}
    before = sorted(rows_of(corpus), key=lambda run: (order[run["name"]], run["line"], run["row"]))
    lost = {(refused.file, refused.line) for refused in found.refusals}
    kept = [run for run in before if (run["name"], run["line"]) not in lost]
    assert len(again) == len(kept) >= least
    for run, other in zip(kept, again, strict=True):
        assert told(other, name) == expected(run, name)
    for row in rows(tmp_path / "out.jsonl"):
        RULES[name](row)


def told(run: dict[str, Any], name: str) -> Any:
    return said(run), tools(run), run["task_id"], run["reward"], run["success"], run["outcome"]


def expected(run: dict[str, Any], name: str) -> Any:
    turns, *facts = told(run, name)
    visible = [turn for turn in turns if turn.role != "event"]
    if name == "sharegpt":
        last = max(i for i, turn in enumerate(visible) if turn.role == "assistant")
        visible = [stripped(turn) for turn in visible[: last + 1]]
    return (visible, *facts)


def stripped(turn: Said) -> Said:
    """ShareGPT keeps no line breaks around reasoning, and no white space behind it."""
    if not turn.reasoning:
        return turn
    content = "" if turn.calls else turn.content.lstrip()
    return turn._replace(reasoning=turn.reasoning.strip("\n"), content=content)


@pytest.mark.parametrize("name", TARGETS)
def test_parquet_holds_what_the_lines_hold(tmp_path: Path, name: str) -> None:
    turns = [
        Said("system", "s"), Said("user", "go"), Said("assistant", "", "why", (("look", '{"a": null}'),), 1.0),
        Said("tool", "ok", answers=(2, 0)), Said("assistant", "done", None, (), 1.0),
    ]  # fmt: skip
    cache = Cache(tmp_path / "cache")
    (tmp_path / "in.json").write_text(json.dumps([record(turns, None) | {"id": "e", "reward": 1, "x": [1, None]}] * 3))
    corpus = read(tmp_path / "in.json", cache)
    ways = [back(corpus, name, tmp_path / f"out.{ending}", cache)[1] for ending in ("jsonl", "json", "parquet")]
    assert [[said(run) for run in runs] for runs in ways] == [[turns] * 3] * 3
    assert len({run["record_id"] for runs in ways for run in runs} | {"e"}) == 1
    assert pq.ParquetFile(tmp_path / "out.parquet").metadata.num_rows == 3
    assert {run["reward"] for runs in ways for run in runs} == {1.0}
