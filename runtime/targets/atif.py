"""`atif`: one trajectory of the Agent Trajectory Interchange Format a row, version 1.7.

Its rules: steps of system, user and agent, numbered from 1; calls stand in the agent's step with their arguments as
objects, and their results in the `observation` of the same step; unknown members are forbidden.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks.columns import Col
from curatec.runtime.targets.target import Conversation, Function, Sink, Target, Values, binary

SCHEMA = "ATIF-v1.7"
ABOUT = (
    "Results stand in the step of their calls, by the id of the call. An assistant message that is not trained has "
    "`is_copied_context`, which keeps a step out of training wherever the format is read. Reward, success, outcome, "
    "task and domain stand under `extra`: the format has no place for them. Content that is null is an empty text. "
    "Refused: arguments that are not an object, results that come after other messages, loss weights other than 0 "
    "and 1."
)
COLUMNS: dict[Sink, tuple[Col, ...]] = {
    "sft": (
        Col("schema_version", "text", "version of the format"),
        Col("session_id", "text", "id of the session, else of the run"),
        Col("trajectory_id", "text", "id of the run"),
        Col("agent", "json", "name, version and model of the agent, and the tools shown"),
        Col("steps", "objects", "the conversation"),
        Col("extra", "json", "verdict and task of the run"),
    )
}
_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
_EXTRA = ("task_id", "domain", "trial", "reward", "success", "outcome", "license")


def write(sink: Sink, row: Conversation) -> Values | str:
    refused = _fault(row) or binary(row.weights)
    if refused is not None:
        return refused
    steps: list[dict[str, Any]] = []
    for message, weight in row.trained:
        if message.role == "tool":
            _answer(steps[-1], message)
        else:
            steps.append(_step(len(steps) + 1, message, weight))
    about = row.about
    agent: dict[str, Any] = {"name": about.get("agent") or "unknown", "version": "unknown"}
    if about.get("model"):
        agent["model_name"] = about["model"]
    if row.tools:
        agent["tool_definitions"] = [orjson.Fragment(tool) for tool in row.tools]
    extra = {name: about[name] for name in _EXTRA if about.get(name) is not None}
    return {
        "schema_version": SCHEMA,
        "session_id": about.get("session_id") or about.get("id"),
        "trajectory_id": about.get("id"),
        "agent": orjson.dumps(agent).decode(),
        "steps": [orjson.dumps(step).decode() for step in steps],
        "extra": orjson.dumps(extra).decode() if extra else None,
    }


def _fault(row: Conversation) -> str | None:
    """The format has its own order: calls may stay unanswered, system texts may stand anywhere."""
    if not row.messages:
        return "no_turns"
    problem = next((message.problem for message in row.messages if message.problem), None)
    if problem is not None:
        return problem
    open_ids: set[str] = set()
    known: set[str] = set()
    for message in row.messages:
        if message.role != "tool":
            open_ids = {call.id for call in message.calls}
            known |= open_ids
        elif message.call_id not in open_ids:
            return "late_result" if message.call_id in known else "result_without_call"
    return None


def _step(number: int, message: m.Message, weight: float) -> dict[str, Any]:
    step: dict[str, Any] = {"step_id": number, "source": _SOURCES[message.role], "message": message.content or ""}
    if message.role != "assistant":
        return step
    if message.reasoning:
        step["reasoning_content"] = message.reasoning
    if message.calls:
        step["tool_calls"] = [_call(call) for call in message.calls]
    if not weight:
        step["is_copied_context"] = True
    return step


def _call(call: m.Call) -> dict[str, Any]:
    function = msgspec.json.decode(call.function, type=Function)
    arguments = orjson.Fragment(bytes(function.arguments))
    return {"tool_call_id": call.id, "function_name": function.name, "arguments": arguments}


def _answer(step: dict[str, Any], message: m.Message) -> None:
    results = step.setdefault("observation", {"results": []})["results"]
    results.append({"source_call_id": message.call_id, "content": message.content or ""})


ATIF = Target("atif", "trl", ABOUT, COLUMNS, write, strict=True)
