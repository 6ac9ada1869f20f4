"""ATIF 1.x (Agent Trajectory Interchange Format): one JSON object a trajectory, `steps` of system, user and agent.

The results of a step's `observation` become turns after the step: tool turns where the step made calls or the result
names one, else a user turn of the actor `environment`. `is_copied_context` gives loss weight 0. A trajectory in
`subagent_trajectories` is a run of its own, with `parent_id` and `depth`.

The format has no reward, outcome, task id or loss weight. Where the record's `extra` names them as `openai` would, they
are taken from there; all of `extra` stays in meta. Not kept as columns: token ids and log
probabilities of `metrics`, which stay in the turn's extra.
"""

from __future__ import annotations

from .content import content_of
from .json_text import Json, encode
from .model import ANYWHERE, Context, Match, Role, Run, Sample, Turn, Unreadable
from .openai import take_facts
from .score import share
from .values import call_of, integer_of, number_of, object_json, text_of, time_of, tools_of

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_ACTOR = {"user": "user", "assistant": "agent"}
_STEP = frozenset(
    {"step_id", "timestamp", "source", "message", "model_name", "reasoning_content", "tool_calls", "observation"}
) | {"is_copied_context"}
_EXTRA = ("task_id", "domain", "trial", "license", "reward", "success", "outcome")
_RUN = frozenset({"session_id", "trajectory_id", "agent", "steps", "subagent_trajectories"})


class Atif:
    """The adapter; it has no state."""

    name = "atif"
    version = 2
    containers = ANYWHERE
    elements: str | None = None
    call_ids = True

    def recognise(self, sample: Sample) -> Match:
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        return _runs(record, context.notes, None, 0)


def _runs(record: Json, notes: set[str], parent: str | None, depth: int) -> list[Run]:
    if not isinstance(record, dict) or not isinstance(record.get("steps"), list):
        raise Unreadable("no `steps` list")
    turns: list[Turn] = []
    for index, step in enumerate(record["steps"]):
        if not isinstance(step, dict) or not isinstance(step.get("source"), str):
            raise Unreadable(f"step {index + 1} is not an object with a `source`")
        turns.extend(_turns(step, notes))
    agent = record["agent"] if isinstance(record.get("agent"), dict) else {}
    run = Run("atif", turns, parent_id=parent, depth=depth)
    run.record_id = text_of(record.get("trajectory_id")) or text_of(record.get("session_id"))
    run.session_id = text_of(record.get("session_id"))
    run.agent = text_of(agent.get("name"))
    run.model = text_of(agent.get("model_name")) or next((turn.model for turn in turns if turn.model), None)
    run.tools_json = tools_of(agent.get("tool_definitions"), notes)
    run.started_at = next((turn.ts for turn in turns if turn.ts is not None), None)
    totals = record["final_metrics"] if isinstance(record.get("final_metrics"), dict) else {}
    run.cost = number_of(totals.get("total_cost_usd"), notes)
    run.prompt_tokens = integer_of(totals.get("total_prompt_tokens"), notes)
    run.completion_tokens = integer_of(totals.get("total_completion_tokens"), notes)
    _take_extra(run, record.get("extra"), notes)
    run.meta_json = encode(_meta(record, agent))
    found = [run]
    children = record.get("subagent_trajectories")
    for child in children if isinstance(children, list) else []:
        found.extend(_runs(child, notes, run.record_id, depth + 1))
    return found


def _take_extra(run: Run, extra: Json, notes: set[str]) -> None:
    """The verdict and the task of a run."""
    if not isinstance(extra, dict):
        return
    said = Run("atif", run.turns)
    take_facts(said, {key: extra[key] for key in _EXTRA if key in extra}, notes, frozenset())
    for key in _EXTRA:
        setattr(run, key, getattr(said, key))


def _meta(record: dict[str, Json], agent: dict[str, Json]) -> dict[str, Json]:
    meta = {key: item for key, item in record.items() if key not in _RUN}
    about = {key: item for key, item in agent.items() if key not in ("name", "model_name", "tool_definitions")}
    return {**meta, "agent": about} if about else meta


def _turns(step: dict[str, Json], notes: set[str]) -> list[Turn]:
    source = step["source"]
    role = _ROLES.get(source)
    if role is None:
        notes.add("unknown_role")
        role = "event"
    content = content_of(step, "message", notes)
    turn = Turn(role, content.text, content.kind, _ACTOR.get(role, source if role == "event" else None), content.parts)
    turn.reasoning = text_of(step.get("reasoning_content"))
    turn.ts = time_of(step.get("timestamp"), notes)
    turn.model = text_of(step.get("model_name"))
    turn.copied_context = step.get("is_copied_context") is True
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if not isinstance(call, dict):
            raise Unreadable("a tool call is not an object")
        turn.calls.append(call_of(call.get("function_name"), call.get("arguments"), call.get("tool_call_id"), notes))
    metrics = step.get("metrics")
    if isinstance(metrics, dict):
        turn.prompt_tokens = integer_of(metrics.get("prompt_tokens"), notes)
        turn.completion_tokens = integer_of(metrics.get("completion_tokens"), notes)
    turn.extra_json = object_json({key: item for key, item in step.items() if key not in _STEP})
    return [turn, *_results(step, turn, notes)]


def _results(step: dict[str, Json], turn: Turn, notes: set[str]) -> list[Turn]:
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    turns = []
    for result in results if isinstance(results, list) else []:
        if not isinstance(result, dict):
            raise Unreadable("an observation result is not an object")
        content = content_of(result, "content", notes)
        call_id = text_of(result.get("source_call_id"))
        role: Role = "tool" if call_id is not None or turn.calls else "user"
        one = Turn(role, content.text, content.kind, "environment", content.parts, tool_call_id=call_id, ts=turn.ts)
        one.copied_context = turn.copied_context
        one.extra_json = object_json({k: v for k, v in result.items() if k not in ("source_call_id", "content")})
        turns.append(one)
    return turns


def _score(record: Json) -> tuple[float, str]:
    if not isinstance(record, dict) or not isinstance(record.get("steps"), list):
        return 0.0, "no `steps` list"
    version = record.get("schema_version")
    if isinstance(version, str) and version.upper().startswith("ATIF"):
        return 1.0, f"says {version}"
    steps = record["steps"]
    if steps and all(isinstance(step, dict) and "source" in step and "message" in step for step in steps):
        return 0.8, "has `steps` with a source and a message"
    return 0.2, "`steps` without a source and a message"


ATIF = Atif()
