"""The digest of one trajectory in plain Python: numbers first, row by row, then texts, column by column."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from xxhash import xxh3_128_hexdigest

from curatec.runtime.formats.model import Call, Part, RewardPart, Run, Turn
from curatec.runtime.formats.rows import settle

ROLES = ["system", "user", "assistant", "tool", "event"]
KINDS = ["text", "parts", "null", "absent"]
STATES = ["json", "repaired", "invalid", "none"]
REQUESTORS = ["agent", "user"]


def number(value: Any) -> bytes:
    if value is None:
        return struct.pack("<q", -(2**63))
    if isinstance(value, float):
        return struct.pack("<d", value + 0.0)
    return struct.pack("<q", len(value.encode()) if isinstance(value, str) else value)


def table(rows: Sequence[Sequence[Any]]) -> bytes:
    numbers = b"".join(number(value) for row in rows for value in row)
    columns = zip(*rows, strict=True)
    return numbers + b"".join(text.encode() for column in columns for text in column if isinstance(text, str))


def run_row(run: Run) -> list[Any]:
    facts = [run.format, run.record_id, run.task_id, run.domain, run.trial, run.session_id, run.parent_id, run.depth]
    tools = None if run.tools_json is None else xxh3_128_hexdigest(run.tools_json.encode())
    facts += [run.agent, run.model, run.license, tools, as_float(run.reward), len(run.reward_parts), run.success]
    facts += [run.outcome, run.error, run.gold_json, run.started_at, as_float(run.duration), as_float(run.cost)]
    return [len(run.turns), *facts, run.prompt_tokens, run.completion_tokens, len(run.defects), run.meta_json]


def turn_row(turn: Turn) -> list[Any]:
    parts = None if turn.parts is None else len(turn.parts)
    said = [ROLES.index(turn.role), turn.actor, turn.content, KINDS.index(turn.content_kind), parts, turn.reasoning]
    answered = [turn.tool_call_id, turn.tool_name, turn.call_turn, turn.call_index, turn.is_error]
    spent = [turn.ts, turn.model, turn.prompt_tokens, turn.completion_tokens, as_float(turn.reward)]
    weight = struct.unpack("<f", struct.pack("<f", turn.loss_weight))[0]
    return [*said, len(turn.calls), *answered, *spent, weight, turn.copied_context, turn.extra_json]


def call_row(call: Call) -> list[Any]:
    state, requestor = STATES.index(call.args_state), REQUESTORS.index(call.requestor)
    return [call.id, call.name, call.args_json, call.args_raw, state, requestor, call.result_turn]


def part_row(part: Part) -> list[Any]:
    return [part.kind, part.text, part.media_type, part.ref]


def reward_row(part: RewardPart) -> list[Any]:
    return [part.name, as_float(part.value)]


def as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def digest_of(run: Run) -> str:
    """Of a settled run."""
    tables = [
        [run_row(run)],
        [reward_row(part) for part in run.reward_parts],
        [[name] for name in run.defects],
        [turn_row(turn) for turn in run.turns],
        [call_row(call) for turn in run.turns for call in turn.calls],
        [part_row(part) for turn in run.turns for part in turn.parts or []],
    ]
    return xxh3_128_hexdigest(b"".join(map(table, tables)))


def finished(run: Run, notes: set[str]) -> tuple[Run, str]:
    """The run settled as one of a format with call ids, and its digest."""
    settle(run, notes, call_ids=True)
    return run, digest_of(run)
