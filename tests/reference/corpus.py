"""`from`: canonical runs → rows with every fact frozen (semantics 2, 3, 4, 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xxhash import xxh3_128_hexdigest

from curatec.runtime.formats.model import Run, Turn
from tests.reference.interpreter import Row, content
from tests.reference.steps import tools_of
from tests.reference.values import key

FACTS = """reward success outcome trial session_id parent_id depth agent license defects started_at duration cost
    model task_id"""
TURN_FIELDS = "role actor content reasoning tool_name call_turn is_error loss_weight copied_context"
CALL_FIELDS = "name args_json args_raw result_turn requestor"


def rows_at_from(sources: Sequence[tuple[str, Sequence[tuple[Run, str]]]]) -> list[Row]:
    """`sources`: a name and its runs with their digests, in reading order. Source settings are not applied."""
    rows = [_row(source, run, digest) for source, runs in sources for run, digest in runs]
    seen: dict[str, int] = {}
    for row in sorted(rows, key=lambda r: r["source"]):  # identical records: by source, then by place
        n = seen[row["digest"]] = seen.get(row["digest"], 0) + 1
        row["id"] = row["digest"] if n == 1 else f"{row['digest']}~{n}"
    for row in rows:
        _judge(row, [r for r in rows if (r["task"], _model(r)) == (row["task"], _model(row))])
    return rows


def _model(row: Row) -> tuple[str, str]:
    """Where the model is unknown, the source is one."""
    return ("source", row["source"]) if row["model"] is None else ("model", row["model"])


def _judge(row: Row, peers: Sequence[Row]) -> None:
    verdicts = [r["success"] for r in peers if r["success"] is not None]
    rewards = [r["reward"] for r in peers if r["reward"] is not None]
    row["attempts"] = len(verdicts)
    row["pass_rate"] = sum(verdicts) / len(verdicts) if len(verdicts) >= 2 else None
    row["spread"] = max(rewards) - min(rewards) if len(rewards) >= 2 else None


def _row(source: str, run: Run, digest: str) -> Row:
    row: dict[str, Any] = {name: getattr(run, name) for name in FACTS.split()}
    row |= {"source": source, "digest": digest, "meta": run.meta_json, "tools_json": run.tools_json}
    row["record"] = {"gold_json": run.gold_json, "meta_json": run.meta_json}
    row["turns"] = [_turn(number, turn) for number, turn in enumerate(run.turns)]
    row["tools"] = tools_of(run.tools_json)
    row["domain"] = run.domain if run.domain is not None else source
    if run.task_id is None:
        shown = None if run.tools_json is None else xxh3_128_hexdigest(run.tools_json.encode())
        row["task_id"] = key([content(row, "task_text"), shown])[:16]
    row["task"] = f"{row['domain']}/{row['task_id']}"
    return row


def _turn(number: int, turn: Turn) -> Row:
    calls = [{name: getattr(c, name) for name in CALL_FIELDS.split()} for c in turn.calls]
    told = {name: getattr(turn, name) for name in TURN_FIELDS.split()}
    return {**told, "turn": number, "calls": calls, "edited": False}
