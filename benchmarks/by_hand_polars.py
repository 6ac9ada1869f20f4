"""The fixed job as an engineer writes it who knows both engines: DuckDB parses, polars works in batches.

Usage: by_hand_polars.py CORPUS OUT. Wide columns are touched once, in batches, and spilled; duplicates, caps and the
split are decided on a narrow table; a semi-join reads the spilled batches back and writes. The bar for the compiler.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import job
import polars as pl
from xxhash import xxh3_128_digest

BATCH = 4_000  # runs that are wide in memory
READ = """
SELECT id, domain || '/' || task_id AS task, reward, started_at, tools, messages
FROM read_json(?, format = 'newline_delimited', columns = {
  id: 'VARCHAR', task_id: 'VARCHAR', domain: 'VARCHAR', reward: 'DOUBLE', started_at: 'VARCHAR', tools: 'JSON',
  messages: 'STRUCT("role" VARCHAR, content VARCHAR, tool_call_id VARCHAR, tool_calls STRUCT(
    id VARCHAR, "type" VARCHAR, "function" STRUCT("name" VARCHAR, arguments VARCHAR))[])[]'
})
WHERE reward >= ?
"""
ROLE, CONTENT = pl.col("role"), pl.col("content")


def batches(corpus: Path) -> Iterator[pl.DataFrame]:
    with duckdb.connect() as connection:
        for batch in connection.sql(READ, params=[str(corpus), job.REWARD]).to_arrow_reader(BATCH):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame


def refined(runs: pl.DataFrame) -> pl.DataFrame:
    """The turns of the runs of fitting length, refined, one a row: run (its position), role, content, …"""
    turns = runs.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("run"), "messages").explode("messages")
    turns = turns.unnest("messages")
    spoken = (ROLE != "system").sum().over("run")
    turns = turns.filter(spoken.is_between(*job.TURNS))
    failed = (ROLE == "tool") & CONTENT.str.starts_with("Error:")
    half = job.CUT // 2
    short = pl.when((ROLE == "tool") & (CONTENT.str.len_chars() > job.CUT)).then(
        CONTENT.str.head(half) + CONTENT.str.tail(half)
    )
    errors = turns.filter(failed).select("run", call="tool_call_id")
    turns = turns.filter(~failed).with_columns(content=short.otherwise(CONTENT))
    return without_calls(turns.with_row_index("at"), errors)


def without_calls(turns: pl.DataFrame, errors: pl.DataFrame) -> pl.DataFrame:
    """Turns whose calls failed lose them, and go when nothing is left."""
    calls = turns.lazy().select("at", "run", "tool_calls").explode("tool_calls", empty_as_null=False, keep_nulls=False)
    calls = calls.with_columns(call=pl.col("tool_calls").struct.field("id"))
    lost = calls.join(errors.lazy(), on=["run", "call"], how="semi").select("at").unique()
    left = calls.join(lost, on="at", how="semi").join(errors.lazy(), on=["run", "call"], how="anti")
    left = left.group_by("at").agg("tool_calls")
    touched, remaining = pl.collect_all([lost, left])
    changed = turns.join(touched, on="at", how="semi").drop("tool_calls").join(remaining, on="at", how="left")
    changed = changed.filter(pl.col("tool_calls").is_not_null() | (CONTENT != "")).select(turns.columns)
    return pl.concat([turns.join(touched, on="at", how="anti"), changed]).sort("at")


def keys(turns: pl.DataFrame) -> pl.DataFrame:
    """run, key: a hash of what is said, in lower case and without white space."""
    said = turns.filter(ROLE != "system").group_by("run", maintain_order=True).agg(CONTENT.drop_nulls().str.join(""))
    texts = said["content"].str.to_lowercase().cast(pl.Binary)
    hashes = [xxh3_128_digest(text.translate(None, job.WHITE)) for text in texts]
    return said.select("run", key=pl.Series(hashes, dtype=pl.Binary))


def conversations(turns: pl.DataFrame) -> pl.DataFrame:
    """run, messages up to the last answer, since nothing is learnt from what follows it; no run without an answer."""
    last = pl.col("at").filter(ROLE == "assistant").max().over("run")
    message = pl.struct("role", "content", "tool_calls", "tool_call_id")
    return turns.filter(pl.col("at") <= last).group_by("run", maintain_order=True).agg(messages=message)


def chosen(narrow: pl.DataFrame) -> pl.DataFrame:
    """id, split: the best of equal runs, and the best of each task."""
    ranked = narrow.sort("reward", "started_at", descending=[True, False])
    ranked = ranked.unique("key", keep="first", maintain_order=True)
    capped = ranked.filter(pl.int_range(pl.len()).over("task") < job.CAP)
    splits = {task: job.split(task) for task in capped["task"].unique()}
    return capped.select("id", split=pl.col("task").replace_strict(splits, return_dtype=pl.String))


def spilled(corpus: Path, folder: Path) -> pl.DataFrame:
    """Writes refined runs to `folder`, a file a batch; gives their narrow columns."""
    narrow = []
    for number, runs in enumerate(batches(corpus)):
        turns = refined(runs)
        facts = runs.drop("messages").with_row_index("run")
        wide = conversations(turns).join(facts, on="run").select("id", "task", "messages", "tools")
        wide.write_parquet(folder / f"{number}.parquet", compression="uncompressed", statistics=False)
        narrow.append(keys(turns).join(facts, on="run").select("id", "task", "key", "reward", "started_at"))
    return pl.concat(narrow)


def write(spilled: Path, wanted: pl.DataFrame, out: Path) -> None:
    rows = pl.scan_parquet(spilled / "*.parquet").join(wanted.lazy(), on="id")
    sinks = []
    for name in job.SPLITS:
        part = rows.filter(split=name).select("id", "task", "split", "messages", "tools")
        sinks.append(part.sink_ndjson(out / f"{name}.jsonl", lazy=True, maintain_order=False))
        sinks.append(part.sink_parquet(out / f"{name}.parquet", lazy=True, maintain_order=False, row_group_size=2_000))
    pl.collect_all(sinks, engine="streaming")


def main() -> None:
    corpus, out = job.paths()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), chosen(spilled(corpus, Path(folder))), out)


if __name__ == "__main__":
    main()
