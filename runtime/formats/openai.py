"""OpenAI chat messages: `{"messages": [...], "tools": [...]}`, one record a line or a JSON list; also a bare list.

`tools` may be a list, its JSON text, or the legacy `functions`. Taken when present: `id task_id domain trial reward
success outcome model agent session_id parent_id depth started_at duration cost license error gold`. Everything else
goes to meta as it is; an object under `meta` or `metadata` is laid out flat there.

The format has no verdict of its own: success is what the record says, else what its `outcome` says, else null. A record
whose outcome is `crash` has null reward and success; its raw ones go to meta.
"""

from __future__ import annotations

from typing import TypeVar

from .json_text import Json, encode
from .messages import turns_of
from .model import ANYWHERE, Context, Match, Run, Sample, Unreadable
from .score import is_message, is_message_list, share
from .values import flag_of, integer_of, json_or_null, number_of, text_of, time_of, tools_of

OUTCOMES = frozenset({"success", "failure", "crash", "truncated", "unknown"})
T = TypeVar("T")
_TEXTS = ("task_id", "domain", "session_id", "parent_id", "model", "license")


class OpenAi:
    """The adapter; it has no state."""

    name = "openai"
    version = 2
    containers = ANYWHERE
    elements: str | None = None
    call_ids = True

    def recognise(self, sample: Sample) -> Match:
        records = sample.records
        if sample.container == "array" and records and all(map(is_message, records)):
            return Match(0.7, "the file is one list of messages", whole=True)
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        if isinstance(record, list):
            record = {"messages": record}
        if not isinstance(record, dict):
            raise Unreadable(f"{_kind(record)} is not a record")
        holder = _holder(record)
        if holder is None:
            raise Unreadable("no `messages` list")
        run = Run(self.name, turns_of(record[holder], context.notes))
        take_facts(run, record, context.notes, frozenset({holder}))
        return [run]


def _holder(record: dict[str, Json]) -> str | None:
    """The member that holds the messages; some data sets call it `conversation` or `conversations`."""
    if isinstance(record.get("messages"), list):
        return "messages"
    others = ("conversations", "conversation")
    return next((key for key in others if record.get(key) and is_message_list(record[key])), None)


def take_facts(run: Run, record: dict[str, Json], notes: set[str], taken: frozenset[str]) -> None:
    """Fills in what a record says beside its messages. `taken` are the members that hold the messages."""
    left = {key: item for key, item in record.items() if key not in taken}
    run.record_id = _take_text(left, "id")
    for key in _TEXTS:
        setattr(run, key, _take_text(left, key))
    run.agent = _take_text(left, "agent")
    run.trial = _take(left, "trial", integer_of(left.get("trial"), notes, 31))
    run.depth = _take(left, "depth", integer_of(left.get("depth"), notes, 31)) or 0
    run.started_at = _take(left, "started_at", time_of(left.get("started_at"), notes))
    run.duration = _take(left, "duration", number_of(left.get("duration"), notes))
    run.cost = _take(left, "cost", number_of(left.get("cost"), notes))
    error = left.pop("error", None)
    run.error = error if isinstance(error, str) else json_or_null(error)
    run.gold_json = json_or_null(left.pop("gold", None))
    _take_tools(run, left, notes)
    _take_verdict(run, left, notes)
    run.meta_json = encode(flat_meta(left))


def _take_text(left: dict[str, Json], key: str) -> str | None:
    return _take(left, key, text_of(left.get(key)))


def _take(left: dict[str, Json], key: str, value: T | None) -> T | None:
    """Removes `key` from the left-over members once its value has a column; a value of another kind stays."""
    if value is not None or left.get(key, 0) is None:
        del left[key]
    return value


def _take_tools(run: Run, left: dict[str, Json], notes: set[str]) -> None:
    for key in ("tools", "functions"):
        if run.tools_json is None and key in left:
            run.tools_json = tools_of(left[key], notes)
            if run.tools_json is not None or left[key] in (None, [], ""):
                del left[key]


def _take_verdict(run: Run, left: dict[str, Json], notes: set[str]) -> None:
    outcome = left.get("outcome")
    if isinstance(outcome, str) and outcome in OUTCOMES:
        run.outcome = left.pop("outcome")
    elif not run.turns and run.error is not None:
        run.outcome = "crash"
    if run.outcome == "crash":
        return
    run.reward = _take(left, "reward", number_of(left.get("reward"), notes))
    run.success = _take(left, "success", flag_of(left.get("success"), notes))
    if run.success is None and run.outcome in ("success", "failure"):
        run.success = run.outcome == "success"
    if run.outcome == "unknown" and run.success is not None and outcome != "unknown":
        run.outcome = "success" if run.success else "failure"


def flat_meta(left: dict[str, Json]) -> dict[str, Json]:
    """Members without a column; the object under `meta` or `metadata` is laid out among them where no name is taken."""
    for key in ("meta", "metadata"):
        held = left.get(key)
        if isinstance(held, dict) and not (held.keys() & left.keys()):
            left = {**{name: item for name, item in left.items() if name != key}, **held}
    return left


def _score(record: Json) -> tuple[float, str]:
    if isinstance(record, list):
        return (0.7, "a list of messages") if record and is_message_list(record) else (0.0, "no `messages` list")
    holder = _holder(record) if isinstance(record, dict) else None
    if holder is None:
        return 0.0, "no `messages` list"
    if not is_message_list(record[holder]):
        return 0.2, "`messages` holds entries without a `role` and a content"
    return 0.8, "has `messages` with roles"


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return "a string" if isinstance(value, str) else "a number"


OPENAI = OpenAi()
