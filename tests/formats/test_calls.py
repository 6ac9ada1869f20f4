"""Tool arguments and the links between calls and results: every defect, on records written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from curatec.runtime.formats.defects import DEFECTS
from curatec.runtime.formats.link import link
from curatec.runtime.formats.model import Call, Turn

from .conftest import USER, Read, assistant, call, chat, result

Reader = Callable[..., Read]
DONE = {"role": "assistant", "content": "done"}


@pytest.mark.parametrize(
    ("arguments", "state", "args_json", "defects"),
    [
        ('{"b": 1.0, "a": [1e5]}', "json", '{"b": 1.0, "a": [1e5]}', []),
        ({"b": 1, "a": {}}, "json", '{"b":1,"a":{}}', []),
        ("{}", "json", "{}", []),
        ("", "none", None, ["missing_args"]),
        (None, "none", None, ["missing_args"]),
        (
            "{'name': 'O\\'Hara', 'n': (1, None, True)}",
            "repaired",
            '{"name":"O\'Hara","n":[1,null,true]}',
            ["repr_args"],
        ),
        ('"{\\"a\\": 1}"', "repaired", '{"a":1}', ["double_encoded_args"]),
        ("[1, 2]", "invalid", None, ["non_object_args"]),
        ("3", "invalid", None, ["non_object_args"]),
        ('"plain"', "invalid", None, ["non_object_args"]),
        ([1], "invalid", None, ["non_object_args"]),
        (7, "invalid", None, ["non_object_args"]),
        ("{a: 1}", "invalid", None, ["invalid_args"]),
        ("{'a': {1, 2}}", "invalid", None, ["invalid_args"]),
        ("{'a': b'x'}", "invalid", None, ["invalid_args"]),
        ('{"a": 1', "invalid", None, ["invalid_args"]),
        ('{"a": NaN}', "invalid", None, ["invalid_args", "nan"]),
        ('{"a": 1e400}', "invalid", None, ["invalid_args", "nan"]),
        ('{"a": 1, "a": 2}', "json", '{"a":2}', ["duplicate_key"]),
        ('{"a": "\\ud83d"}', "json", '{"a":"�"}', ["lone_surrogate"]),
        ('{"a": 123456789012345678901234567890}', "json", '{"a": 123456789012345678901234567890}', []),
        ('{"a":' * 3000 + "1" + "}" * 3000, "invalid", None, ["invalid_args"]),
        ("(" * 5000 + ")" * 5000, "invalid", None, ["invalid_args"]),
    ],
)
def test_arguments(read: Reader, arguments: Any, state: str, args_json: str | None, defects: list[str]) -> None:
    found = read(chat(USER, assistant(call(arguments)), result(), DONE))
    assert found.call["args_state"] == state
    assert found.call["args_json"] == args_json
    assert found.run["defects"] == defects
    as_given = isinstance(arguments, dict) or args_json == arguments or state == "none"
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(",", ":"))
    assert found.call["args_raw"] == (None if as_given else given)


def test_quirk_nan_inside_an_object_of_arguments(read: Reader) -> None:
    found = read(
        '{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"x":NaN}}}]}]}'
    )
    assert (found.call["args_state"], found.call["args_raw"]) == ("invalid", '{"x":NaN}')
    assert {"nan", "invalid_args"} <= set(found.run["defects"])


def test_numbers_of_an_arguments_object_keep_their_spelling(read: Reader) -> None:
    found = read(
        '{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"x":1.0,"y":5}}}]}]}'
    )
    assert found.call["args_json"] == '{"x":1.0,"y":5}'


def test_quirk_a_call_without_an_id_is_linked_by_position(read: Reader) -> None:
    found = read(chat(USER, assistant(call("{}", id=None)), result(id=None), DONE))
    assert found.call["result_turn"] == 2
    assert (found.turns[2]["call_turn"], found.turns[2]["call_index"], found.turns[2]["tool_name"]) == (1, 0, "look")
    assert found.run["defects"] == ["missing_call_id", "missing_result_id"]


def test_quirk_ids_repeated_inside_one_run_link_to_the_nearest(read: Reader) -> None:
    found = read(chat(USER, assistant(call("{}")), result("1"), assistant(call("{}")), result("2"), DONE))
    assert [turn["call_turn"] for turn in found.turns] == [None, None, 1, None, 3, None]
    assert found.run["defects"] == ["duplicate_call_id"]


def linked(*turns: Turn, call_ids: bool = True) -> tuple[list[tuple[int | None, int | None]], set[str]]:
    notes = link(turns, call_ids=call_ids)
    return [(turn.call_turn, turn.call_index) for turn in turns if turn.role == "tool"], notes


def calls(*ids: str | None, names: str = "") -> Turn:
    made = [Call(id, names[k] if names else "f", "{}") for k, id in enumerate(ids)]
    return Turn("assistant", calls=made)


def answer(id: str | None = None, name: str | None = None) -> Turn:
    return Turn("tool", tool_call_id=id, tool_name=name)


SAY = Turn("assistant", "said", "text")


def test_parallel_results_in_any_order() -> None:
    assert linked(calls("a", "b"), answer("b"), answer("a"), SAY) == ([(0, 1), (0, 0)], set())


def test_the_same_id_twice_in_one_turn_is_taken_in_order() -> None:
    assert linked(calls("a", "a"), answer("a"), answer("a"), SAY) == ([(0, 0), (0, 1)], {"duplicate_call_id"})


def test_a_late_result_finds_its_call_by_id() -> None:
    assert linked(calls("a"), SAY, calls("b"), answer("b"), answer("a"), SAY) == ([(2, 0), (0, 0)], set())


def test_by_position_a_name_goes_before_the_order() -> None:
    found = linked(calls(None, None, names="fg"), answer(name="g"), answer(name="f"), SAY, call_ids=False)
    assert found == ([(0, 1), (0, 0)], set())


def test_a_result_with_an_unknown_id_is_an_orphan_unless_a_call_has_none() -> None:
    assert linked(calls("a"), answer("z"), SAY) == ([(None, None)], {"orphan_result", "orphan_call"})
    assert linked(calls(None), answer("z"), SAY) == ([(0, 0)], {"missing_call_id"})


def test_a_second_result_for_one_call_is_an_orphan() -> None:
    assert linked(calls("a"), answer("a"), answer("a"), SAY) == ([(0, 0), (None, None)], {"orphan_result"})


def test_how_a_run_ends() -> None:
    assert linked(calls("a"), answer("a")) == ([(0, 0)], {"ends_on_tool"})
    assert linked(calls("a"))[1] == {"ends_on_call"}
    assert linked(calls("a"), Turn("event"))[1] == {"ends_on_call"}
    assert linked(calls("a"), SAY)[1] == {"orphan_call"}


def test_every_defect_that_code_notes_is_documented() -> None:
    import re
    from pathlib import Path

    from curatec.runtime import formats

    named: set[str] = set()
    for source in Path(formats.__file__).parent.glob("*.py"):
        text = source.read_text(encoding="utf-8")
        named |= set(re.findall(r'(?:notes|found|heard)\.add\(\s*"(\w+)"', text))
        named |= set(re.findall(r'notes = \{"(\w+)" if', text))
        for group in re.findall(r"\| \{([^}]*)\}", text):
            named |= set(re.findall(r'"(\w+)"', group)) & DEFECTS.keys()
    assert named <= set(DEFECTS)
    assert len(named) > 15


def test_a_repeated_key_in_an_object_of_arguments_keeps_its_raw_text(read: Reader) -> None:
    arguments = '{"x":1.0,"x":{"y":2,"y":3}}'
    made = '{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":ARGS}}]}]}'
    found = read(made.replace("ARGS", arguments))
    assert (found.call["args_json"], found.call["args_raw"]) == ('{"x":{"y":3}}', arguments)
    assert "duplicate_key" in found.run["defects"]


@pytest.mark.parametrize(
    "text", ["{'a': " + "-" * 900_000 + "1}", "{'a': " + "1+" * 300_000 + "1}", "{'a':" * 90 + "1" + "}" * 90]
)
def test_a_literal_made_to_break_the_parser_is_only_unreadable(read: Reader, text: str) -> None:
    found = read(chat(USER, assistant(call(text)), result(), DONE))
    assert found.call["args_state"] in ("invalid", "repaired")
