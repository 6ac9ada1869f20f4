"""Records damaged at random: each becomes runs or one reject with a reason; an adapter never fails by itself."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.cache import Cache
from curatec.runtime.formats import adapters
from curatec.runtime.ingest import IngestError, ingest

from .conftest import USER, assistant, call, chat, result
from .test_harnesses import history, simulation, step, tau

JUNK: tuple[Any, ...] = (
    None,
    True,
    5,
    -1.5,
    10**30,
    "x",
    "",
    "\ud800",
    [],
    [1],
    [[]],
    [None],
    {},
    {"a": None},
    {"role": 1},
)
ANSWER = {"type": "tool_result", "tool_use_id": "c2", "content": "x"}
TALK = [
    {"role": "system", "content": "s"},
    USER,
    assistant(call('{"a": 1}'), call("{'b': 2}", id="c2"), reasoning_content="r"),
    result(name="look", is_error=False),
    {
        "role": "user",
        "content": [{"type": "text", "text": "t"}, {"type": "tool_result", "tool_use_id": "c2", "content": "x"}],
    },
    {"role": "assistant", "content": "y", "timestamp": "2025-01-01T00:00:00Z", "usage": {"prompt_tokens": 3}},
]
PARTS = [{"type": "text", "value": "a"}, {"type": "tool_call", "value": '{"name": "f", "arguments": {}}'}]
RICH: dict[str, Any] = {
    "tau_bench": tau(TALK, error="e", task={"actions": [], "outputs": []}, reward_info={"info": {"r_x": 1}}),
    "tau2": simulation([*TALK, {"role": "tool", "tool_messages": [{"id": "c", "content": "x"}]}], policy="p"),
    "atif": {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "n", "tool_definitions": [{"name": "f"}]},
        "steps": [
            step(1, "user", [{"type": "image", "source": {"path": "p"}}]),
            step(
                2, "agent", "x", tool_calls=[{"tool_call_id": "a", "function_name": "f", "arguments": {}}],
                observation={"results": [{"source_call_id": "a", "content": "y"}]}, metrics={"prompt_tokens": 1},
            ),
        ],
        "final_metrics": {"total_cost_usd": 1.0},
        "subagent_trajectories": [{"steps": [step(1, "user", "x")]}],
    },
    "swe_agent": history(
        *TALK, {"role": "tool", "content": "x", "tool_call_ids": ["a", "b"], "is_demo": True},
        trajectory=[{"action": "a", "state": "{}"}],
        info={"exit_status": "exit_cost", "model_stats": {"instance_cost": 1}},
        replay_config={"agent": {"model": {"name": "m"}}, "problem_statement": {"id": "i"}},
    ),
    "llamafactory": {"chosen_messages": [{"role": "assistant", "content": PARTS, "loss_weight": 0.5}], "tools": "[]"},
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": "x"},
            {"from": "function_call", "value": '{"name": "f", "arguments": {}}'},
            {"from": "tool", "value": '<tool_response>{"name": "f"}</tool_response>'},
            {"from": "gpt", "value": "<think>a</think>b<tool_call>{\"name\": \"f\"}</tool_call>", "weight": 1},
        ],
        "system": "s",
    },
    "trl": {
        "chosen": [*TALK, {"role": "assistant", "content": "x"}], "rejected": [*TALK, {"role": "user", "content": "y"}],
        "example_id": "e", "task": "a/b", "gold": "{}", "meta": "[]", "weights": [1], "tools": "[]", "reward": [],
    },
    "openai": chat(*TALK, tools=[{"name": "f"}], reward=1, outcome="success", trial=1, started_at=1.7e9, meta={"a": 1}),
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from places(item, (*path, key))


def damaged(record: Any, draw: random.Random) -> Any:
    made = copy.deepcopy(record)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        path = draw.choice([path for path in places(made) if path])
        holder = made
        for key in path[:-1]:
            holder = holder[key]
        if isinstance(holder, dict) and draw.random() < 0.3:
            del holder[path[-1]]
        else:
            holder[path[-1]] = copy.deepcopy(draw.choice(JUNK))
        if not made:
            return record
    return made


@pytest.mark.parametrize("name", RICH)
def test_damaged_records_are_read_or_rejected(tmp_path: Path, cache: Cache, name: str) -> None:
    draw = random.Random(name)
    records = [RICH[name], *(damaged(RICH[name], draw) for _ in range(600))]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = ingest([path], base=tmp_path, format=name, cache=cache)
    children = 1 if name in ("atif", "trl") else 0  # a sub-agent, the other side of a pair
    read = corpus.formats[name]
    assert not [reject for reject in corpus.rejects if "failed:" in reject.reason]
    assert read + len(corpus.rejects) >= len(records)
    assert read <= (1 + children) * (len(records) - len(corpus.rejects))
    assert 1 <= len(corpus.rejects) < 550


@pytest.mark.parametrize("name", RICH)
def test_rich_records_are_recognised(tmp_path: Path, cache: Cache, name: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps([RICH[name]]))
    assert list(ingest([tmp_path / "x.json"], base=tmp_path, cache=cache).formats) == [name]


def test_any_value_is_scored_by_every_adapter(tmp_path: Path, cache: Cache) -> None:
    draw = random.Random(1)
    for number in range(150):
        (tmp_path / f"{number}.json").write_text(json.dumps([damaged(draw.choice(list(RICH.values())), draw)]))
    paths = sorted(tmp_path.glob("*.json"))
    corpus = ingest(paths, base=tmp_path, cache=cache)
    assert not [reject for reject in corpus.rejects if "failed:" in reject.reason]
    assert set(RICH) == {adapter.name for adapter in adapters().values()}


def test_files_cut_or_changed_anywhere_are_read_or_told(tmp_path: Path, cache: Cache) -> None:
    draw = random.Random(2)
    kinds: set[str] = set()
    whole = json.dumps([RICH["openai"]] * 3, indent=draw.choice((None, 1))).encode()
    lines = b"\n".join(json.dumps(RICH["openai"]).encode() for _ in range(3))
    for text in (whole, lines):
        for number in range(150):
            at = draw.randrange(len(text))
            changed = text[:at] if number % 2 else text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
            path = tmp_path / "x.json"
            path.write_bytes(changed)
            try:
                corpus = ingest([path], base=tmp_path, cache=cache)
            except IngestError as error:
                kinds.add(error.kind)
            else:
                assert corpus.formats or corpus.empty_files
    assert kinds <= {"all_rejected", "unknown_format"}
