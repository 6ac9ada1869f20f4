"""tau2 Results: `{timestamp, info, tasks, simulations}`; also a bare simulation a line or an array of them.

A simulation is a record; what stands around the list is its document. The policy (of the simulation, else of the
environment) becomes the first, system, turn. A tool message's own `id` is the id of the call it answers; a message that
holds several results becomes several turns. The user simulator may call tools: such calls have the requestor `user`.

Success is reward >= 1. `max_steps` and `timeout` give the outcome truncated; an infrastructure error, or a simulation
without messages, a crash, whose raw reward stays in meta. Reward parts are the breakdown's, and for each other kind of
check that was made 1.0 if all of its checks were met, else 0.0. The gold is the task's `evaluation_criteria`; where a
simulation was checked against other actions than those of the task with its id (in published files many were), the gold
is what it was checked against, nothing else is taken from that task, and the defect is `task_disagrees`.

Not kept: `raw_data`, the provider's response, which repeats the message (its reasoning text is taken). The files
measured hold no tool schemas (`tool_defs` is null).
"""

from __future__ import annotations

from .json_text import Json, encode
from .messages import turn_of
from .model import ANYWHERE, Context, Match, RewardPart, Run, Sample, Turn, Unreadable
from .score import share
from .values import integer_of, json_or_null, number_of, text_of, time_of, tools_of

_TRUNCATED = frozenset({"max_steps", "timeout"})
_CRASHED = frozenset({"infrastructure_error", "unexpected_error"})
_CHECKS = {
    "action_checks": ("ACTION", "action_match"),
    "communicate_checks": ("COMMUNICATE", "met"),
    "nl_assertions": ("NL_ASSERTION", "met"),
    "env_assertions": ("ENV_ASSERTION", "met"),
}
_COLUMNS = frozenset({"id", "task_id", "trial", "messages", "policy", "duration", "reward_info", "agent_cost"})


class Tau2:
    """The adapter; it has no state."""

    name = "tau2"
    version = 2
    containers = ANYWHERE
    elements: str | None = "simulations"
    call_ids = True

    def recognise(self, sample: Sample) -> Match:
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
            raise Unreadable("a simulation without a `messages` list")
        notes, document = context.notes, context.document or {}
        info = _object(document, "info")
        environment = _object(info, "environment_info")
        turns = _turns(record["messages"], notes)
        policy = record.get("policy") or environment.get("policy")
        if turns and isinstance(policy, str):
            turns.insert(0, Turn("system", policy, "text"))
        run = Run(self.name, turns, record_id=text_of(record.get("id")), task_id=text_of(record.get("task_id")))
        run.domain = text_of(environment.get("domain_name"))
        run.trial = integer_of(record.get("trial"), notes, 31)
        run.agent = text_of(_object(info, "agent_info").get("implementation"))
        run.model = text_of(_object(info, "agent_info").get("llm"))
        run.tools_json = _tools(environment.get("tool_defs"), notes)
        run.duration = number_of(record.get("duration"), notes)
        run.cost = number_of(record.get("agent_cost"), notes)
        run.started_at = time_of(record.get("start_time"), notes)
        task = _tasks(document, context.shared).get(run.task_id or "", {})
        gold, checked = task.get("evaluation_criteria"), _checked(_object(record, "reward_info"))
        if task and checked is not None and _acts(checked) != _acts(gold):
            notes.add("task_disagrees")
            task, gold = {}, checked
        run.gold_json = json_or_null(gold)
        left = {key: item for key, item in record.items() if key not in _COLUMNS}
        _verdict(run, record, left, notes)
        about = {key: item for key, item in task.items() if key not in ("id", "evaluation_criteria")}
        if about:
            left["task"] = about
        run.meta_json = encode(left)
        return [run]


def _verdict(run: Run, record: dict[str, Json], left: dict[str, Json], notes: set[str]) -> None:
    reward_info = _object(record, "reward_info")
    ended = text_of(record.get("termination_reason"))
    if not run.turns or ended in _CRASHED:
        run.outcome = "crash"
        if "reward_info" in record:
            left["reward_info"] = record["reward_info"]
        return
    run.reward = number_of(reward_info.get("reward"), notes)
    run.success = None if run.reward is None else run.reward >= 1
    run.reward_parts = _parts(reward_info, notes)
    if ended in _TRUNCATED:
        run.outcome = "truncated"
    else:
        run.outcome = {True: "success", False: "failure", None: "unknown"}[run.success]
    checks = {key: item for key, item in reward_info.items() if key not in ("reward", "reward_breakdown")}
    if checks:
        left["reward_info"] = checks


def _parts(reward_info: dict[str, Json], notes: set[str]) -> list[RewardPart]:
    parts = {key: number_of(item, notes) for key, item in _object(reward_info, "reward_breakdown").items()}
    database = _object(reward_info, "db_check")
    if "DB" not in parts and "db_reward" in database:
        parts["DB"] = number_of(database["db_reward"], notes)
    for key, (name, met) in _CHECKS.items():
        checks = reward_info.get(key)
        if name not in parts and isinstance(checks, list) and checks and all(isinstance(item, dict) for item in checks):
            parts[name] = float(all(item.get(met) is True for item in checks))
    return [RewardPart(name, value) for name, value in parts.items()]


def _turns(messages: list[Json], notes: set[str]) -> list[Turn]:
    turns = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Unreadable("a message is not an object with a `role`")
        packed = message.get("tool_messages")
        for one in packed if isinstance(packed, list) else [message]:
            if not isinstance(one, dict):
                raise Unreadable("a tool message is not an object")
            turns.append(_turn({**one, "role": message["role"]}, notes))
    return turns


def _turn(message: dict[str, Json], notes: set[str]) -> Turn:
    held = {
        key: item for key, item in message.items() if key not in ("raw_data", "requestor", "error", "turn_idx", "id")
    }
    if message["role"] == "tool":
        held.setdefault("tool_call_id", message.get("id"))
        held.setdefault("is_error", message.get("error"))
    turn = turn_of(held, notes)
    entries = message.get("tool_calls")
    if isinstance(entries, list):
        for call, entry in zip(turn.calls[-len(entries) :], entries, strict=False):
            call.requestor = "user" if entry.get("requestor", message["role"]) == "user" else "agent"
    if turn.role == "assistant" and turn.reasoning is None:
        turn.reasoning = _reasoning(message.get("raw_data"))
    return turn


def _reasoning(raw: Json) -> str | None:
    """The reasoning text in a provider's raw response."""
    if not isinstance(raw, dict):
        return None
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else raw
    for holder in (_object(first, "message"), raw):
        if isinstance(holder.get("reasoning_content"), str):
            return str(holder["reasoning_content"])
    return None


def _tools(value: Json, notes: set[str]) -> str | None:
    return tools_of(list(value.values()) if isinstance(value, dict) else value, notes)


def _tasks(document: dict[str, Json], shared: dict[str, dict[str, dict[str, Json]]]) -> dict[str, dict[str, Json]]:
    """The document's tasks by id, indexed once a file."""
    if "tasks" not in shared:
        tasks = document.get("tasks")
        listed = tasks if isinstance(tasks, list) else []
        shared["tasks"] = {text_of(task.get("id")) or "": task for task in listed if isinstance(task, dict)}
    return shared["tasks"]


def _checked(reward_info: dict[str, Json]) -> dict[str, Json] | None:
    """What a simulation was checked against, as `evaluation_criteria` has it; None where its actions were not."""
    found: dict[str, Json] = {}
    for key, name, inner in (
        ("action_checks", "actions", "action"),
        ("communicate_checks", "communicate_info", "info"),
    ):
        checks = reward_info.get(key)
        if isinstance(checks, list) and all(isinstance(check, dict) and inner in check for check in checks):
            found[name] = [check[inner] for check in checks]
    return found if "actions" in found else None


def _acts(criteria: Json) -> list[tuple[Json, Json]]:
    """Names and arguments of the actions."""
    actions = criteria.get("actions") if isinstance(criteria, dict) else None
    listed = actions if isinstance(actions, list) else []
    return [(action.get("name"), action.get("arguments")) for action in listed if isinstance(action, dict)]


def _object(holder: dict[str, Json], key: str) -> dict[str, Json]:
    held = holder.get(key)
    return held if isinstance(held, dict) else {}


def _score(record: Json) -> tuple[float, str]:
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        return 0.0, "no `simulations` list, and no `messages` list in its records"
    wanted = ("termination_reason", "reward_info", "task_id", "trial")
    missing = [key for key in wanted if key not in record]
    score = 1.0 - 0.25 * len(missing)
    return score, "a simulation" + (f" without {', '.join(missing)}" if missing else "")


TAU2 = Tau2()
