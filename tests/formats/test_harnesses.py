"""The formats that agent harnesses write: tau-bench, tau2, SWE-agent, ATIF."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import USER, Read, assistant, call, lines, result

Reader = Callable[..., Read]


def tau(traj: list[Any], reward: float = 1.0, **info: Any) -> dict[str, Any]:
    return {"task_id": 3, "reward": reward, "info": info, "traj": traj, "trial": 1}


def test_tau_bench(read: Reader) -> None:
    task = {"user_id": "u", "actions": [{"name": "f", "kwargs": {"x": 1.0}}], "instruction": "do", "outputs": ["9"]}
    info = {
        "task": task,
        "reward_info": {"reward": 1.0, "info": {"r_actions": 1.0, "gt_data_hash": "h"}},
        "user_cost": 0.5,
    }
    run = read([tau([USER, {"role": "assistant", "content": "x"}], **info)]).run
    assert (run["format"], run["task_id"], run["trial"], run["domain"]) == ("tau_bench", "3", 1, None)
    assert (run["reward"], run["success"], run["outcome"]) == (1.0, True, "success")
    assert run["gold_json"] == '{"actions":[{"name":"f","kwargs":{"x":1.0}}],"outputs":["9"]}'
    assert run["reward_parts"] == [{"name": "r_actions", "value": 1.0}]
    assert json.loads(run["meta_json"])["info"]["task"] == {"user_id": "u", "instruction": "do"}


@pytest.mark.parametrize(("reward", "success"), [(0.0, False), (0.99, False), (1.0, True), (1.5, True)])
def test_tau_success_is_a_reward_of_one(read: Reader, reward: float, success: bool) -> None:
    assert read([tau([USER], reward)]).run["success"] is success


def test_quirk_crash_rows_without_turns(read: Reader) -> None:
    run = read([tau([], 0.0, error="boom", traceback="tb"), tau([USER])]).runs[0]
    assert (run["reward"], run["success"], run["outcome"], run["error"]) == (None, None, "crash", "boom")
    assert json.loads(run["meta_json"]) == {"reward": 0.0, "info": {"traceback": "tb"}}
    assert run["defects"] == ["empty_run"]


def simulation(messages: list[Any], **members: Any) -> dict[str, Any]:
    base = {
        "id": "s1",
        "task_id": "7",
        "trial": 0,
        "termination_reason": "user_stop",
        "duration": 2.5,
        "messages": messages,
    }
    reward = {
        "reward": 1.0,
        "reward_breakdown": {"DB": 1.0},
        "action_checks": [{"action_match": True}, {"action_match": False}],
    }
    return {**base, "reward_info": reward, "start_time": "2025-01-01T00:00:00.5", **members}


def results(*simulations: Any) -> dict[str, Any]:
    info = {"environment_info": {"domain_name": "d", "policy": "rules", "tool_defs": None}, "agent_info": {"llm": "m"}}
    tasks = [{"id": "7", "evaluation_criteria": {"actions": [{"name": "f", "arguments": {"x": 1.0}}]}, "note": "n"}]
    return {"timestamp": "t", "info": info, "tasks": tasks, "simulations": list(simulations)}


def test_tau2(read: Reader) -> None:
    run = read(results(simulation([{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "x"}]))).run
    assert [(turn["role"], turn["content"]) for turn in run["turns"]] == [
        ("system", "rules"),
        ("assistant", "Hi"),
        ("user", "x"),
    ]
    assert (run["domain"], run["model"], run["task_id"], run["record_id"]) == ("d", "m", "7", "s1")
    assert (run["reward"], run["success"], run["outcome"], run["duration"]) == (1.0, True, "success", 2.5)
    assert run["reward_parts"] == [{"name": "DB", "value": 1.0}, {"name": "ACTION", "value": 0.0}]
    assert run["gold_json"] == '{"actions":[{"name":"f","arguments":{"x":1.0}}]}'
    assert json.loads(run["meta_json"])["task"] == {"note": "n"}
    assert run["started_at"].isoformat() == "2025-01-01T00:00:00.500000+00:00"


def test_quirk_a_simulation_was_judged_by_another_task(read: Reader) -> None:
    """In published files simulations name one task and were checked against another."""

    def judged(name: str, x: float) -> Any:
        checks = [{"action": {"action_id": "1", "name": name, "arguments": {"x": x}}, "action_match": True}]
        told = {"reward": 1.0, "action_checks": checks, "communicate_checks": [{"info": "9", "met": True}]}
        return read(results(simulation([{"role": "assistant", "content": "Hi"}], reward_info=told))).run

    right, wrong, other = judged("f", 1.0), judged("f", 2.0), judged("g", 1.0)
    assert right["defects"] == []
    assert json.loads(right["gold_json"]) == {"actions": [{"name": "f", "arguments": {"x": 1.0}}]}
    assert json.loads(right["meta_json"])["task"] == {"note": "n"}
    for run, name, x in ((wrong, "f", 2.0), (other, "g", 1.0)):
        assert run["defects"] == ["task_disagrees"]
        [action] = json.loads(run["gold_json"])["actions"]
        assert (action["name"], action["arguments"]) == (name, {"x": x})
        assert json.loads(run["gold_json"])["communicate_info"] == ["9"]
        assert "task" not in json.loads(run["meta_json"])


def test_quirk_the_user_simulator_calls_tools(read: Reader) -> None:
    def flat(id: str, requestor: str) -> dict[str, Any]:
        return {"id": id, "name": "f", "arguments": {"x": 1.0}, "requestor": requestor}

    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [flat("a", "assistant")],
            "raw_data": {"message": {"reasoning_content": "why"}},
        },
        {"id": "a", "role": "tool", "content": "1", "requestor": "assistant", "error": True},
        {"role": "user", "content": "", "tool_calls": [flat("b", "user"), flat("c", "user")]},
        {
            "role": "tool",
            "tool_messages": [{"id": "c", "role": "tool", "content": "3"}, {"id": "b", "role": "tool", "content": "2"}],
        },
        {"role": "assistant", "content": "ok", "tool_calls": None},
    ]
    turns = read(results(simulation(messages))).turns
    assert [call["requestor"] for turn in turns for call in turn["calls"]] == ["agent", "user", "user"]
    assert turns[1]["calls"][0]["args_json"] == '{"x":1.0}'
    assert [(turn["call_turn"], turn["call_index"]) for turn in turns if turn["role"] == "tool"] == [
        (1, 0),
        (3, 1),
        (3, 0),
    ]
    assert (turns[2]["is_error"], turns[1]["reasoning"], turns[1]["extra_json"]) == (True, "why", None)


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({"termination_reason": "max_steps", "reward_info": {"reward": 0.0}}, ("truncated", 0.0, False)),
        ({"termination_reason": "infrastructure_error"}, ("crash", None, None)),
        ({"messages": []}, ("crash", None, None)),
        ({"reward_info": None}, ("unknown", None, None)),
    ],
)
def test_tau2_outcomes(read: Reader, members: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    run = read(results({**simulation([USER]), **members})).run
    assert (run["outcome"], run["reward"], run["success"]) == wanted
    if wanted[0] == "crash":
        assert json.loads(run["meta_json"])["reward_info"]["reward"] == 1.0


def test_tau2_simulations_as_lines(read: Reader) -> None:
    runs = read(lines(simulation([USER], policy="own"), simulation([USER]))).runs
    assert [len(run["turns"]) for run in runs] == [2, 1]
    assert runs[0]["turns"][0]["content"] == "own"


def history(*messages: Any, **members: Any) -> dict[str, Any]:
    return {"environment": "main", "trajectory": [], "history": list(messages), "info": {}, **members}


def test_quirk_a_demonstration_is_not_trained_on(read: Reader) -> None:
    demo = {"role": "user", "content": "like this", "is_demo": True, "agent": "main"}
    turns = read(history({"role": "system", "content": "s"}, demo, USER), name="x.traj").turns
    assert [turn["loss_weight"] for turn in turns] == [1.0, 0.0, 1.0]
    assert json.loads(turns[1]["extra_json"]) == {"is_demo": True}


def test_swe_agent_tool_calls_states_and_crlf(read: Reader) -> None:
    acted = {
        "role": "assistant",
        "content": "Go.",
        "thought": "Go.",
        "action": "ls",
        "agent": "main",
        "tool_calls": [call('{"a": 1}', id="k")],
    }
    seen = {"role": "tool", "content": "a\r\nb", "tool_call_ids": ["k"], "message_type": "observation"}
    steps = [{"action": "ls", "state": '{"open_file": "n/a"}', "execution_time": 0.50}]
    found = read(history({"role": "user", "content": "fix"}, acted, seen, trajectory=steps))
    assert found.call["result_turn"] == 2
    assert found.turns[2]["content"] == "a\r\nb"
    assert json.loads(found.turns[1]["extra_json"]) == {
        "action": "ls",
        "state": {"open_file": "n/a"},
        "execution_time": 0.5,
    }
    assert (found.turns[0]["actor"], found.turns[1]["actor"]) == ("user", "main")


def test_swe_agent_text_mode(read: Reader) -> None:
    acted = {"role": "assistant", "content": "Go.\n```\nls\n```", "thought": "Go.\n", "action": "ls\n"}
    found = read(history({"role": "user", "content": "fix"}, acted, {"role": "user", "content": "a"}))
    assert [turn["actor"] for turn in found.turns] == ["user", "agent", "environment"]
    assert found.turns[1]["extra_json"] is None


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("submitted", "unknown"),
        ("submitted (exit_cost)", "truncated"),
        ("exit_context", "truncated"),
        ("exit_environment_error", "crash"),
        ("exit_forfeit", "failure"),
        (None, "unknown"),
    ],
)
def test_swe_agent_exit_status(read: Reader, status: str | None, outcome: str) -> None:
    info = {"exit_status": status, "model_stats": {"instance_cost": 0.5, "tokens_sent": 10, "tokens_received": 2}}
    run = read(history(USER, info=info)).run
    assert (run["outcome"], run["cost"], run["prompt_tokens"], run["completion_tokens"]) == (outcome, 0.5, 10, 2)
    assert run["success"] is (False if outcome == "failure" else None)


def test_swe_agent_history_only_and_config_as_text(read: Reader) -> None:
    assert read({"history": [{"role": "user", "content": "x", "agent": "a"}]}).run["format"] == "swe_agent"
    config = json.dumps({"agent": {"model": {"name": "m"}}, "problem_statement": {"id": "i"}})
    run = read(history(USER, replay_config=config), name="b.json").run
    assert (run["model"], run["task_id"]) == ("m", "i")


def step(number: int, source: str, message: Any, **members: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message, **members}


def test_atif(read: Reader) -> None:
    calls = [
        {"tool_call_id": "a", "function_name": "f", "arguments": {"x": 1.0}},
        {"tool_call_id": "b", "function_name": "g", "arguments": {}},
    ]
    seen = {
        "results": [
            {"source_call_id": "b", "content": "2"},
            {"source_call_id": "a", "content": [{"type": "text", "text": "1"}]},
        ]
    }
    metrics = {"prompt_tokens": 5, "completion_tokens": 3}
    steps = [
        step(1, "system", "rules"),
        step(2, "user", "go", timestamp="2025-01-01T00:00:00Z"),
        step(3, "agent", "", is_copied_context=True),
        step(
            4, "agent", "", tool_calls=calls, observation=seen, metrics=metrics, reasoning_content="why", model_name="m"
        ),
        step(5, "agent", "run it", observation={"results": [{"content": "ran"}]}),
    ]
    child = {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": "c",
        "agent": {"name": "sub", "version": "1"},
        "steps": [step(1, "user", "x")],
    }
    record = {
        "schema_version": "ATIF-v1.7", "trajectory_id": "p", "session_id": "s", "agent": {"name": "n", "version": "2"},
        "steps": steps, "extra": {"k": 1.0}, "final_metrics": {"total_cost_usd": 0.1}, "subagent_trajectories": [child],
    }  # fmt: skip
    main, sub = read(record).runs
    turns = main["turns"]
    assert [turn["role"] for turn in turns] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert [(turn["call_turn"], turn["call_index"]) for turn in turns[4:6]] == [(3, 1), (3, 0)]
    assert (turns[2]["copied_context"], turns[2]["loss_weight"]) == (True, 0.0)
    assert (turns[3]["prompt_tokens"], turns[3]["reasoning"], turns[7]["actor"]) == (5, "why", "environment")
    assert (main["record_id"], main["agent"], main["model"], main["cost"], main["depth"]) == ("p", "n", "m", 0.1, 0)
    assert (sub["record_id"], sub["parent_id"], sub["depth"], sub["agent"]) == ("c", "p", 1, "sub")
    assert json.loads(main["meta_json"])["extra"] == {"k": 1.0}
    assert main["defects"] == []


def test_records_of_the_wrong_shape_are_rejected_with_the_reason(read: Reader) -> None:
    good = tau([USER])
    found = read(
        [good, {"task_id": 1}, {**good, "traj": [{"content": "x"}]}, {**good, "traj": [assistant("x"), result()]}, 5]
    )
    assert len(found.runs) == 1
    assert [(reject.line, reject.reason) for reject in found.corpus.rejects] == [
        (2, "no `traj` list"),
        (3, "message 1 is not an object with a `role`"),
        (4, "a tool call is not an object"),
        (5, "a number is not a record"),
    ]
