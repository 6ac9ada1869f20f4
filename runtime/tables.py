"""The canonical tables: what every format adapter produces and everything after it reads.

Two long tables with explicit types, never inferred from a file. One row of `RUNS` is one trajectory; one row of
`TURNS` is one turn of one trajectory. `row` is the position of a trajectory in its parsed part (0-based); it joins
the two tables and is renumbered when parts are put together. It never reaches an output.

Every open-shaped value is JSON text (`*_json`), key order and number spelling as in the source.
"""

from __future__ import annotations

import polars as pl

ROLE = pl.Enum(["system", "user", "assistant", "tool", "event"])
CONTENT_KIND = pl.Enum(["text", "parts", "null", "absent"])
ARGS_STATE = pl.Enum(["json", "repaired", "invalid", "none"])
REQUESTOR = pl.Enum(["agent", "user"])

CALL = pl.Struct(
    {
        "id": pl.String,  # as in the source; may be null or repeated
        "name": pl.String,
        "args_json": pl.String,  # a JSON object as text; null when the state is `invalid` or `none`
        "args_raw": pl.String,  # the source's text, kept where `args_json` does not say all of it
        "args_state": ARGS_STATE,  # `repaired`: a Python repr read with ast.literal_eval
        "requestor": REQUESTOR,
        "result_turn": pl.Int32,  # `turn` of the linked result, null when there is none
    }
)
PART = pl.Struct({"kind": pl.String, "text": pl.String, "media_type": pl.String, "ref": pl.String})
REWARD_PART = pl.Struct({"name": pl.String, "value": pl.Float64})

RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "row": pl.UInt32,
    "digest": pl.String,  # xxh3_128 (32 hex digits) of the canonical record, before any source setting
    "file": pl.UInt32,  # index into the part's list of files; provenance, outside the digest
    "line": pl.Int64,  # 1-based line of a JSONL file, else 1-based index of the record in the file
    "format": pl.String,
    "record_id": pl.String,  # the record's own id, if it has one
    "task_id": pl.String,
    "domain": pl.String,
    "trial": pl.Int32,
    "session_id": pl.String,
    "parent_id": pl.String,
    "depth": pl.Int32,
    "agent": pl.String,
    "model": pl.String,
    "license": pl.String,
    "tools_json": pl.String,  # a JSON list of {"type": "function", "function": {...}}, null when the record has none
    "reward": pl.Float64,  # null for a crash; its raw reward stays in meta
    "reward_parts": pl.List(REWARD_PART),
    "success": pl.Boolean,  # the format's own verdict; null for a crash and where the format gives none
    "outcome": pl.String,  # success | failure | crash | truncated | unknown
    "error": pl.String,  # what the harness said when it failed
    "gold_json": pl.String,  # gold calls or reference answer, as the format keeps them
    "started_at": pl.Datetime("us", "UTC"),
    "duration": pl.Float64,  # seconds
    "cost": pl.Float64,  # US dollars
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "defects": pl.List(pl.String),  # sorted, distinct
    "meta_json": pl.String,  # everything else of the record, a JSON object
}

TURNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "row": pl.UInt32,
    "turn": pl.Int32,  # 0-based position in the trajectory as read; system and event turns count here
    "role": ROLE,
    "actor": pl.String,  # `agent`, `user`, `environment`, or the name of an expert or sub-agent
    "content": pl.String,  # text; the texts of parts joined with a blank line when content_kind is `parts`
    "content_kind": CONTENT_KIND,
    "parts": pl.List(PART),
    "reasoning": pl.String,
    "calls": pl.List(CALL),  # empty list, never null
    "tool_call_id": pl.String,  # of a result, as in the source
    "tool_name": pl.String,  # of a result: from the record, else from the linked call
    "call_turn": pl.Int32,  # of a result: `turn` of the assistant turn that made the call
    "call_index": pl.Int32,  # of a result: position of the call in that turn
    "is_error": pl.Boolean,  # of a result; null where the format gives no evidence
    "ts": pl.Datetime("us", "UTC"),
    "model": pl.String,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "reward": pl.Float64,
    "loss_weight": pl.Float32,  # 1.0 unless the source says otherwise; demonstrations and copied context 0.0
    "copied_context": pl.Boolean,
    "extra_json": pl.String,
}
