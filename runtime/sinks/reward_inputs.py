"""What of a record a verifier reads, and what an environment needs to start a task anew: from its gold and its meta.

`gold` is what the format calls the reference (see the adapters); `meta` is the rest of the record.

- gold calls: gold, or meta's `gold`: a call, a list of calls, or an object with them under `actions` or `calls`;
- gold answers: a text or number there, a list of them, or an object with them under `outputs`, `communicate_info`,
  `answers` or `answer`; else meta's `answers`, `answer` or `ground_truth`;
- state digest: an object's `state_digest`; else meta's, or tau-bench's `gt_data_hash`.

A call is `{"name", "arguments"}` (tau2, OpenAI's function, also inside `{"function": …}`) or `{"name", "kwargs"}`
(tau-bench); its arguments are an object or the JSON text of one. A member that is there and null, or an empty list,
says that there is nothing to do or to say, which is known; a member that is not there says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from curatec.compiler.verifiers import VERIFIERS, Input
from curatec.runtime.formats.json_text import Json, encode
from curatec.runtime.formats.values import MISSING, decode_text

_CALLS = ("actions", "calls")
_SPELLED = ("arguments", "kwargs", "function")
_ANSWERS = ("outputs", "communicate_info", "answers", "answer")
_META_ANSWERS = ("answers", "answer", "ground_truth")
_STATE = (("state_digest",), ("info", "reward_info", "info", "gt_data_hash"))
# Member of `reset` → where a record has it: tau-bench, tau2, SWE-agent, BFCL; then plain names.
_RESET: dict[str, tuple[tuple[str, ...], ...]] = {
    "instruction": (("info", "task", "instruction"), ("instruction",)),
    "user_id": (("info", "task", "user_id"), ("user_id",)),
    "scenario": (("task", "user_scenario"), ("user_scenario",), ("scenario",)),
    "problem": (("replay_config", "problem_statement"), ("problem_statement",)),
    "initial_state": (("task", "initial_state"), ("initial_state",), ("initial_config",)),
    "environment": (("replay_config", "env"), ("environment",)),
    "seed": (("seed",),),
}


@dataclass(frozen=True, slots=True)
class RewardInputs:
    """Null where the record does not say. `gold_calls` are JSON objects `{"name", "arguments"}` as text, with
    `"requestor": "user"` for a call that the user makes."""

    gold_calls: tuple[str, ...] | None = None
    gold_answers: tuple[str, ...] | None = None
    state_digest: str | None = None

    def lacking(self, verifiers: Iterable[str], *, tools: bool) -> str | None:
        """Why a row cannot be judged by some of the verifiers: the reason of the first of them, or null."""
        there: dict[Input, bool] = {
            "gold_calls": self.gold_calls is not None,
            "gold_answers": bool(self.gold_answers),
            "state_digest": self.state_digest is not None,
            "tools": tools,
        }
        told = (VERIFIERS[name] for name in verifiers)
        return next((v.lacking for v in told if v.inputs and not any(there[name] for name in v.inputs)), None)


def reward_inputs(gold_json: str | None, meta_json: str) -> RewardInputs:
    """The inputs that a record has."""
    meta = _object(_decoded(meta_json))
    gold = _decoded(gold_json) if gold_json is not None else meta.get("gold", MISSING)
    answers = _answers(gold)
    if answers is None:
        answers = next((found for key in _META_ANSWERS if (found := _said(meta.get(key))) is not None), None)
    digest = next((found for path in _STATE if (found := _at(meta, path)) is not None), None)
    own = gold.get("state_digest") if isinstance(gold, dict) else None
    state = own if own is not None else digest
    return RewardInputs(_calls(gold), answers, state if isinstance(state, str) else None)


def reset_of(run: Mapping[str, Any], meta_json: str) -> str:
    """What an environment needs to start the task of a run, a JSON object: `domain task_id trial format` of the run,
    and what of `_RESET` its record has. Members without a value are left out."""
    meta = _object(_decoded(meta_json))
    known = {name: run[name] for name in ("domain", "task_id", "trial", "format")}
    for name, paths in _RESET.items():
        known[name] = next((found for path in paths if (found := _at(meta, path)) is not None), None)
    return encode({name: value for name, value in known.items() if value is not None})


# ---- reading ----


def _decoded(text: str) -> Json:
    return decode_text(text)[0]


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _at(holder: Json, path: tuple[str, ...]) -> Json:
    """The member at a path, null where there is none. A text that holds a JSON object is one (SWE-agent)."""
    for key in path:
        holder = _unpacked(holder)
        holder = holder.get(key) if isinstance(holder, dict) else None
    return _unpacked(holder)


def _unpacked(value: Json) -> Json:
    if not (isinstance(value, str) and value.startswith("{")):
        return value
    read = _decoded(value)
    return read if isinstance(read, dict) else value


def _calls(gold: Json) -> tuple[str, ...] | None:
    """The calls, null where the gold has none or one of them cannot be read."""
    if isinstance(gold, dict):
        key = next((key for key in _CALLS if key in gold), None)
        alone = [gold] if any(name in gold for name in _SPELLED) else None
        gold = alone if key is None else gold[key] or []
    if not isinstance(gold, list):
        return None
    made = [_call(item) for item in gold]
    return None if None in made else tuple(call for call in made if call is not None)


def _call(item: Json) -> str | None:
    if not isinstance(item, dict):
        return None
    held = item["function"] if isinstance(item.get("function"), dict) else item
    name = held.get("name")
    arguments = held.get("arguments", held.get("kwargs", {}))
    if isinstance(arguments, str):
        arguments = _decoded(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    made = {"name": name, "arguments": arguments}
    return encode(made | {"requestor": "user"} if item.get("requestor") == "user" else made)


def _answers(gold: Json) -> tuple[str, ...] | None:
    if not isinstance(gold, dict):
        return _said(gold)
    found = [said for key in _ANSWERS if key in gold and (said := _said(gold[key] or [])) is not None]
    return tuple(text for said in found for text in said) if found else None


def _said(value: Json) -> tuple[str, ...] | None:
    """A text or number, or a list of them, as texts; null for anything else."""
    listed = value if isinstance(value, list) else [value]
    texts = list(_texts(listed))
    return tuple(texts) if len(texts) == len(listed) else None


def _texts(values: list[Json]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield encode(value)
