"""The sft sink of the quickstart as the script that it replaces: one loop over JSON, no account of anything.

Usage: hand_written.py RUNS_FOLDER OUT_FILE. Writes the ids that it selects, one a line, and the messages beside them.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson


def records(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.iterdir()):
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for line in lines:
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


def calls_of(record: dict[str, Any]) -> str:
    calls = [c["function"] for m in record["messages"] for c in m.get("tool_calls") or []]
    return "\n".join(f"{c['name']}({json.dumps(json.loads(c['arguments']), sort_keys=True)})" for c in calls)


def rank(record: dict[str, Any]) -> tuple[float, str]:
    """Best reward first; the text settles ties."""
    reward = record.get("reward")
    return -reward if reward is not None else float("inf"), record["text"]


def main(folder: Path, out: Path) -> None:
    best: dict[tuple[str, str], dict[str, Any]] = {}
    kept: list[dict[str, Any]] = []
    for record in records(folder):
        if record.get("outcome") == "crash":
            continue
        turns = sum(m["role"] != "system" for m in record["messages"])
        if not 3 <= turns <= 24:
            continue
        for message in record["messages"]:
            if message["role"] == "tool" and len(message["content"]) > 2000:
                message["content"] = message["content"][:1000] + message["content"][-1000:]
        spoken = (m["content"] for m in record["messages"] if m["role"] != "system")
        record["text"] = "\n".join(text for text in spoken if text is not None)
        record["turns"], calls = turns, calls_of(record)
        if not calls:
            kept.append(record)
            continue
        key = record["task_id"], calls
        if key not in best or rank(record) < rank(best[key]):
            best[key] = record
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in (*kept, *best.values()):
        if record.get("success"):
            by_task[record["task_id"]].append(record)
    with out.open("wb") as file:
        for _, group in sorted(by_task.items()):
            for record in sorted(group, key=lambda r: (-r["reward"], r["turns"], r["text"]))[:2]:
                row = {"task": record["task_id"], "messages": record["messages"], "tools": record["tools"]}
                file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
