"""The fixed job in SQL alone.

Usage: by_hand_duckdb.py CORPUS OUT. Refined runs are spilled to a parquet file, so that the second pass, over narrow
columns, decides what the third one writes. Two scalar functions are Python's: the key's hash, over whole vectors, and
the split of a task.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import job
import pyarrow as pa
from xxhash import xxh3_128_digest

# Messages are refined in place, as lists: a run's turns never leave its row.
REFINE = f"""
COPY (
  WITH raw AS (
    SELECT id, domain || '/' || task_id AS task, reward, started_at, tools, messages
    FROM read_json($corpus, format = 'newline_delimited', columns = {{
      id: 'VARCHAR', task_id: 'VARCHAR', domain: 'VARCHAR', reward: 'DOUBLE', started_at: 'VARCHAR', tools: 'JSON',
      messages: 'STRUCT("role" VARCHAR, content VARCHAR, tool_call_id VARCHAR, tool_calls STRUCT(
        id VARCHAR, "type" VARCHAR, "function" STRUCT("name" VARCHAR, arguments VARCHAR))[])[]'
    }})
    WHERE reward >= {job.REWARD}
      AND len(list_filter(messages, lambda m: m.role != 'system')) BETWEEN {job.TURNS[0]} AND {job.TURNS[1]}
  ), failing AS (
    SELECT *, [m.tool_call_id FOR m IN messages IF m.role = 'tool' AND starts_with(m.content, 'Error:')] AS failed
    FROM raw
  ), refined AS (
    SELECT * EXCLUDE (messages, failed), list_transform(
      list_filter(messages, lambda m: CASE
        WHEN m.role = 'tool' THEN NOT list_contains(failed, m.tool_call_id)
        WHEN m.tool_calls IS NULL OR m.content != '' THEN true
        ELSE len(list_filter(m.tool_calls, lambda c: NOT list_contains(failed, c.id))) > 0 END),
      lambda m: {{
        'role': m.role,
        'content': CASE WHEN m.role = 'tool' AND length(m.content) > {job.CUT}
          THEN m.content[:{job.CUT // 2}] || m.content[-{job.CUT // 2}:] ELSE m.content END,
        'tool_calls': nullif(list_filter(m.tool_calls, lambda c: NOT list_contains(failed, c.id)), []),
        'tool_call_id': m.tool_call_id
      }}) AS messages
    FROM failing
  )
  SELECT id, task, reward, started_at,
    said_key(array_to_string([m.content FOR m IN messages IF m.role != 'system'], '')) AS key,
    -- Nothing is learnt from what follows the last answer.
    messages[:len(messages) + 1 - list_position(list_reverse([m.role FOR m IN messages]), 'assistant')] AS messages,
    tools
  FROM refined
) TO '$spilled' (FORMAT parquet, COMPRESSION uncompressed, ROW_GROUP_SIZE 2048)
"""
CHOOSE = f"""
CREATE TABLE chosen AS
WITH once AS (
  SELECT * FROM read_parquet('$spilled')
  QUALIFY row_number() OVER (PARTITION BY key ORDER BY reward DESC, started_at) = 1
), fair AS (
  SELECT id, task FROM once QUALIFY row_number() OVER (PARTITION BY task ORDER BY reward DESC, started_at) <= {job.CAP}
)
SELECT id, split_of(task) AS split FROM fair
"""
WRITE = """
COPY (
  SELECT id, task, split, messages, tools FROM read_parquet('$spilled') JOIN chosen USING (id)
  WHERE split = '$split' AND messages IS NOT NULL
) TO '$file' ($how)
"""
HOW = {"jsonl": "FORMAT json", "parquet": "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048"}


def said_key(texts: pa.ChunkedArray) -> pa.Array:
    """A hash of what each run says, in lower case and without white space."""
    said = (text.lower().encode().translate(None, job.WHITE) for text in texts.to_pylist())
    return pa.array(list(map(xxh3_128_digest, said)), pa.binary())


def main() -> None:
    corpus, out = job.paths()
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        spilled = Path(folder) / "refined.parquet"
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{folder}'")
        connection.create_function("said_key", said_key, ["VARCHAR"], "BLOB", type="arrow")
        connection.create_function("split_of", job.split, ["VARCHAR"], "VARCHAR")
        connection.execute(REFINE.replace("$spilled", str(spilled)), {"corpus": str(corpus)})
        connection.execute(CHOOSE.replace("$spilled", str(spilled)))
        for name in job.SPLITS:
            for suffix, how in HOW.items():
                statement = WRITE.replace("$spilled", str(spilled)).replace("$split", name).replace("$how", how)
                connection.execute(statement.replace("$file", str(out / f"{name}.{suffix}")))


if __name__ == "__main__":
    main()
