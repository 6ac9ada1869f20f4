"""The fixed job as a loop over JSON lines in one process: what most scripts are.

Usage: by_hand_orjson.py CORPUS OUT. Wide rows stay in memory until the caps are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import job
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_128_digest

Record = dict[str, Any]
Message = dict[str, Any]
BATCH = 1_000  # rows of the parquet files written at once


def refined(messages: list[Message]) -> list[Message]:
    """Without failing results and the calls that they answer; long results keep their ends."""
    failed = {m["tool_call_id"] for m in messages if m["role"] == "tool" and m["content"].startswith("Error:")}
    kept = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in failed:
                continue
            content = message["content"]
            if len(content) > job.CUT:
                half = job.CUT // 2
                message["content"] = content[:half] + content[-half:]
        elif failed and message.get("tool_calls"):
            calls = [call for call in message["tool_calls"] if call["id"] not in failed]
            if not calls and not message["content"]:
                continue
            if calls:
                message["tool_calls"] = calls
            else:
                del message["tool_calls"]
        kept.append(message)
    return kept


def key(messages: list[Message]) -> bytes:
    said = "".join(m["content"] for m in messages if m["role"] != "system" and m["content"])
    return xxh3_128_digest(said.lower().encode().translate(None, job.WHITE))


def rank(record: Record) -> tuple[float, str]:
    return -record["reward"], record["started_at"]


def to_the_last_answer(messages: list[Message]) -> list[Message]:
    """Nothing is learnt from what follows it; without any answer nothing is left."""
    return messages[: max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1) + 1]


def selected(lines: Iterable[bytes]) -> list[Record]:
    best: dict[bytes, Record] = {}
    for line in lines:
        record = orjson.loads(line)
        if record["reward"] is None or record["reward"] < job.REWARD:
            continue
        messages = record["messages"]
        if not job.TURNS[0] <= sum(m["role"] != "system" for m in messages) <= job.TURNS[1]:
            continue
        record["messages"] = refined(messages)
        same = key(record["messages"])
        if same not in best or rank(record) < rank(best[same]):
            best[same] = record
    tasks: dict[str, list[Record]] = defaultdict(list)
    for record in best.values():
        tasks[f"{record['domain']}/{record['task_id']}"].append(record)
    return [
        {"id": r["id"], "task": task, "split": job.split(task), "messages": messages, "tools": r["tools"]}
        for task, records in sorted(tasks.items())
        for r in sorted(records, key=rank)[: job.CAP]
        if (messages := to_the_last_answer(r["messages"]))
    ]


def write(rows: list[Record], out: Path) -> None:
    schema = None
    for name in job.SPLITS:
        part = [row for row in rows if row["split"] == name]
        with (out / f"{name}.jsonl").open("wb") as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in part)
        texts = [row | {"tools": orjson.dumps(row["tools"]).decode()} for row in part]
        schema = schema or pa.Table.from_pylist(texts[:BATCH]).schema
        with pq.ParquetWriter(out / f"{name}.parquet", schema, compression="zstd") as writer:
            for i in range(0, len(texts), BATCH):
                writer.write_table(pa.Table.from_pylist(texts[i : i + BATCH], schema))


def main() -> None:
    corpus, out = job.paths()
    with corpus.open("rb") as lines:
        rows = selected(lines)
    write(rows, out)


if __name__ == "__main__":
    main()
