"""Published files against counts made with nothing but the standard library's json."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curatec.runtime.arrow_file import read as read_part
from curatec.runtime.cache import Cache
from curatec.runtime.ingest import Corpus, ingest, resolve


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


def corpus_of(root: Path, store: Cache, *patterns: str) -> tuple[Corpus, pl.DataFrame, pl.DataFrame]:
    corpus = ingest(resolve(patterns, root, root), base=root, cache=store)
    runs, turns, offset = [], [], 0
    for part in corpus.parts:
        runs.append(read_part(part.runs).with_columns(pl.col("row") + offset))
        turns.append(read_part(part.turns).with_columns(pl.col("row") + offset))
        offset += part.n_runs
    return corpus, pl.concat(runs), pl.concat(turns)


def defects(runs: pl.DataFrame) -> Counter[str]:
    return Counter(runs["defects"].explode().drop_nulls().to_list())


def is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


TAU = "tau_bench/**/*.json"
TAU2 = "tau2_bench/*/trajectories/*.json"


def test_tau_bench(shared_data: Path, store: Cache) -> None:
    rows: list[dict[str, Any]] = []
    for path in sorted(shared_data.glob(TAU)):
        rows.extend(json.loads(path.read_text()))
    corpus, runs, turns = corpus_of(shared_data, store, TAU)
    assert (len(rows), corpus.rejects, corpus.formats) == (406, (), {"tau_bench": 406})

    crashed = sum(not row["traj"] for row in rows)
    assert crashed == 42
    crashes = runs.filter(outcome="crash")
    assert (crashes.height, crashes["reward"].null_count(), crashes["success"].null_count()) == (crashed,) * 3
    assert crashes["error"].null_count() == 0
    assert defects(runs)["empty_run"] == crashed
    assert runs["success"].sum() == sum(bool(row["traj"]) and row["reward"] >= 1 for row in rows) == 202

    messages = [message for row in rows for message in row["traj"]]
    assert turns.height == len(messages)
    assert Counter(turns["role"].to_list()) == Counter(message["role"] for message in messages)
    kinds = Counter("absent" if "content" not in m else "null" if m["content"] is None else "text" for m in messages)
    assert Counter(turns["content_kind"].to_list()) == kinds

    given = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or []]
    states = Counter(turns["calls"].explode().drop_nulls().struct.field("args_state").cast(pl.String).to_list())
    assert states == Counter("json" if is_json_object(text) else "repaired" for text in given)
    assert states["repaired"] == 465
    calls = turns["calls"].explode().drop_nulls().struct.unnest()
    assert sorted(calls.filter(args_state="json")["args_json"]) == sorted(filter(is_json_object, given))
    repaired = [json.loads(text) for text in calls.filter(args_state="repaired")["args_json"]]
    assert sorted(map(str, repaired)) == sorted(
        str(ast.literal_eval(text)) for text in given if not is_json_object(text)
    )

    ends = sum(bool(row["traj"]) and row["traj"][-1]["role"] == "tool" for row in rows)
    without_id = sum(any("id" not in c for m in row["traj"] for c in m.get("tool_calls") or []) for row in rows)
    found = defects(runs)
    assert (found["ends_on_tool"], found["missing_call_id"], found["repr_args"]) == (ends, without_id, 66)
    assert turns.filter(pl.col("role") == "tool")["call_turn"].null_count() == 0


def test_tau2(shared_data: Path, store: Cache) -> None:
    documents = [json.loads(path.read_text()) for path in sorted(shared_data.glob(TAU2))]
    simulations = [simulation for document in documents for simulation in document["simulations"]]
    corpus, runs, turns = corpus_of(shared_data, store, TAU2)
    assert corpus.formats == {"tau2": len(simulations)} == {"tau2": 164}
    assert turns.height == sum(len(simulation["messages"]) + 1 for simulation in simulations)
    assert runs["success"].sum() == sum(s["reward_info"]["reward"] >= 1 for s in simulations) == 124
    calls = [call for s in simulations for m in s["messages"] for call in m.get("tool_calls") or []]
    read = turns["calls"].explode().drop_nulls().struct.unnest()
    assert Counter(read["args_json"]) == Counter(
        json.dumps(call["arguments"], separators=(",", ":"), ensure_ascii=False) for call in calls
    )
    results = turns.filter(pl.col("role") == "tool")
    assert results["call_turn"].null_count() == 0
    assert read["result_turn"].drop_nulls().len() == results.height


def test_the_570_runs_come_from_the_cache_as_they_were_read(shared_data: Path, tmp_path: Path) -> None:
    paths = resolve([TAU, TAU2], shared_data, shared_data)
    cold = ingest(paths, base=shared_data, cache=Cache(tmp_path))
    assert sum(cold.formats.values()) == 570
    assert ingest(paths, base=shared_data, cache=Cache(tmp_path)) == cold


@pytest.mark.parametrize("name", ["glaive_toolcall_en_demo.json", "glaive_toolcall_zh_demo.json"])
def test_sharegpt(shared_data: Path, store: Cache, name: str) -> None:
    pattern = f"llamafactory_sharegpt/*/data/{name}"
    records = json.loads(next(shared_data.glob(pattern)).read_text())
    corpus, runs, turns = corpus_of(shared_data, store, pattern)
    assert corpus.formats == {"sharegpt": 300}
    entries = [entry for record in records for entry in record["conversations"]]
    said = Counter(entry["from"] for entry in entries)
    assert turns["calls"].list.len().sum() == said["function_call"]
    assert turns.filter(pl.col("role") == "tool").height == said["observation"]
    assert turns.height == len(entries)
    unanswered = max(0, said["observation"] - said["function_call"])
    assert turns.filter((pl.col("role") == "tool") & pl.col("call_turn").is_null()).height == unanswered
    assert runs["tools_json"].null_count() == sum(record["tools"] == "[]" for record in records)


def test_llamafactory(shared_data: Path, store: Cache) -> None:
    pattern = "llamafactory_sharegpt/*/data/*.jsonl"
    corpus, runs, turns = corpus_of(shared_data, store, pattern)
    assert corpus.formats == {"llamafactory": 560}
    assert runs["outcome"].unique().to_list() == ["unknown"]
    parts = Counter()
    for path in shared_data.glob(pattern):
        for line in path.read_text().split("\n"):
            for key, messages in (json.loads(line) if line else {}).items():
                if key in ("messages", "chosen_messages"):
                    parts.update(part["type"] for message in messages for part in message["content"])
    assert turns["calls"].list.len().sum() == parts["tool_call"]
    assert turns["parts"].list.len().sum() == parts["text"]
    assert turns["reasoning"].drop_nulls().len() == sum(
        1 for _ in turns.filter(pl.col("reasoning").is_not_null())["row"]
    )
    assert turns.filter(loss_weight=0.0).height == 500 + 20


def test_swe_agent(shared_data: Path, store: Cache) -> None:
    files = [json.loads(path.read_bytes()) for path in sorted(shared_data.glob("swe_agent/**/*.traj"))]
    corpus, runs, turns = corpus_of(shared_data, store, "swe_agent/**/*.traj")
    assert corpus.formats == {"swe_agent": 22}
    messages = [message for file in files for message in file["history"]]
    assert turns.height == len(messages)
    assert turns.filter(loss_weight=0.0).height == sum(message.get("is_demo") is True for message in messages) == 2
    assert turns.filter(pl.col("role") == "tool").height == 44
    states = turns["extra_json"].drop_nulls().str.json_path_match("$.state").drop_nulls()
    acted = [[m["action"] for m in f["history"] if m["role"] == "assistant" and "action" in m] for f in files]
    steps = [[step["action"] for step in f.get("trajectory", [])] for f in files]
    assert sum(map(len, steps)) == 227
    assert states.len() == sum(len(s) - len(set(s) - set(a)) for s, a in zip(steps, acted, strict=True)) == 225
    assert runs["success"].null_count() == 22


def test_atif(shared_data: Path, store: Cache) -> None:
    corpus, runs, turns = corpus_of(shared_data, store, "atif")
    assert (corpus.formats, runs["record_id"].to_list()) == ({"atif": 1}, ["toolmind_graphsyn_0"])
    assert turns.filter(pl.col("role") == "tool")["call_turn"].null_count() == 0


def test_the_whole_directory_is_read_or_accounted_for(shared_data: Path, store: Cache) -> None:
    corpus, runs, _ = corpus_of(shared_data, store, ".")
    read = {corpus.parts[0].files[0] for part in corpus.parts for _ in part.files}
    assert read
    rejected = {reject.file for reject in corpus.rejects if reject.line == 0}
    with_runs: set[str] = set()
    for part in corpus.parts:
        with_runs |= {part.files[index] for index in read_part(part.runs)["file"].unique()}
    assert with_runs | rejected | set(corpus.empty_files) == set(corpus.files)
    assert runs.height == sum(corpus.formats.values())
