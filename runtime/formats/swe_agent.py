"""SWE-agent `.traj`: `{environment, history, trajectory, info, replay_config}`; some files hold only `history`.

`history` is what the model saw and is taken as it is. `trajectory` tells the same run again; only each step's `state`
and `execution_time` are kept, on the turn they belong to. A demonstration (`is_demo`) has loss weight 0. In text mode
the command stands in the assistant's text and the observation in a user turn, whose actor is `environment`.

`submitted` says that the agent handed in an answer, not that it was right: success is null. Limits on cost, context or
time give the outcome truncated, faults of the environment or the API a crash, giving up a failure.

Not kept: `thought` and `action` where they repeat the content, and the prompts inside `trajectory`. There are no tool
schemas.
"""

from __future__ import annotations

from .json_text import Json, encode
from .messages import turn_of
from .model import ANYWHERE, Context, Match, Run, Sample, Turn, Unreadable
from .score import is_message_list, share
from .values import decode_text, integer_of, number_of, object_json, text_of, tools_of

_TRUNCATED = ("exit_cost", "exit_context", "exit_total_execution_time", "exit_command_timeout", "exit_total_cost")
_CRASHED = ("exit_api", "exit_environment_error", "exit_error")
_FAILED = ("exit_forfeit", "exit_format")
_MARKS = ("message_type", "agent", "is_demo", "thought", "action", "tool_call_ids")


class SweAgent:
    """The adapter; it has no state."""

    name = "swe_agent"
    version = 1
    containers = ANYWHERE
    elements: str | None = None
    call_ids = True

    def recognise(self, sample: Sample) -> Match:
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        if not isinstance(record, dict) or not isinstance(record.get("history"), list):
            raise Unreadable("no `history` list")
        notes = context.notes
        turns = _turns(record["history"], notes)
        steps = record.get("trajectory")
        _add_states(turns, record["history"], steps if isinstance(steps, list) else [])
        run = Run(self.name, turns)
        left = {key: item for key, item in record.items() if key not in ("history", "trajectory")}
        _take_config(run, left, notes)
        info = record.get("info")
        if isinstance(info, dict):
            _take_info(run, info, notes)
        run.meta_json = encode(left)
        return [run]


def _turns(history: list[Json], notes: set[str]) -> list[Turn]:
    turns: list[Turn] = []
    for index, message in enumerate(history):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Unreadable(f"history entry {index + 1} is not an object with a `role`")
        turn = _turn(message, notes)
        acted = any(earlier.role == "assistant" for earlier in turns)
        if turn.role == "user" and acted and message.get("message_type", "observation") == "observation":
            turn.actor = "environment"
        turns.append(turn)
    return turns


def _turn(message: dict[str, Json], notes: set[str]) -> Turn:
    held = dict(message)
    ids = held.pop("tool_call_ids", None)
    if isinstance(ids, list) and ids:
        held["tool_call_id"] = ids[0]
        if len(ids) > 1:
            held["tool_call_ids"] = ids
            notes.add("packed_results")
    demo = held.pop("is_demo", None) is True
    for key in ("thought", "action"):
        if isinstance(held.get(key), str) and held[key].strip() in str(message.get("content")):
            del held[key]
    agent = held.pop("agent", None)
    turn = turn_of(held, notes)
    if turn.role == "assistant" and isinstance(agent, str):
        turn.actor = agent
    if demo:
        turn.loss_weight = 0.0
        turn.extra_json = object_json({**_extra(turn), "is_demo": True})
    return turn


def _extra(turn: Turn) -> dict[str, Json]:
    value = decode_text(turn.extra_json)[0] if turn.extra_json else {}
    return value if isinstance(value, dict) else {}


def _add_states(turns: list[Turn], history: list[Json], steps: list[Json]) -> None:
    """Adds a step's state (an object, or its JSON text) and time to the assistant turn with the step's action."""
    waiting = [step for step in steps if isinstance(step, dict)]
    for turn, message in zip(turns, history, strict=True):
        if not waiting or turn.role != "assistant" or message.get("is_demo") is True:
            continue
        if "action" in message:
            same = next((k for k, step in enumerate(waiting) if step.get("action") == message["action"]), None)
            if same is None:
                continue
            del waiting[:same]  # a step that the history left out, such as a last `submit`
        step = waiting.pop(0)
        state = step.get("state")
        if isinstance(state, str):
            parsed = decode_text(state)[0]
            state = parsed if isinstance(parsed, dict) else state
        turn.extra_json = object_json({**_extra(turn), "state": state, "execution_time": step.get("execution_time")})


def _take_config(run: Run, left: dict[str, Json], notes: set[str]) -> None:
    """What `replay_config` (an object, or its JSON text) says about model, task and tools."""
    config = left.get("replay_config")
    if isinstance(config, str):
        config = decode_text(config)[0]
        if isinstance(config, dict):
            left["replay_config"] = config
    agent = _object(config, "agent")
    run.model = text_of(_object(agent, "model").get("name"))
    run.task_id = text_of(_object(config, "problem_statement").get("id"))
    run.tools_json = tools_of(_object(agent, "tools").get("tools"), notes)


def _take_info(run: Run, info: dict[str, Json], notes: set[str]) -> None:
    status = info.get("exit_status")
    if isinstance(status, str):
        for names, outcome in ((_TRUNCATED, "truncated"), (_CRASHED, "crash"), (_FAILED, "failure")):
            if any(name in status for name in names):
                run.outcome = outcome
                run.error = status
                run.success = False if outcome == "failure" else None
                break
    stats = _object(info, "model_stats")
    run.cost = number_of(stats.get("instance_cost"), notes)
    run.prompt_tokens = integer_of(stats.get("tokens_sent"), notes)
    run.completion_tokens = integer_of(stats.get("tokens_received"), notes)


def _object(holder: Json, key: str) -> dict[str, Json]:
    held = holder.get(key) if isinstance(holder, dict) else None
    return held if isinstance(held, dict) else {}


def _score(record: Json) -> tuple[float, str]:
    if not isinstance(record, dict) or not isinstance(record.get("history"), list):
        return 0.0, "no `history` list"
    history = record["history"]
    if not history or not is_message_list(history):
        return 0.2, "`history` holds entries without a `role`"
    marked = any(key in message for message in history for key in _MARKS)
    if isinstance(record.get("trajectory"), list) and "info" in record:
        return 1.0, "has `history`, `trajectory` and `info`"
    return (0.8, "a `history` with agent marks") if marked else (0.3, "a `history` without agent marks")


SWE_AGENT = SweAgent()
