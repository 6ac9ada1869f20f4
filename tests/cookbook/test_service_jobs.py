"""Jobs over customer-service runs, each against a plain reading of the source files."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from tests.cookbook.conftest import Done, Kitchen

Json = dict[str, Any]


def _runs(kitchen: Kitchen) -> list[tuple[str, str | None, Json]]:
    """tau-bench's records with their tasks and models."""
    return [(f"{domain}/{record['task_id']}", model, record) for domain, model, record in kitchen.tau]


def _record(kitchen: Kitchen, done: Done, row: Json) -> Json:
    """The record of a row: of its task, model and trial, with what the user says."""
    [found] = _records(kitchen, done, row, _asked(row["messages"]))
    return found


def _records(kitchen: Kitchen, done: Done, row: Json, asked: list[str]) -> list[Json]:
    run = done.run(row)
    facts = run["task"], run["model"], run["trial"]
    found = [r for task, model, r in _runs(kitchen) if (task, model, r["trial"]) == facts]
    return [record for record in found if _asked(record["traj"])[: len(asked)] == asked]


def _asked(messages: list[Json]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "user"]


def _crashed(record: Json) -> bool:
    return not record["traj"] or "error" in record["info"]


def _said(record: Json) -> list[str]:
    return [message.get("content") or "" for message in record["traj"] if message["role"] == "assistant"]


# ---- best of n ----


def test_the_best_run_of_each_solved_task_is_kept(kitchen: Kitchen) -> None:
    done = kitchen("01_best_of_n")
    solved = defaultdict(list)
    for task, _, record in _runs(kitchen):
        if not _crashed(record) and record["reward"] >= 1:
            solved[task].append(len(_said(record)))
    rows = done.rows("sft")
    assert sorted(row["task"] for row in rows) == sorted(solved)
    for row in rows:
        record = _record(kitchen, done, row)
        assert record["reward"] == max(other["reward"] for task, _, other in _runs(kitchen) if task == row["task"])
        assert len(_said(record)) == min(solved[row["task"]])


def test_the_best_run_is_trained_with_its_own_words(kitchen: Kitchen) -> None:
    done = kitchen("01_best_of_n")
    for row in done.rows("sft"):
        said = [message["content"] or "" for message in row["messages"] if message["role"] == "assistant"]
        assert said == _said(_record(kitchen, done, row))
        assert all(
            weight == (m["role"] == "assistant") for m, weight in zip(row["messages"], row["weights"], strict=True)
        )


# ---- pass rates ----


def test_prompts_are_of_the_tasks_that_a_model_solves_sometimes(kitchen: Kitchen) -> None:
    done, tried = kitchen("02_pass_rate_groups"), defaultdict(list)
    for task, model, record in _runs(kitchen):
        if task.startswith("airline") and not _crashed(record):
            tried[task, model].append(record["reward"] >= 1)
    rates = {key: sum(tries) / len(tries) for key, tries in tried.items() if len(tries) > 1}
    learnable = {task for (task, _), rate in rates.items() if 0.1 <= rate <= 0.9}
    rows = done.rows("rl")
    assert sorted(row["task"] for row in rows) == sorted(learnable)
    for row in rows:
        run = done.run(row)
        assert row["pass_rate"] == rates[row["task"], run["model"]]
        assert row["attempts"] == len(tried[row["task"], run["model"]])


def test_a_prompt_ends_where_the_agent_would_speak(kitchen: Kitchen) -> None:
    done = kitchen("02_pass_rate_groups")
    for row in done.rows("rl"):
        shown = [(message["role"], message["content"]) for message in row["prompt"]]
        gold = [[call["name"], call["arguments"]] for call in row["gold_calls"]]
        records = _records(kitchen, done, row, _asked(row["prompt"]))
        assert records
        for record in records:
            roles = [message["role"] for message in record["traj"]]
            before = record["traj"][: roles.index("assistant")]
            assert shown == [(message["role"], message["content"]) for message in before]
            assert gold == [[action["name"], action["kwargs"]] for action in record["info"]["task"]["actions"]]


# ---- wrong turns ----


def _failed(record: Json) -> list[bool]:
    """For each message, whether a call that it makes was answered by an error: answers follow in order."""
    failed = [False] * len(record["traj"])
    asking, left = 0, 0
    for at, message in enumerate(record["traj"]):
        if message["role"] == "assistant":
            asking, left = at, len(message.get("tool_calls") or [])
        elif message["role"] == "tool" and left:
            failed[asking] |= (message["content"] or "").startswith("Error")
            left -= 1
    return failed


def test_a_turn_is_learnt_unless_its_call_failed(kitchen: Kitchen) -> None:
    done, masked = kitchen("04_mask_wrong_turns"), 0
    rows = done.rows("sft")
    for row in rows:
        failed = _failed(_record(kitchen, done, row))
        for turn, message, weight in zip(row["turns"], row["messages"], row["weights"], strict=True):
            assert weight == (message["role"] == "assistant" and not failed[turn])
            masked += message["role"] == "assistant" and failed[turn]
    assert masked > 5
    assert len(rows) == sum(not _crashed(record) and record["reward"] >= 1 for _, _, record in _runs(kitchen))


def test_no_learnt_text_is_of_a_failed_turn(kitchen: Kitchen) -> None:
    done = kitchen("04_mask_wrong_turns")
    for row in done.rows("sft"):
        failed = _failed(_record(kitchen, done, row))
        assert not any(failed[row["turns"][span["message"]]] for span in row["trained"])


# ---- leaks ----


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()


def _grams(words: list[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def test_no_sealed_task_is_in_the_data(kitchen: Kitchen) -> None:
    done = kitchen("05_leak_removal")
    items = [json.loads(line) for line in (kitchen.runs / "sealed.jsonl").read_text().splitlines()]
    ids = {item["id"] for item in items if "id" in item}
    rows = done.rows("sft")
    assert not ids & {row["task"] for row in rows}
    # Enough of the corpus is sealed for this to say something.
    assert len({done.runs[entry["traj_id"]]["task"] for entry in done.ledger("leaks")} & ids) >= 2
    sealed = [_words(item["text"]) for item in items]
    grams = set().union(*(_grams(words, 10) for words in sealed))
    for row in rows:
        for message in row["messages"]:
            words = _words(message["content"] or "")
            assert not _grams(words, 10) & grams, row["task"]
            if message["role"] in ("user", "assistant"):
                text = f" {' '.join(words)} "
                assert not any(f" {' '.join(item)} " in text for item in sealed if item), row["task"]


def test_what_leaked_is_told_with_the_words(kitchen: Kitchen) -> None:
    done = kitchen("05_leak_removal")
    items = [json.loads(line) for line in (kitchen.runs / "sealed.jsonl").read_text().splitlines()]
    ids, texts = {item.get("id") for item in items}, [" ".join(_words(item["text"])) for item in items]
    dropped = done.ledger("leaks")
    assert {entry["reason"] for entry in dropped} >= {"test_id", "test_text"}
    for entry in dropped:
        if entry["reason"] == "test_id":
            assert entry["key"] in ids
        else:
            evidence = " ".join(_words(entry["key"].rpartition(": ")[2].rstrip("…")))
            assert any(evidence in text for text in texts), entry["key"]


# ---- the user's side ----


def _told(kitchen: Kitchen) -> dict[tuple[str, int, str | None], list[tuple[str, list[str]]]]:
    """What users were told and what they said, by task, trial and model."""
    found = defaultdict(list)
    for task, model, record in _runs(kitchen):
        if not _crashed(record):
            said = [m["content"] for m in record["traj"] if m["role"] == "user"]
            found[task, record["trial"], model].append((record["info"]["task"]["instruction"].strip(), said))
    for document, task, one in kitchen.tau2:
        told = task["user_scenario"]["instructions"]
        parts = "\n".join(told[k] or "" for k in ("reason_for_call", "known_info", "task_instructions"))
        info = document["info"]
        key = f"{info['environment_info']['domain_name']}/{task['id']}", one["trial"], info["agent_info"]["llm"]
        found[key].append((parts.strip(), [m["content"] for m in one["messages"] if m["role"] == "user"]))
    return found


def test_what_is_learnt_is_what_the_user_said(kitchen: Kitchen) -> None:
    done, told = kitchen("11_user_simulator"), _told(kitchen)
    rows = done.rows("sft")
    for row in rows:
        run = done.run(row)
        learnt = [m["content"] for m, w in zip(row["messages"], row["weights"], strict=True) if w]
        assert row["messages"][0]["role"] == "system"
        assert (row["messages"][0]["content"], learnt) in told[run["task"], run["trial"], run["model"]]
        assert {m["role"] for m in row["messages"]} == {"system", "user", "assistant"}
    assert {row["source"] for row in rows} == {"airline", "tau2"}


def test_the_user_sees_neither_policy_nor_tools(kitchen: Kitchen) -> None:
    done = kitchen("11_user_simulator")
    shown = Counter(message["role"] for row in done.rows("sft") for message in row["messages"])
    assert shown["tool"] == 0
    for row in done.rows("sft"):
        assert row["tools"] is None
        assert not any(message.get("tool_calls") for message in row["messages"])
    policies = {r["traj"][0]["content"] for _, _, r in kitchen.tau if r["traj"] and r["traj"][0]["role"] == "system"}
    assert not policies & {message["content"] for row in done.rows("sft") for message in row["messages"]}
