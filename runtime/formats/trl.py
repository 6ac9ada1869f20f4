"""TRL's data set columns, and the rows that `curatec` itself writes for TRL.

| columns | runs |
|---|---|
| `messages`, `tools` (a list or its JSON text) | one |
| `prompt`, `completion` | one; with `label` (KTO) a success or a failure |
| `prompt`, `chosen`, `rejected` | two of one task: `chosen` a success of reward 1, `rejected` a failure of reward 0 |
| `chosen`, `rejected` | the same; the prompt is what both begin with (also where `prompt` is a text beside messages) |
| `prompt` (messages) | one, which ends where a rollout begins |

A prompt, a completion or a side is a list of messages or a text, which is one message: the user's where it is a prompt,
else the assistant's. TRL never trains a prompt, so its assistant messages have loss weight 0. A row that has `messages`
is read from those: columns beside them (`prompt` and `completion` of `loss … only last`) show a part of the same. Of a
row of `curatec`, `weights` are the loss weights, `example_id` is its id, `task` is taken apart into domain and task id.

Both sides of a pair are one task: that which the row names, else a hash of the prompt. Everything else goes to meta.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import xxhash

from .json_text import Json, encode
from .messages import turns_of
from .model import ANYWHERE, Context, Match, Run, Sample, Turn, Unreadable
from .openai import take_facts
from .score import is_message_list, share
from .values import MISSING, decode_text, number_of

HOLDERS = ("messages", "prompt", "completion", "chosen", "rejected")
_VERDICTS = {"chosen": True, "rejected": False}


class Trl:
    """The adapter; it has no state."""

    name = "trl"
    version = 1
    containers = ANYWHERE
    elements: str | None = None
    call_ids = False  # TRL's own examples have none

    def recognise(self, sample: Sample) -> Match:
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        if not isinstance(record, dict):
            raise Unreadable("not an object")
        notes = context.notes
        if isinstance(record.get("messages"), list):
            turns = turns_of(record["messages"], notes)
            _weigh(turns, record, notes)
            return [_run(record, turns, notes)]
        if "chosen" in record and "rejected" in record:
            return _pair(record, notes)
        if "prompt" not in record:
            raise Unreadable("neither `messages`, nor `prompt`, nor `chosen` and `rejected`")
        prompt = _prompt(record["prompt"], notes)
        if "completion" not in record:
            return [_run(record, prompt, notes)]
        run = _run(record, [*prompt, *_said(record["completion"], "assistant", notes)], notes)
        if isinstance(record.get("label"), bool):
            _judge(run, record["label"])
        return [run]


def _run(record: dict[str, Json], turns: list[Turn], notes: set[str]) -> Run:
    """One run with what the row says beside its messages."""
    run = Run("trl", turns)
    take_facts(run, _renamed(record, notes), notes, frozenset(HOLDERS))
    return run


def _renamed(record: dict[str, Json], notes: set[str]) -> dict[str, Json]:
    """The row with its own id, domain, task id and gold under the names that facts have."""
    found = dict(record)
    if isinstance(record.get("example_id"), str) and "id" not in record:
        found["id"] = found.pop("example_id")
    task = record.get("task")
    if isinstance(task, str) and "task_id" not in record:
        domain, slash, name = found.pop("task").partition("/")
        found |= {"domain": domain, "task_id": name} if slash else {"task_id": task}
    for key in ("gold", "meta"):  # JSON texts in rows of `curatec`
        held = record.get(key)
        if isinstance(held, str) and (value := decode_text(held)[0]) is not MISSING:
            found[key] = value
    if isinstance(record.get("reward"), list):  # verifiers of a rollout, not a reward that was given
        found["verifiers"] = found.pop("reward")
    return found


def _weigh(turns: list[Turn], record: dict[str, Json], notes: set[str]) -> None:
    """`weights`, one for each message, count for the messages of the assistant."""
    weights = record.get("weights")
    if not isinstance(weights, list) or len(weights) != len(turns):
        return
    for turn, weight in zip(turns, weights, strict=True):
        if turn.role == "assistant" and (said := number_of(weight, notes)) is not None:
            turn.loss_weight = said


def _pair(record: dict[str, Json], notes: set[str]) -> list[Run]:
    """The two sides of a preference, `chosen` first."""
    prompt, sides = record.get("prompt"), {side: record[side] for side in _VERDICTS}
    if prompt is None or (isinstance(prompt, str) and not isinstance(sides["chosen"], str)):
        prompt = _shared(*sides.values())
        sides = {side: said[len(prompt) :] for side, said in sides.items()}
    runs = []
    for side, verdict in _VERDICTS.items():
        turns = [*_prompt(prompt, notes), *_said(sides[side], "assistant", notes)]
        run = _run(record, turns, notes)
        run.task_id = run.task_id or xxhash.xxh3_128_hexdigest(encode(prompt).encode())[:16]
        if run.record_id is not None:
            run.record_id += f":{side}"
        _judge(run, verdict)
        runs.append(run)
    return runs


def _shared(chosen: Json, rejected: Json) -> Any:
    """What both sides begin with, as messages or as text. Raises Unreadable when they are not of one kind."""
    if not (isinstance(chosen, str) and isinstance(rejected, str)) and not (
        isinstance(chosen, list) and isinstance(rejected, list)
    ):
        raise Unreadable("`chosen` and `rejected` are neither two lists of messages nor two texts")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected, strict=False)))
    return chosen[:same]


def _prompt(value: Json, notes: set[str]) -> list[Turn]:
    turns = _said(value, "user", notes)
    for turn in turns:
        if turn.role == "assistant":
            turn.loss_weight = 0.0
    return turns


def _said(value: Json, role: str, notes: set[str]) -> list[Turn]:
    """The turns of a list of messages, or of a text; an empty text is none."""
    if isinstance(value, str):
        value = [{"role": role, "content": value}] if value else []
    if not isinstance(value, list):
        raise Unreadable("a prompt or completion is neither a list of messages nor a text")
    return turns_of(value, notes)


def _judge(run: Run, good: bool) -> None:
    run.success, run.reward, run.outcome = good, float(good), "success" if good else "failure"


def _score(record: Json) -> tuple[float, str]:
    if not isinstance(record, dict):
        return 0.0, "not an object"
    if isinstance(record.get("messages"), list):
        return _score_messages(record)
    if "chosen" in record and "rejected" in record:
        sides = [record["chosen"], record["rejected"], record.get("prompt") or []]
        if all(map(_is_said, sides)):
            return 0.9, "has `chosen` and `rejected`"
        return 0.2, "`chosen` or `rejected` is neither a list of messages nor a text"
    if "prompt" in record and "completion" in record:
        if _is_said(record["prompt"]) and _is_said(record["completion"]):
            return 0.9, "has `prompt` and `completion`"
        return 0.2, "`prompt` or `completion` is neither a list of messages nor a text"
    if record.get("prompt") and is_message_list(record["prompt"]):
        return 0.6, "has a `prompt` of messages"
    return 0.0, "no `messages`, `prompt`, or `chosen` and `rejected`"


def _score_messages(record: dict[str, Json]) -> tuple[float, str]:
    """Plain messages are `openai`'s. TRL's own are known by tools as JSON text, ours by their weights."""
    if not is_message_list(record["messages"]):
        return 0.1, "`messages` holds entries without a `role` and a content"
    if isinstance(record.get("weights"), list) and isinstance(record.get("trained"), list):
        return 0.95, "has `messages`, `weights` and `trained`"
    if isinstance(record.get("tools"), str):
        return 0.85, "has `messages` with roles, and `tools` as JSON text"
    return 0.7, "has `messages` with roles"


def _is_said(value: Json) -> bool:
    return isinstance(value, str) or is_message_list(value)


TRL = Trl()
