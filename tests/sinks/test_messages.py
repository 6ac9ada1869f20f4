"""Messages of both forms: arguments, ids, what is hidden, what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from curatec.runtime.conversation import messages as m
from curatec.runtime.conversation import thinking

from .conftest import Made, Make, calls, result, run, says, system, user

SFT = "emit sft { loss on assistant }"
OPENAI = "emit sft { loss on assistant format openai }"


def one(made: Make, record: Any, body: str = SFT) -> Any:
    return made([record], body).rows("sft")[0]["messages"]


def why(got: Made) -> list[str]:
    return list(got.reasons("sft").values())


SPELLED = '{"b": 1.0, "a": 1e5,\n "list": [ ], "text": "\\u00e9 \\n"}'


def test_trl_arguments_are_objects_in_the_sources_words(made: Make) -> None:
    got = made([run("1", user("a"), calls(("c", "f", SPELLED)))], SFT)
    line = (got.out / "sft" / "train.jsonl").read_text()
    assert line.count("\n") == 1
    assert SPELLED.replace("\n", " ") in line
    assert got.rows("sft")[0]["messages"][1]["tool_calls"][0]["function"]["arguments"]["b"] == 1.0


def test_openai_arguments_are_strings_in_the_sources_words(made: Make) -> None:
    shown = one(made, run("1", user("a"), calls(("c", "f", SPELLED))), OPENAI)
    assert shown[1]["tool_calls"][0]["function"]["arguments"] == SPELLED
    assert shown[1]["content"] is None


def test_no_argument_is_encoded_twice(made: Make) -> None:
    twice = orjson.dumps('{"id": 3}').decode()
    record = run(
        "1", user("a"), calls(("c", "f", twice), ("d", "g", {"x": 1}), ("e", "h", "{'id': 4}"), ("f", "i", ""))
    )
    trl = one(made, record)[1]["tool_calls"]
    assert [c["function"]["arguments"] for c in trl] == [{"id": 3}, {"x": 1}, {"id": 4}, {}]
    openai = made([record], OPENAI, name="b").rows("sft")[0]["messages"][1]["tool_calls"]
    assert [orjson.loads(c["function"]["arguments"]) for c in openai] == [{"id": 3}, {"x": 1}, {"id": 4}, {}]


def test_no_call_has_the_keys_of_another(made: Make) -> None:
    record = run("1", user("a"), calls(("c", "f", '{"x":1}'), ("d", "g", '{"y":{"z":null}}')))
    texts = made([record], SFT).texts("sft")[0]["messages"]
    assert orjson.loads(texts[0]) == {"role": "user", "content": "a"}
    arguments = [c["function"]["arguments"] for c in orjson.loads(texts[1])["tool_calls"]]
    assert arguments == [{"x": 1}, {"y": {"z": None}}]


@pytest.mark.parametrize("raw", ["[1]", "not json", '{"a": NaN}', "3"])
def test_arguments_that_are_no_object(made: Make, raw: str) -> None:
    record = run("1", user("a"), calls(("c", "f", raw)))
    assert why(made([record], SFT)) == ["arguments_not_an_object"]
    openai = made([record], OPENAI, name="b").rows("sft")[0]["messages"]
    assert openai[1]["tool_calls"][0]["function"]["arguments"] == raw


def test_numbers_beyond_the_loaders(made: Make) -> None:
    record = run("1", user("a"), calls(("c", "f", '{"n": 123456789012345678901234567890}')))
    assert why(made([record], SFT)) == ["number_too_large"]
    assert m.unreadable('{"n": 18446744073709551615, "s": "99999999999999999999999"}') is None
    assert m.unreadable("[" * 950 + "]" * 950) == "nested_too_deeply"
    assert m.unreadable('"' + "[" * 950 + '"') is None


def test_a_problem_behind_the_last_trained_message_is_none(made: Make) -> None:
    record = run("1", user("a"), says("b"), user("c"), calls(("c", "f", "[1]"), weight=0))
    assert len(one(made, record)) == 2


def test_ids_are_kept_unless_missing_or_repeated(made: Make) -> None:
    record = run(
        "1",
        user("a"),
        calls(("x", "f", "{}"), (None, "g", "{}")),
        result("x", "1"),
        result(None, "2"),
        calls(("x", "f", "{}")),
        result("x", "3"),
        says("b"),
    )
    shown = one(made, record)
    ids = [c["id"] for message in shown for c in message.get("tool_calls", [])]
    assert ids == ["x", "call_1_1", "call_4_0"]
    assert [message["tool_call_id"] for message in shown if message["role"] == "tool"] == ids


def test_the_user_simulators_calls_are_hidden(made: Make) -> None:
    turns = [
        {"role": "assistant", "content": "Hi!"},
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "u", "name": "toggle", "arguments": {}, "requestor": "user"}],
        },
        {"role": "tool", "id": "u", "content": "on", "requestor": "user"},
        {"role": "user", "content": "It is on."},
        {"role": "assistant", "content": "Good."},
    ]
    sim = {
        "id": "s",
        "task_id": "1",
        "trial": 0,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0},
        "messages": turns,
    }
    shown = one(made, sim)
    assert [(x["role"], x["content"]) for x in shown] == [
        ("assistant", "Hi!"),
        ("user", "It is on."),
        ("assistant", "Good."),
    ]


@pytest.mark.parametrize(
    ("reason", "messages"),
    [
        ("result_without_call", [user("a"), result("zz"), says("b")]),
        ("unanswered_call", [user("a"), calls(("c", "f", "{}")), user("b"), says("c")]),
        ("unanswered_call", [user("a"), calls(("c", "f", "{}")), says("c")]),
        ("unanswered_call", [user("a"), calls(("c", "f", "{}"), ("d", "f", "{}")), result("c"), says("c")]),
        ("result_without_call", [user("a"), calls(("c", "f", "{}")), result("c"), says("x"), result("c"), says("c")]),
        ("system_not_first", [user("a"), system(), says("b")]),
        ("call_without_name", [user("a"), calls(("c", None, "{}"))]),
        ("call_outside_assistant", [user("a"), calls(("c", "f", "{}")) | {"role": "user"}, says("b")]),
        ("parts_not_text", [user("a") | {"content": [{"type": "image_url", "image_url": {"url": "u"}}]}, says("b")]),
    ],
)
def test_what_a_target_refuses(made: Make, reason: str, messages: list[Any]) -> None:
    got = made([run("1", *messages), run("2", user("a"), says("b"))], SFT)
    assert why(got) == [reason]
    assert got.written["sft"].rejected == {reason: 1}
    got.conserved("sft")


def test_a_row_may_end_on_a_call(made: Make) -> None:
    shown = one(made, run("1", user("a"), calls(("c", "f", "{}"), ("d", "g", "{}")), result("c")))
    assert [x["role"] for x in shown] == ["user", "assistant"]


def test_text_parts_are_joined(made: Make) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert one(made, run("1", user("a") | {"content": parts}, says("b")))[0]["content"] == "one\n\ntwo"


def test_tools_keep_their_words_and_empty_is_none(made: Make) -> None:
    tools = '[{"type":"function","function":{"name":"f","parameters":{"max": 1.0,\\n"z":1,"a":[]}}}]'.replace("\\n", "")
    record = (
        '{"task_id":"1","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":'
        + tools
        + "}"
    )
    got = made([record, run("2", user("a"), says("b"), tools=[])], SFT).texts("sft")
    assert orjson.loads(got[0]["tools"][0])["function"]["parameters"] == {"max": 1.0, "z": 1, "a": []}
    assert got[1]["tools"] is None


@pytest.mark.parametrize(
    ("text", "left", "pieces"),
    [
        ("plain", "plain", ["plain"]),
        ("<think>a</think>\n\nb", "b", ["b"]),
        ("a <think>b</think> c <think>d</think>", "a c ", ["a ", "c "]),
        ("inside</think> out", "out", ["out"]),
        ("<think>cut off", "", []),
        ("a<think></think>b", "ab", ["a", "b"]),
        (" <think>x</think> ", " ", []),
        ("", "", []),
    ],
)
def test_thinking(text: str, left: str, pieces: list[str]) -> None:
    assert thinking.without(text) == left
    assert [text[a:b] for a, b in thinking.outside(text)] == pieces
