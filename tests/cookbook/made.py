"""Small corpora in the published layouts, for compiles where the collected runs are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TASKS = 24
INSTANCES = ("marshmallow-code__marshmallow-1867", "pydicom__pydicom-1458", "humanevalfix-python-0", "eps")


def make(runs: Path) -> None:
    """Everything that the cookbook's specs read below `runs/`."""
    _write(runs / "tau_bench" / "a" / "gpt-4o-airline.json", [_tau(t, n) for t in range(TASKS) for n in range(4)])
    _write(runs / "tau_bench" / "b" / "retail-qwen2.5-7b.json", [_tau(t, 0) for t in range(0, TASKS, 7)])
    _write(runs / "tau_bench" / "b" / "retail-assertions.json", [_tau(t, 0, system=False) for t in range(6)])
    _write(runs / "tau2_bench" / "c" / "trajectories" / "airline.json", _tau2())
    chats = runs / "llamafactory_sharegpt" / "data"
    _write(chats / "glaive_toolcall_en_demo.json", [_chat(n) for n in range(60)])
    lines = "".join(json.dumps(_reasoned(n)) + "\n" for n in range(10))
    (chats / "reason_tool_use_demo_50.jsonl").write_text(lines, encoding="utf-8")
    for instance in INSTANCES:
        for n in range(4):
            _write(runs / "swe_agent" / f"{instance}-{n}" / f"{instance}.traj", _swe(instance, n))


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def _call(name: str, arguments: Json, id_: str) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def _tau(task: int, trial: int, *, system: bool = True) -> Json:
    """A task is solved in `task % 5` of its trials, after a failed call where the trial is odd; one in 24 crashed."""
    good = trial < task % 5
    actions = [{"name": "cancel", "kwargs": {"flight": f"F{task}"}}]
    instruction = f"You are guest {task} and you want to cancel flight F{task} because of the weather in town {task}."
    info: Json = {"task": {"user_id": f"u{task}", "actions": actions, "instruction": instruction, "outputs": []}}
    if (task, trial) in {(4, 3), (9, 3), (14, 3), (19, 3)}:
        return {"task_id": task, "reward": 0.0, "info": {"error": "no answer"}, "traj": [], "trial": trial}
    traj: list[Json] = [{"role": "system", "content": "Cancel what may be cancelled."}] if system else []
    traj += [
        {"role": "user", "content": f"Hello, please cancel flight F{task}. Attempt {trial}."},
        {"role": "assistant", "content": f"Which number has booking {task}?"},
        {"role": "user", "content": f"It is B{task}{trial}."},
    ]
    if trial % 2:
        traj += [_call("cancel", {"flight": "F"}, "c0")]
        traj += [{"role": "tool", "tool_call_id": "c0", "name": "cancel", "content": "Error: no such flight"}]
    named = {"flight": f"F{task}" if good else "F0"}
    traj += [
        _call("cancel", named, "c1"),
        {"role": "tool", "tool_call_id": "c1", "name": "cancel", "content": "cancelled"},
        {"role": "assistant", "content": f"Flight F{task} is cancelled, booking B{task}{trial}."},
        {"role": "user", "content": "###STOP###"},
    ]
    return {"task_id": task, "reward": float(good), "info": info, "traj": traj, "trial": trial}


def _tau2() -> Json:
    tasks, simulations = [], []
    for number in range(10):
        asked = f"You ask whether rule number {number} of the house allows a dog of {number + 3} kilos in the cabin."
        known = f"You are guest {number}."
        told = {"domain": "airline", "reason_for_call": asked, "known_info": known, "task_instructions": "Be brief."}
        criteria = {"actions": [], "communicate_info": [], "nl_assertions": []}
        tasks.append({"id": str(number), "user_scenario": {"instructions": told}, "evaluation_criteria": criteria})
        messages = [
            {"role": "assistant", "content": "Hi! How can I help?"},
            {"role": "user", "content": f"May my dog number {number} come along?"},
            {"role": "assistant", "content": f"It may, by rule {number}."},
            {"role": "user", "content": "###STOP###"},
        ]
        reward = {"reward": float(number % 3 > 0), "reward_breakdown": {"DB": 1.0}}
        simulations.append(
            {"id": f"s{number}", "task_id": str(number), "trial": 0, "messages": messages, "reward_info": reward}
            | {"termination_reason": "user_stop", "duration": 1.0, "start_time": "2026-01-01T00:00:00"}
        )
    environment = {"domain_name": "airline", "policy": "Be helpful.", "tool_defs": None}
    info = {"environment_info": environment, "agent_info": {"implementation": "llm_agent", "llm": "m"}}
    return {"timestamp": "2026-01-01", "info": info, "tasks": tasks, "simulations": simulations}


def _schema(name: str) -> Json:
    return {"name": name, "description": f"{name} it", "parameters": {"type": "object", "properties": {}}}


def _chat(number: int) -> Json:
    """Every third has no tools, every fifth ends on a call, every seventh tells the one before it again."""
    kind = number - 1 if number and number % 7 == 0 else number
    said = [{"from": "human", "value": f"Please work out the {['sum', 'product', 'ratio'][kind % 3]} for case {kind}."}]
    called = {"from": "function_call", "value": json.dumps({"name": f"tool_{kind % 6}", "arguments": {"case": kind}})}
    if kind % 3 and kind % 5 == 0:
        return {"conversations": [*said, called], "tools": json.dumps([_schema(f"tool_{kind % 6}")])}
    if kind % 3:
        said += [called, {"from": "observation", "value": json.dumps({"value": kind * 7})}]
    said.append({"from": "gpt", "value": f"For case {kind} it is {kind * 7}, which I have checked twice for you."})
    tools = [_schema(f"tool_{kind % 6}"), _schema(f"tool_{(kind + 1) % 6}")] if kind % 3 else []
    return {"conversations": said, "tools": json.dumps(tools)}


def _reasoned(number: int) -> Json:
    def part(type_: str, value: str) -> Json:
        return {"type": type_, "value": value}

    messages = [
        {"role": "user", "content": [part("text", f"Is number {number} even?")]},
        {"role": "assistant", "content": [part("reasoning", "No tool says so."), part("text", f"{number % 2 == 0}")]},
    ]
    tools = [{"type": "function", "function": _schema(name)} for name in ("weather", "clock")]
    return {"messages": messages, "tools": json.dumps(tools)}


def _swe(instance: str, number: int) -> Json:
    """An odd run calls functions, an even one writes commands; the last of an instance gave up."""
    history: list[Json] = [
        {"role": "system", "content": f"You mend programs, in manner {number}.", "agent": "main"},
        {"role": "user", "content": f"Demonstration: open a file, then {instance} is solved.", "is_demo": True},
        {"role": "user", "content": f"Please solve {instance}.", "agent": "main"},
    ]
    for step in range(12 + number):
        seen = f"line of file {step} in {instance}, seen by run {number}; " * 40
        if number % 2:
            call = _call("open", {"file": f"{step}.py"}, f"c{step}")
            history.append({**call, "content": f"I open file {step}.", "agent": "main", "message_type": "action"})
            history.append({"role": "tool", "content": seen, "tool_call_ids": [f"c{step}"], "agent": "main"})
        else:
            history.append({"role": "assistant", "content": f"I open file {step}.\n```\nopen {step}.py\n```"})
            history.append({"role": "user", "content": seen, "message_type": "observation"})
    history.append({"role": "assistant", "content": "I hand it in.\n```\nsubmit\n```"})
    info = {"exit_status": "submitted" if number < 3 else "exit_cost", "submission": "diff"}
    return {"environment": "main", "trajectory": [], "history": history, "info": info}
