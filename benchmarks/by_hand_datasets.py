"""The fixed job with `datasets`: filter and map in two processes, duplicates and caps over a narrow table.

Usage: by_hand_datasets.py CORPUS OUT. Its cache is a folder of its own, which goes: every run is cold.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import by_hand_orjson as loop
import job
import polars as pl

PROCESSES = 2
Row = dict[str, Any]


def fits(row: Row) -> bool:
    if row["reward"] is None or row["reward"] < job.REWARD:
        return False
    return job.TURNS[0] <= sum(m["role"] != "system" for m in row["messages"]) <= job.TURNS[1]


def refine(row: Row) -> Row:
    messages = loop.refined(row["messages"])
    task = f"{row['domain']}/{row['task_id']}"
    answer = loop.to_the_last_answer(messages)
    return {"task": task, "split": job.split(task), "key": loop.key(messages), "messages": answer, "says": len(answer)}


def chosen(narrow: pl.DataFrame) -> pl.DataFrame:
    """at, split: positions of the best of equal runs, and of the best of each task."""
    ranked = narrow.with_row_index("at").sort("reward", "started_at", descending=[True, False])
    ranked = ranked.unique("key", keep="first", maintain_order=True)
    capped = ranked.filter(pl.int_range(pl.len()).over("task") < job.CAP)
    return capped.filter(pl.col("says") > 0).select("at", "split").sort("at")


def main() -> None:
    corpus, out = job.paths()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HF_HOME"] = cache
        os.environ["HF_HUB_OFFLINE"] = "1"
        import datasets

        datasets.disable_progress_bars()
        runs = datasets.load_dataset("json", data_files=str(corpus), split="train")
        runs = runs.filter(fits, num_proc=PROCESSES).map(refine, num_proc=PROCESSES)
        columns = ["key", "task", "split", "reward", "started_at", "says"]
        narrow = runs.select_columns(columns).with_format("polars")[:]
        rows = runs.select_columns(["id", "task", "split", "messages", "tools"])
        for (split,), some in chosen(narrow).group_by("split"):
            part = rows.select(some["at"].to_list())
            part.to_json(str(out / f"{split}.jsonl"), force_ascii=False, num_proc=PROCESSES)
            part.to_parquet(str(out / f"{split}.parquet"))


if __name__ == "__main__":
    main()
