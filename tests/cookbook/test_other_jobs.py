"""The other jobs, each against a plain reading of the source files."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cookbook.conftest import Done, Kitchen

Json = dict[str, Any]


def _lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _contents(messages: list[Json]) -> list[str]:
    return [message.get("content") or "" for message in messages]


# ---- verdicts ----


def _swe_runs(kitchen: Kitchen, *rows: Json) -> list[Json]:
    """The files that rows of one run may tell: all messages stand where the rows say."""
    return [run for _, run in kitchen.swe if all(_stands(run["history"], row) for row in rows)]


def _stands(history: list[Json], row: Json) -> bool:
    shown = [history[turn] for turn in row["turns"]] if max(row["turns"]) < len(history) else []
    return [m["content"] for m in shown] == _contents(row["messages"])


def _spoken(run: Json) -> set[int]:
    """What the agent said itself, by number."""
    return {i for i, m in enumerate(run["history"]) if m["role"] == "assistant" and not m.get("is_demo")}


def test_only_runs_whose_patch_resolves_are_kept(kitchen: Kitchen) -> None:
    done = kitchen("03_swe_verdicts")
    report = json.loads((kitchen.folder / "made" / "swe_report.json").read_text())
    steps = defaultdict(list)
    for instance, run in kitchen.swe:
        if report.get(instance, {}).get("resolved"):
            steps[instance].append(sum(message["role"] == "assistant" for message in run["history"]))
    kept = defaultdict(list)
    for row in done.rows("sft"):
        [run] = _swe_runs(kitchen, row)
        kept[done.run(row)["domain"]].append(sum(m["role"] == "assistant" for m in run["history"]))
    assert {k: sorted(n) for k, n in kept.items()} == {k: sorted(n)[:3] for k, n in steps.items()}


def test_no_demonstration_is_learnt(kitchen: Kitchen) -> None:
    learnt = 0
    for row in kitchen("03_swe_verdicts").rows("sft"):
        [run] = _swe_runs(kitchen, row)
        for turn, weight in zip(row["turns"], row["weights"], strict=True):
            assert weight == (turn in _spoken(run))
            learnt += weight > 0
    assert learnt > 10


# ---- a mix ----


def test_shares_of_the_mix_hold_within_one_row(kitchen: Kitchen) -> None:
    shares, budget = {"service": 0.5, "chats": 0.3, "swe": 0.2}, 60_000
    rows = kitchen("06_token_mix").rows("sft")
    taken: Counter[str] = Counter()
    for row in rows:
        taken[row["source"]] += sum(label != -100 for label in row["labels"])
    total, largest = sum(taken.values()), max(row["n_trained"] for row in rows)
    assert total <= budget
    assert set(taken) == set(shares)
    reached = max(taken[name] / share for name, share in shares.items())
    for name, share in shares.items():
        assert abs(taken[name] - share * reached) <= largest, (name, taken)


def test_counted_tokens_are_those_that_carry_loss(kitchen: Kitchen) -> None:
    for row in kitchen("06_token_mix").rows("sft"):
        assert row["n_tokens"] == len(row["input_ids"]) == len(row["labels"])
        assert row["n_trained"] == sum(label != -100 for label in row["labels"])
        assert all(label in (-100, token) for label, token in zip(row["labels"], row["input_ids"], strict=True))


# ---- pairs ----


def _desk(kitchen: Kitchen) -> dict[str, Json]:
    """The quickstart's runs by their own ids; torn lines are left out."""
    found = {}
    for path in sorted((kitchen.folder.parent / "quickstart" / "runs").iterdir()):
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict) and "messages" in record:
                found[record["id"]] = record
    return found


def _same(messages: list[Json]) -> list[Any]:
    """Messages without the ids of calls, with arguments read."""
    return [
        (
            m["role"],
            m.get("content") or "",
            m.get("reasoning_content") or "",
            [_read(call["function"]) for call in m.get("tool_calls") or []],
        )
        for m in messages
    ]


def _read(function: Json) -> Any:
    held = function["arguments"]
    return function["name"], json.loads(held) if isinstance(held, str) else held


def test_both_sides_share_the_prompt_and_part_behind_it(kitchen: Kitchen) -> None:
    done, records = kitchen("07_preference_pairs"), _desk(kitchen)
    rows = done.rows("preference")
    for row in rows:
        chosen, rejected = (records[done.runs[parent]["record_id"]] for parent in row["parents"])
        assert (chosen["success"], rejected["success"]) == (True, False)
        assert chosen["task_id"] == rejected["task_id"]
        one, other, prompt = (_same(m) for m in (chosen["messages"], rejected["messages"], row["prompt"]))
        n = len(prompt)
        assert prompt == one[:n] == other[:n]
        assert _same(row["chosen"]) == one[n : n + len(row["chosen"])]
        assert _same(row["rejected"]) == other[n : n + len(row["rejected"])]
        assert one[n] != other[n]
        assert one[n][0] == other[n][0] == "assistant"
        assert row["margin"] == chosen["reward"] - rejected["reward"] >= 0.5
    assert len(rows) > 20


def test_no_task_gives_more_than_two_pairs(kitchen: Kitchen) -> None:
    pairs = Counter(row["task"] for row in kitchen("07_preference_pairs").rows("preference"))
    assert max(pairs.values()) == 2


# ---- helpers ----


def _helpers(kitchen: Kitchen) -> dict[str, Json]:
    """Runs of helpers in solved sessions, by their own ids."""
    sessions = _lines(kitchen.folder / "made" / "team.jsonl")
    solved = [session for session in sessions if session["extra"]["reward"] >= 1]
    assert 0 < len(solved) < len(sessions)
    return {run["trajectory_id"]: run for session in solved for run in session["subagent_trajectories"]}


def test_helpers_of_solved_sessions_are_kept_and_no_lead(kitchen: Kitchen) -> None:
    done = kitchen("08_subagents")
    kept = [done.run(row)["record_id"] for row in done.rows("sft")]
    assert sorted(kept) == sorted(_helpers(kitchen))
    names = {tool["function"]["name"] for row in done.rows("sft") for tool in row["tools"]}
    assert names == {"search", "open", "run_tests"}


def test_each_helper_has_the_prompt_of_its_role_and_its_own_words(kitchen: Kitchen) -> None:
    done, helpers = kitchen("08_subagents"), _helpers(kitchen)
    prompts = defaultdict(set)
    for row in done.rows("sft"):
        run = helpers[done.run(row)["record_id"]]
        prompts[run["agent"]["name"]].add(row["messages"][0]["content"])
        said = [m["content"] for m, w in zip(row["messages"], row["weights"], strict=True) if w]
        assert said == [step["message"] for step in run["steps"] if step["source"] == "agent"]
    assert {name: len(seen) for name, seen in prompts.items()} == {"scout": 1, "tester": 1}
    assert prompts["scout"] != prompts["tester"]


# ---- tools ----


def _source_tools(kitchen: Kitchen) -> dict[Any, tuple[set[str], set[str]]]:
    """Names of the tools that a chat shows and calls, by what is said and called in it."""
    found = {}
    for chat in kitchen.chats:
        calls = [json.loads(t["value"])["name"] for t in chat["conversations"] if t["from"] == "function_call"]
        said = [t["value"] for t in chat["conversations"] if t["from"] != "function_call"]
        shown = {tool["name"] for tool in json.loads(chat["tools"] or "[]")}
        found["chats", *said, *calls] = shown, set(calls)
    [path] = kitchen.runs.glob("llamafactory_sharegpt/**/reason_tool_use_demo_50.jsonl")
    for row in _lines(path):
        parts = [part for message in row["messages"] for part in message["content"]]
        calls = [json.loads(part["value"])["name"] for part in parts if part["type"] == "tool_call"]
        said = [part["value"] for part in parts if part["type"] == "text"]
        shown = {tool["function"]["name"] for tool in json.loads(row["tools"])}
        found["reasoned", *said, *calls] = shown, set(calls)
    return found


def _rows_with_tools(kitchen: Kitchen) -> Iterator[tuple[Json, set[str], set[str], set[str]]]:
    """Each row with the tools that it shows, that its source shows, and that it calls."""
    known = _source_tools(kitchen)
    for row in kitchen("09_tool_pruning").rows("sft"):
        said = [m["content"] for m in row["messages"] if m["content"]]
        calls = [call["function"]["name"] for m in row["messages"] for call in m.get("tool_calls") or []]
        shown = {tool["function"]["name"] for tool in row["tools"] or []}
        yield row, shown, *known[row["source"], *said, *calls]


def test_a_row_shows_the_tools_that_it_used(kitchen: Kitchen) -> None:
    seen = Counter[bool]()
    for row, shown, before, called in _rows_with_tools(kitchen):
        if "#a" not in row["example_id"]:
            assert shown == (before & called if called else before)
            seen[bool(called)] += 1
    assert seen[True] > 5
    assert seen[False] > 5


def test_a_copy_shows_up_to_three_more_that_it_had_no_use_for(kitchen: Kitchen) -> None:
    made = 0
    for row, shown, before, called in _rows_with_tools(kitchen):
        if "#a" in row["example_id"]:
            own = before & called if called else before
            assert own < shown
            assert len(shown) <= len(own) + 3
            assert not (shown - own) & called
            made += 1
    assert made > 5


# ---- long runs ----


def _learnt(row: Json) -> list[int]:
    return [turn for turn, weight in zip(row["turns"], row["weights"], strict=True) if weight]


def test_windows_fit_and_learn_each_turn_once(kitchen: Kitchen) -> None:
    done = kitchen("10_long_context", "windows")
    rows: dict[str, list[Json]] = defaultdict(list)
    for row in done.rows("sft"):
        assert row["n_tokens"] <= 8_192
        rows[row["parents"][0]].append(row)
    left_out = {entry["traj_id"]: entry["n"] for entry in done.edits("over_length")}
    for run, windows in rows.items():
        learnt = Counter(turn for row in windows for turn in _learnt(row))
        assert set(learnt.values()) == {1}
        # What is longer than a window stands in the ledger; nothing else is missing.
        missing = [_spoken(file) - set(learnt) for file in _swe_runs(kitchen, *windows)]
        assert min(map(len, missing)) <= left_out.get(run, 0)
    assert max(len(windows) for windows in rows.values()) > 1
    handed_in = [run for _, run in kitchen.swe if (run.get("info") or {}).get("exit_status") == "submitted"]
    assert len(rows) + done.manifest["sinks"]["sft"]["dropped"].get("over_length", 0) == len(handed_in)


def test_a_decision_is_the_last_turn_and_sees_three_results(kitchen: Kitchen) -> None:
    done = kitchen("10_long_context", "decisions")
    calling = [
        run["history"]
        for _, run in kitchen.swe
        if (run.get("info") or {}).get("exit_status") == "submitted" and any("tool_calls" in m for m in run["history"])
    ]
    results = {m["content"] for history in calling for m in history if m["role"] == "tool"}
    rows, elided = done.rows("sft"), 0
    for row in rows:
        assert row["n_tokens"] <= 8_192
        assert _learnt(row) == [row["turns"][-1]]
        assert row["messages"][-1]["tool_calls"]
        seen = [m["content"] for m in row["messages"] if m["role"] == "tool"]
        assert all(content in results for content in seen[-3:])
        assert all(content == "[earlier output]" for content in seen[:-3])
        elided += len(seen[:-3])
    assert len(rows) == sum(bool(m.get("tool_calls")) for history in calling for m in history)
    assert elided > 10


# ---- a release ----


def _released(done: Done) -> Iterator[tuple[Json, str]]:
    for row in done.rows("sft"):
        yield row, json.dumps([row["messages"], row["tools"]], ensure_ascii=False)


def test_no_row_has_another_licence(kitchen: Kitchen) -> None:
    done = kitchen("12_licensed_release")
    held = {record["id"]: record.get("license") for record in _lines(kitchen.folder / "made" / "desk_export.jsonl")}
    assert {None, "CC-BY-NC-4.0"} < set(held.values())
    seen = Counter[str]()
    for row, _ in _released(done):
        run = done.run(row)
        licence = held[run["record_id"]] if run["source"] == "desk" else "Apache-2.0"
        assert row["license"] == licence
        assert licence in {"CC-BY-4.0", "CC0-1.0", "Apache-2.0"}
        seen[run["source"]] += 1
    assert min(seen["desk"], seen["chats"]) > 3


def test_no_address_number_or_key_of_the_export_is_left(kitchen: Kitchen) -> None:
    export = (kitchen.folder / "made" / "desk_export.jsonl").read_text()
    private = {*re.findall(r"\w+@example\.org", export), *re.findall(r"\+49 30 \d+|bagshop_\w+", export)}
    assert len(private) > 50
    for _, text in _released(kitchen("12_licensed_release")):
        assert not [value for value in private if value in text]


def test_nothing_is_told_twice(kitchen: Kitchen) -> None:
    done = kitchen("12_licensed_release")
    shingles = [(row["example_id"], _shingles(row)) for row, _ in _released(done) if row["source"] == "desk"]
    for i, (_, one) in enumerate(shingles):
        for _, other in shingles[i + 1 :]:
            assert len(one & other) / len(one | other) < 0.8


def _shingles(row: Json) -> set[tuple[str, ...]]:
    words = " ".join(p["value"] for m in row["messages"] if m["role"] != "system" for p in m["content"]).lower().split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}
