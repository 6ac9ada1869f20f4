"""The chat formats: OpenAI messages, ShareGPT, LLaMA-Factory."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from curatec.runtime.ingest import IngestError

from .conftest import USER, Read, assistant, call, chat, lines, result

Reader = Callable[..., Read]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def test_every_fact_of_a_record_has_its_column(read: Reader) -> None:
    facts: dict[str, Any] = {
        "id": 7, "task_id": "t", "domain": "d", "trial": 2, "reward": 0.5, "success": False, "model": "m", "agent": "a",
        "session_id": "s", "parent_id": "p", "started_at": "2025-01-02T03:04:05+01:00", "duration": 3, "cost": 0.25,
        "license": "MIT", "error": {"code": 1}, "gold": [{"name": "look"}], "metadata": {"x": 1.0}, "other": [None],
    }  # fmt: skip
    run = read(chat(USER, tools=[TOOL], **facts)).run
    same = ["task_id", "domain", "trial", "reward", "success", "model", "agent", "session_id", "parent_id", "license"]
    assert {key: run[key] for key in same} == {key: facts[key] for key in same}
    assert run["record_id"] == "7"
    assert run["outcome"] == "failure"
    assert run["started_at"] == datetime(2025, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert (run["duration"], run["cost"], run["error"]) == (3.0, 0.25, '{"code":1}')
    assert json.loads(run["gold_json"]) == facts["gold"]
    assert run["meta_json"] == '{"other":[null],"x":1.0}'
    assert json.loads(run["tools_json"]) == [TOOL]
    assert run["defects"] == []


def test_a_fact_of_the_wrong_kind_is_null_noted_and_kept(read: Reader) -> None:
    run = read(chat(USER, reward="high", trial=1.5, started_at="soon")).run
    assert (run["reward"], run["trial"], run["started_at"]) == (None, None, None)
    assert run["defects"] == ["bad_value"]
    assert json.loads(run["meta_json"]) == {"reward": "high", "trial": 1.5, "started_at": "soon"}


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({}, (None, None, "unknown")),
        ({"reward": 1}, (1.0, None, "unknown")),
        ({"success": True}, (None, True, "success")),
        ({"outcome": "failure"}, (None, False, "failure")),
        ({"outcome": "truncated", "reward": 0}, (0.0, None, "truncated")),
        ({"outcome": "crash", "reward": 0.0, "success": False}, (None, None, "crash")),
    ],
)
def test_verdicts(read: Reader, facts: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    run = read(chat(USER, **facts)).run
    assert (run["reward"], run["success"], run["outcome"]) == wanted
    if run["outcome"] == "crash":
        assert json.loads(run["meta_json"]) == {"reward": 0.0, "success": False}


def test_content_kinds_are_kept_apart(read: Reader) -> None:
    turns = read(
        chat(
            {"role": "user", "content": ""},
            {"role": "assistant", "content": None},
            {"role": "assistant", "tool_calls": []},
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}, "b"],
            },
            {"role": "user", "content": {"x": 1}},
        )
    ).turns
    assert [turn["content_kind"] for turn in turns] == ["text", "null", "absent", "parts", "text"]
    assert [turn["content"] for turn in turns] == ["", None, None, "a\n\nb", '{"x":1}']
    assert [turn["parts"] is None for turn in turns] == [True, True, True, False, True]
    assert [(part["kind"], part["text"], part["ref"]) for part in turns[3]["parts"]] == [
        ("text", "a", None),
        ("image", None, "u"),
        ("text", "b", None),
    ]


def test_roles_names_reasoning_and_extras(read: Reader) -> None:
    found = read(
        chat(
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": "hi", "name": "ann"},
            {
                "role": "assistant",
                "content": "x",
                "reasoning_content": "why",
                "refusal": None,
                "annotations": [1.0],
                "weight": 0,
            },
            {"role": "critic", "content": "hm"},
        )
    )
    assert [(turn["role"], turn["actor"]) for turn in found.turns] == [
        ("system", None),
        ("user", "ann"),
        ("assistant", "agent"),
        ("event", "critic"),
    ]
    assert (found.turns[2]["reasoning"], found.turns[2]["extra_json"]) == ("why", '{"annotations":[1.0]}')
    assert [turn["loss_weight"] for turn in found.turns] == [1.0, 1.0, 0.0, 1.0]
    assert found.run["defects"] == ["unknown_role"]


def test_legacy_function_calls_and_schemas(read: Reader) -> None:
    found = read(
        chat(
            USER,
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "seen"},
            {"role": "assistant", "content": "ok"},
            functions=[TOOL["function"]],
        )
    )
    assert found.call["result_turn"] == 2
    assert json.loads(found.run["tools_json"]) == [TOOL]


def test_a_tool_of_another_type_stays_as_it_is(read: Reader) -> None:
    custom = {"type": "custom", "custom": {"name": "grep"}}
    run = read(chat(USER, tools=[custom, TOOL["function"], {"type": "function", **TOOL["function"]}])).run
    assert json.loads(run["tools_json"]) == [custom, TOOL, TOOL]


def test_tools_as_text_and_broken_tools(read: Reader) -> None:
    assert json.loads(read(chat(USER, tools=json.dumps([TOOL]))).run["tools_json"]) == [TOOL]
    broken = read(chat(USER, tools="not json"), name="b.json").run
    assert (broken["tools_json"], broken["defects"], json.loads(broken["meta_json"])) == (
        None,
        ["invalid_tools"],
        {"tools": "not json"},
    )


def test_quirk_a_bare_list_of_messages_is_one_run(read: Reader) -> None:
    messages = [USER, assistant(call("{}")), result(), {"role": "assistant", "content": "x"}]
    assert len(read(messages).turns) == 4
    assert [len(run["turns"]) for run in read(lines(messages, messages[:1]), name="l.json").runs] == [4, 1]
    assert [len(run["turns"]) for run in read([messages, messages[:1]], name="a.json").runs] == [4, 1]


def test_an_empty_run_is_kept_with_a_defect(read: Reader) -> None:
    run = read(lines(chat(), chat(USER))).runs[0]
    assert (run["turns"], run["defects"]) == ([], ["empty_run"])


def test_quirk_key_first_seen_late_is_kept(read: Reader) -> None:
    records = [chat(USER, n=k) for k in range(150)]
    records[119]["late"] = {"deep": [1]}
    runs = read(lines(*records)).runs
    assert json.loads(runs[119]["meta_json"]) == {"n": 119, "late": {"deep": [1]}}
    assert "late" not in runs[118]["meta_json"]


def test_quirk_mixed_types_of_one_argument_stay_apart(read: Reader) -> None:
    runs = read(lines(*[chat(USER, assistant(call({"x": x}))) for x in (5, "5", 5.0, [5], None)])).runs
    given = [run["turns"][1]["calls"][0]["args_json"] for run in runs]
    assert given == ['{"x":5}', '{"x":"5"}', '{"x":5.0}', '{"x":[5]}', '{"x":null}']


def test_calls_as_text_are_noted_not_parsed(read: Reader) -> None:
    text = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    found = read(chat(USER, {"role": "assistant", "content": text}))
    assert found.run["defects"] == ["unparsed_call"]
    assert (found.turns[1]["content"], found.turns[1]["calls"]) == (text, [])


def test_sharegpt(read: Reader) -> None:
    found = read(
        [
            {
                "system": "rules",
                "tools": json.dumps([TOOL["function"]]),
                "conversations": [
                    {"from": "human", "value": "go"},
                    {"from": "function_call", "value": '{"name": "look", "arguments": {"a": 1.0}}'},
                    {"from": "observation", "value": "seen"},
                    {"from": "gpt", "value": "<think>\nhm\n</think>\n\ndone"},
                ],
            }
        ]
    )
    assert found.run["format"] == "sharegpt"
    assert [turn["role"] for turn in found.turns] == ["system", "user", "assistant", "tool", "assistant"]
    assert (found.call["name"], found.call["args_json"], found.call["result_turn"]) == ("look", '{"a":1.0}', 3)
    assert (found.turns[4]["reasoning"], found.turns[4]["content"]) == ("hm", "done")
    assert json.loads(found.run["tools_json"]) == [TOOL]
    assert (found.run["defects"], found.run["meta_json"]) == ([], "{}")


def test_sharegpt_parallel_and_broken_calls(read: Reader) -> None:
    both = '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": "{}"}]'
    talk = [
        ("human", "go"),
        ("function_call", both),
        ("observation", "1"),
        ("observation", "2"),
        ("function_call", "oops"),
    ]
    found = read({"conversations": [{"from": who, "value": value} for who, value in talk]})
    assert [call["name"] for call in found.turns[1]["calls"]] == ["f", "g"]
    assert [turn["call_index"] for turn in found.turns[2:4]] == [0, 1]
    assert (found.turns[4]["content"], found.run["defects"]) == ("oops", ["unparsed_call"])


def test_hermes(read: Reader) -> None:
    talk = [
        ("system", f"Use these: <tools>\n{json.dumps(TOOL)}\n</tools>"),
        ("human", "go"),
        ("gpt", 'Looking.\n<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>\n'
                "<tool_call>\n{'name': 'look', 'arguments': {'a': None}}\n</tool_call>"),
        ("tool", '<tool_response>\n{"name": "look", "content": "x"}\n</tool_response>\n'
                 "<tool_response>\n2\n</tool_response>"),
        ("gpt", "done"),
    ]  # fmt: skip
    found = read({"conversations": [{"from": who, "value": value} for who, value in talk]})
    calls = found.turns[2]["calls"]
    assert [(call["args_json"], call["args_state"]) for call in calls] == [
        ('{"a":1}', "json"),
        ('{"a":null}', "repaired"),
    ]
    assert found.turns[2]["content"] == "Looking."
    assert [(turn["role"], turn["call_index"]) for turn in found.turns[3:5]] == [("tool", 0), ("tool", 1)]
    assert json.loads(found.run["tools_json"]) == [TOOL]
    assert found.run["defects"] == ["repr_args"]


def part(kind: str, value: str) -> dict[str, str]:
    return {"type": kind, "value": value}


def test_llamafactory(read: Reader) -> None:
    one = '{"name": "look", "arguments": {"a": 1}}'
    record = chat(
        {"role": "user", "content": [part("text", "go")], "loss_weight": 0.0},
        {
            "role": "assistant",
            "content": [part("reasoning", "why"), part("tool_call", one), part("tool_call", one)],
            "loss_weight": 0.5,
        },
        {"role": "tool", "content": [part("text", '[{"content": 1}, {"content": 2}]')]},
        {"role": "assistant", "content": [part("text", "a"), part("text", "b")]},
        tools=json.dumps([TOOL]),
    )
    found = read(lines(record))
    assert found.run["format"] == "llamafactory"
    assert [turn["loss_weight"] for turn in found.turns] == [0.0, 0.5, 1.0, 1.0]
    assert (found.turns[1]["reasoning"], len(found.turns[1]["calls"]), found.turns[1]["content"]) == ("why", 2, None)
    assert found.turns[3]["content"] == "a\n\nb"
    assert found.run["defects"] == ["orphan_call", "packed_results"]


def test_a_preference_row_is_the_chosen_side_and_invents_no_outcome(read: Reader) -> None:
    def side(text: str) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": [part("text", "go")]},
            {"role": "assistant", "content": [part("text", text)]},
        ]

    found = read(lines({"chosen_messages": side("good"), "rejected_messages": side("bad")}))
    assert [turn["content"] for turn in found.turns] == ["go", "good"]
    assert json.loads(found.run["meta_json"]) == {"rejected_messages": side("bad")}
    assert (found.run["reward"], found.run["success"], found.run["outcome"]) == (None, None, "unknown")


def test_quirk_results_inside_user_rows(read: Reader) -> None:
    found = read(
        chat(
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "tool_use", "id": "k", "name": "f", "input": {"a": 1.0}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "k", "content": "no", "is_error": True}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "why"},
                    {"type": "tool_use", "id": "l", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "l", "content": []},
                    {"type": "text", "text": "and?"},
                ],
            },
            {"role": "assistant", "content": "done"},
        )
    )
    assert [turn["role"] for turn in found.turns] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert [turn["call_turn"] for turn in found.turns] == [None, None, 1, None, 3, None, None]
    assert (found.turns[2]["is_error"], found.turns[2]["content"], found.turns[4]["is_error"]) == (True, "no", None)
    assert (found.turns[3]["reasoning"], found.turns[5]["content"]) == ("why", "and?")
    assert found.run["defects"] == []


@pytest.mark.parametrize("text", ["<tool_call>" * 200_000, "<tool_call>" + " " * 500_000, "<think>" * 200_000])
def test_tags_without_an_end_cost_no_time(read: Reader, text: str) -> None:
    found = read({"conversations": [{"from": "human", "value": "go"}, {"from": "gpt", "value": text}]})
    assert found.turns[1]["content"] == text


@pytest.mark.parametrize("key", ["conversations", "conversation"])
def test_messages_under_another_name(read: Reader, key: str) -> None:
    assert read(lines({key: [USER], "id": "x"})).run["format"] == "openai"


def test_a_bare_list_with_a_damaged_message_is_one_reject(read: Reader) -> None:
    with pytest.raises(IngestError, match="element 2: expecting value"):
        read('[{"role": "user", "content": "a"}, {"role": oops}, {"role": "user", "content": "b"}]' + " " * 40)
