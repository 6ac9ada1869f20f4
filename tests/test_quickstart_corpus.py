"""The quickstart corpus: it can be made again byte for byte, holds the noise it documents, its runs are consistent."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parents[1] / "specs" / "quickstart"
FILES = ("week-1.jsonl", "week-2.jsonl.gz", "week-3.jsonl.gz")
CHANGES = {"cancel_order", "refund_order", "exchange_item", "change_address"}
Json = dict[str, Any]


def text_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def generate(out: Path, *options: str, hash_seed: str = "0") -> dict[str, bytes]:
    command = [sys.executable, str(HERE / "make_corpus.py"), "--out", str(out), *options]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
    return {name: (out / name).read_bytes() for name in FILES}


def read(folder: Path) -> tuple[list[Json], int]:
    """The records, by nothing but `json`, and the number of lines that are none."""
    records, torn = [], 0
    for name in FILES:
        for line in text_of(folder / name).decode().split("\n"):
            try:
                records += [json.loads(line)] if line else []
            except json.JSONDecodeError:
                torn += 1
    return records, torn


@pytest.fixture(scope="module")
def records() -> list[Json]:
    return read(HERE / "runs")[0]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(HERE))
    try:
        import make_corpus

        yield make_corpus
    finally:
        sys.path.remove(str(HERE))


def calls_of(record: Json) -> list[tuple[str, Json, str]]:
    """Each call with its result, paired by position: some runs have no ids."""
    sent, results = [], []
    for message in record["messages"]:
        sent += [call["function"] for call in message.get("tool_calls", ())]
        results += [message["content"]] if message["role"] == "tool" else []
    return [(f["name"], json.loads(f["arguments"]), result) for f, result in zip(sent, results, strict=True)]


def said_in(record: Json) -> str:
    return "\n".join(m["content"] or "" for m in record["messages"] if m["role"] == "assistant")


# ---- the files ----
def test_made_again_it_is_the_same(tmp_path: Path) -> None:
    made = generate(tmp_path / "a", hash_seed="1")
    assert made == generate(tmp_path / "b", hash_seed="2")
    for name in FILES:
        # Packed bytes are the zlib build's own affair; what they unpack to is ours.
        assert text_of(tmp_path / "a" / name) == text_of(HERE / "runs" / name), name
    assert sorted(p.name for p in (HERE / "runs").iterdir()) == sorted(FILES)


def test_packed_files_carry_neither_time_nor_name() -> None:
    for name in FILES[1:]:
        head = (HERE / "runs" / name).read_bytes()[:8]
        assert head[:4] == b"\x1f\x8b\x08\x00", name  # flags 0: no file name
        assert head[4:] == b"\0\0\0\0", name


def test_small_enough_to_commit() -> None:
    assert sum((HERE / "runs" / name).stat().st_size for name in FILES) < 1_200_000


@pytest.mark.parametrize("runs", [1, 7, 24, 90])
def test_other_sizes_and_seeds(tmp_path: Path, runs: int) -> None:
    made = generate(tmp_path, "--runs", str(runs), "--seed", "5")
    records, torn = read(tmp_path)
    assert len(records) + torn == runs
    assert made != generate(tmp_path, "--runs", str(runs), "--seed", "6")


# ---- the noise ----
def noise_in(records: list[Json], torn: int) -> dict[str, int]:
    spoken = [r for r in records if r["messages"]]
    copies = Counter(json.dumps([r["task_id"], r["model"], r["messages"]]) for r in spoken)
    return {
        "crash": sum(not r["messages"] and r["outcome"] == "crash" and bool(r["error"]) for r in records),
        "duplicate": sum(n - 1 for n in copies.values()),
        "no_call_ids": sum(
            any("id" not in call for m in r["messages"] for call in m.get("tool_calls", ())) for r in records
        ),
        "no_reward": sum("reward" not in r for r in records),
        "ends_on_tool": sum(r["messages"][-1]["role"] == "tool" for r in spoken),
        "long_result": sum(any(len(m["content"] or "") > 6_000 for m in r["messages"]) for r in spoken),
        "torn": torn,
    }


def test_noise_of_the_committed_files() -> None:
    records, torn = read(HERE / "runs")
    expected = {
        "crash": 14,
        "duplicate": 7,
        "no_call_ids": 14,
        "no_reward": 7,
        "ends_on_tool": 9,
        "long_result": 5,
        "torn": 2,
    }
    assert noise_in(records, torn) == expected
    assert len(records) + torn == 360


def test_noise_follows_the_documented_shares(script: ModuleType, tmp_path: Path) -> None:
    generate(tmp_path, "--runs", "600", "--seed", "9")
    wanted = {kind: round(share * 600) for kind, share in script.NOISE.items()}
    assert noise_in(*read(tmp_path)) == wanted | {"torn": script.TORN}


def test_no_run_has_two_kinds_of_noise(records: list[Json]) -> None:
    for record in records:
        kinds = noise_in([record], 0)
        assert sum(kinds.values()) <= 1, (record["id"], kinds)


def test_torn_lines_stand_where_the_script_says() -> None:
    first, last = (text_of(HERE / "runs" / name).decode() for name in (FILES[0], FILES[-1]))
    assert not last.endswith("\n")
    with pytest.raises(json.JSONDecodeError):
        json.loads(last.split("\n")[-1])
    lines = first.removesuffix("\n").split("\n")
    broken = [n for n, line in enumerate(lines) if line.count('{"id":"desk-') > 1]
    assert broken == [(len(lines) - 1) // 2]  # the middle of the others


def test_timeouts_come_at_the_documented_rate(script: ModuleType, records: list[Json]) -> None:
    rate = sys.modules[script.PROFILES[0].__module__].TIMEOUT_RATE
    results = [result for r in records for name, _, result in calls_of(r) if name in known_tools(r)]
    timeouts = sum(result.startswith("Error: timeout") for result in results)
    spread = math.sqrt(rate * (1 - rate) * len(results))
    assert abs(timeouts - rate * len(results)) < 3 * spread
    assert any(  # and a later try of the same call succeeds
        a[:2] == b[:2] and a[2].startswith("Error: timeout") and not b[2].startswith("Error")
        for r in records
        for a, b in zip(calls_of(r), calls_of(r)[1:], strict=False)
    )


def test_agents_err_as_documented(records: list[Json]) -> None:
    """The habits that specs want to catch all occur; the careful model succeeds far more often."""
    rates = {}
    for model in ("careful-1", "hasty-1"):
        verdicts = [r["success"] for r in records if r["model"] == model and r["messages"] and "success" in r]
        rates[model] = sum(verdicts) / len(verdicts)
    assert rates["careful-1"] > 0.75
    assert 0.3 < rates["hasty-1"] < 0.6
    ghosts = [r for r in records if any(name not in known_tools(r) for name, _, _ in calls_of(r))]
    blind = [r for r in records if blind_repeats(r)]
    claims = [r for r in records if claims_without_a_change(r)]
    assert len(ghosts) >= 10
    assert len(blind) >= 10
    assert len(claims) >= 8
    assert not any(r.get("success") for r in ghosts + claims)


def known_tools(record: Json) -> set[str]:
    return {tool["function"]["name"] for tool in record["tools"]}


def blind_repeats(record: Json) -> int:
    pairs = list(zip(calls_of(record), calls_of(record)[1:], strict=False))
    return sum(a == b and a[2].startswith("Error") and "timeout" not in a[2] for a, b in pairs)


def claims_without_a_change(record: Json) -> bool:
    claims = re.search(r"cancelled and|Cancelled\.|I refunded|Refund done|Swapped|will now go to", said_in(record))
    made = any(name in CHANGES and not result.startswith("Error") for name, _, result in calls_of(record))
    return bool(claims) and not made


# ---- the runs ----
def test_every_record_has_the_same_shape(records: list[Json]) -> None:
    base = {"id", "task_id", "trial", "model", "messages", "tools", "metadata"}
    assert len({r["id"] for r in records}) == len(records)
    for record in records:
        assert base <= record.keys() <= base | {"reward", "success", "outcome", "error"}
        assert [t["type"] for t in record["tools"]] == ["function"] * 9
        if record["messages"]:
            assert [m["role"] for m in record["messages"][:2]] == ["system", "user"]
            answered = {m["tool_call_id"] for m in record["messages"] if "tool_call_id" in m}
            asked = [c["id"] for m in record["messages"] for c in m.get("tool_calls", ()) if "id" in c]
            assert len(set(asked)) == len(asked)
            assert set(asked) == answered


def test_success_means_the_gold_changes_and_no_others(records: list[Json]) -> None:
    """Read from the calls and results alone, without the shop."""

    def without_reason(name: str, arguments: Json) -> str:
        return json.dumps([name, {k: v for k, v in arguments.items() if k != "reason"}], sort_keys=True)

    for record in (r for r in records if r["messages"] and "success" in r):
        made = Counter(
            without_reason(name, arguments)
            for name, arguments, result in calls_of(record)
            if name in CHANGES and not result.startswith("Error")
        )
        gold = Counter(without_reason(g["name"], g["arguments"]) for g in record["metadata"]["gold"])
        told = all(fact in said_in(record) for fact in record["metadata"]["must_say"])
        assert record["success"] == (made == gold and told), record["id"]
        assert record["success"] == (record["reward"] == 1.0)
        if record["success"]:
            assert {name for name, _, _ in calls_of(record)} <= known_tools(record)


def test_results_and_rewards_follow_from_the_calls(script: ModuleType, records: list[Json]) -> None:
    """Replay every run on a fresh shop: each result is the shop's own, and the state it leaves gives the reward."""
    tasks = {task.task_id: task for task in (script.make_task(i, script.SEED) for i in range(60))}
    for record in (r for r in records if r["messages"]):
        task = tasks[record["task_id"]]
        shop = task.shop.copy()
        for name, arguments, result in calls_of(record):
            if result.startswith("Error: timeout"):
                continue
            expected = shop.execute(name, arguments)
            if "carrier_log" in result:
                longer = json.loads(result)
                del longer["carrier_log"]
                assert longer == json.loads(expected), record["id"]
            else:
                assert result == expected, record["id"]
        if "reward" in record:
            assert record["reward"] == task.reward(shop.orders, said_in(record)), record["id"]


def test_groups_disagree_and_part_late(records: list[Json]) -> None:
    """Most tasks have runs of both outcomes, and most of those have a pair that parts only after an assistant turn."""
    groups: dict[str, list[Json]] = defaultdict(list)
    for record in records:
        if record["messages"] and "success" in record:
            groups[record["task_id"]].append(record)
    assert len(groups) == 60
    late = mixed = 0
    for group in groups.values():
        good, bad = ([r["messages"] for r in group if r["success"] is verdict] for verdict in (True, False))
        if good and bad:
            mixed += 1
            shared = max(
                (list(takewhile(lambda pair: pair[0] == pair[1], zip(g, b, strict=False))) for g in good for b in bad),
                key=len,
            )
            late += any(message["role"] == "assistant" for message, _ in shared)
    assert mixed >= 45
    assert late >= 40


def test_all_people_are_made_up(records: list[Json]) -> None:
    text = json.dumps(records, ensure_ascii=False)
    emails = set(re.findall(r"[\w.+-]+@[\w.-]+\w", text))
    phones = set(re.findall(r"\b\d{3}-\d{4}\b", text))
    assert len(emails) > 40
    assert all(re.search(r"@example\.(com|org|net)$", email) for email in emails)
    assert phones
    assert all(re.fullmatch(r"555-01\d\d", phone) for phone in phones)


def test_texts_vary(records: list[Json]) -> None:
    spoken = [r for r in records if r["messages"]]
    assert len({r["messages"][1]["content"] for r in spoken}) == 60
    assert len({r["messages"][-1]["content"] for r in spoken}) > 150
    assert any("reasoning_content" in m for r in spoken for m in r["messages"])
