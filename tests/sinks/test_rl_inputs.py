"""What a record gives a reward and an environment."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.verifiers import VERIFIERS
from curatec.runtime.sinks.reward_inputs import RewardInputs, reset_of, reward_inputs

RUN = {"domain": "airline", "task_id": "7", "trial": 2, "format": "tau_bench"}
CALL = {"name": "find", "arguments": {"id": 7}}


def read(reference: Any = None, /, **meta: Any) -> tuple[Any, Any, str | None]:
    """Gold calls as objects, gold answers, state digest."""
    found = reward_inputs(None if reference is None else json.dumps(reference), json.dumps(meta))
    calls = None if found.gold_calls is None else [orjson.loads(call) for call in found.gold_calls]
    return calls, None if found.gold_answers is None else list(found.gold_answers), found.state_digest


@pytest.mark.parametrize(
    "gold",
    [
        [CALL],
        CALL,
        {"calls": [CALL]},
        {"actions": [{"name": "find", "kwargs": {"id": 7}}]},
        {"actions": [{"action_id": "1_0", "requestor": "assistant", "info": None, "compare_args": None, **CALL}]},
        [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}],
    ],
)
def test_calls_in_all_spellings(gold: Any) -> None:
    assert read(gold)[0] == [CALL]
    assert read(None, gold=gold)[0] == [CALL]  # the record keeps its gold among the rest


def test_a_call_of_the_user_says_so() -> None:
    [call], _, _ = read({"actions": [{**CALL, "requestor": "user"}]})
    assert call == {**CALL, "requestor": "user"}


@pytest.mark.parametrize(
    ("gold", "calls", "answers"),
    [
        (None, None, None),
        ({"actions": [], "outputs": []}, [], []),  # nothing is to be done: known
        ({"actions": None, "communicate_info": ["226.11"]}, [], ["226.11"]),
        ({"outputs": ["327", "1000", "1,628"]}, None, ["327", "1000", "1,628"]),
        ("Paris", None, ["Paris"]),
        (12.50, None, ["12.5"]),
        (["a", "b"], None, ["a", "b"]),
        ({"answer": "yes", "nl_assertions": ["is kind"]}, None, ["yes"]),
        ({"nl_assertions": ["is kind"]}, None, None),
        (["find(id=7)", ["nested"]], None, None),
        ([CALL, {"name": "find", "arguments": "[1]"}], None, None),  # half a reference is none
        ([{"name": 5, "arguments": {}}], None, None),
        ({"user": {"name": "Ada"}}, None, None),
        (True, None, None),
    ],
)
def test_what_is_known_of_the_reference(gold: Any, calls: Any, answers: Any) -> None:
    assert read(gold) == (calls, answers, None)


def test_answers_and_states_beside_the_gold() -> None:
    assert read(None, answer="Paris") == (None, ["Paris"], None)
    assert read(None, ground_truth=8) == (None, ["8"], None)
    assert read([CALL], answer="Paris") == ([CALL], ["Paris"], None)
    assert read(None, info={"reward_info": {"info": {"r_actions": 1.0, "gt_data_hash": "ea14"}}})[2] == "ea14"
    assert read({"state_digest": "own"}, state_digest="other")[2] == "own"
    assert read(None, state_digest=5)[2] is None


def test_numbers_keep_their_spelling() -> None:
    found = reward_inputs('[{"name":"f","arguments":{"x":1.0,"y":1e3,"z":12345678901234567890123}}]', "{}")
    assert found.gold_calls == ('{"name":"f","arguments":{"x":1.0,"y":1e3,"z":12345678901234567890123}}',)


NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text(), JSON, max_size=3)), max_size=4))
def test_calls_are_read_as_they_were_written(calls: list[tuple[str, dict[str, Any]]]) -> None:
    wanted = [{"name": name, "arguments": arguments} for name, arguments in calls]
    tau = {"actions": [{"name": name, "kwargs": arguments} for name, arguments in calls], "outputs": []}
    chat = [{"function": {"name": name, "arguments": json.dumps(arguments)}} for name, arguments in calls]
    assert read(tau)[0] == read(chat)[0] == read(wanted)[0] == wanted


@given(JSON, JSON)
def test_any_gold_and_any_meta_are_read(gold: Any, meta: Any) -> None:
    found = reward_inputs(json.dumps(gold), json.dumps({"gold": gold, "answer": meta, "info": meta, "task": meta}))
    for call in found.gold_calls or ():
        assert {"name", "arguments"} <= set(orjson.loads(call))
    assert set(json.loads(reset_of(RUN, json.dumps({"task": meta, "replay_config": meta})))) >= set(RUN)


def test_what_resets_an_environment() -> None:
    tau = {"info": {"task": {"user_id": "u", "instruction": "Cancel it."}}, "seed": 3}
    assert json.loads(reset_of(RUN, json.dumps(tau))) == {
        **RUN, "instruction": "Cancel it.", "user_id": "u", "seed": 3,
    }  # fmt: skip
    scenario, state = {"instructions": {"domain": "retail"}}, {"initialization_data": None}
    tau2 = {"task": {"user_scenario": scenario, "initial_state": state, "ticket": None}}
    assert json.loads(reset_of(RUN, json.dumps(tau2))) == {**RUN, "scenario": scenario, "initial_state": state}
    swe = {"environment": "swe_main", "replay_config": {"env": '{"repo": {"base_commit": "HEAD"}}', "actions": "{}"}}
    assert json.loads(reset_of(RUN, json.dumps(swe))) == {**RUN, "environment": {"repo": {"base_commit": "HEAD"}}}
    assert json.loads(reset_of({**RUN, "trial": None, "task_id": None}, "{}")) == {
        "domain": "airline", "format": "tau_bench",
    }  # fmt: skip


HAVING = RewardInputs(("{}",), ("a",), "d")


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_verifier_lacks_what_the_table_says(name: str) -> None:
    told = {
        "state_match": "no_state", "call_match": "no_gold_calls", "call_format": None, "answer_match": "no_gold_answer",
        "numeric_match": "no_gold_answer", "token_f1": "no_gold_answer", "no_hallucinated_tool": "no_tools",
        "reward": None,
    }  # fmt: skip
    assert RewardInputs().lacking([name], tools=False) == told[name]
    assert HAVING.lacking([name], tools=True) is None
    assert VERIFIERS[name].about


def test_one_of_several_inputs_is_enough() -> None:
    assert RewardInputs(gold_calls=()).lacking(["state_match", "call_match"], tools=False) is None
    assert RewardInputs(state_digest="d").lacking(["state_match"], tools=False) is None
    assert RewardInputs(state_digest="d").lacking(["state_match", "call_match"], tools=False) == "no_gold_calls"
    assert RewardInputs(gold_answers=()).lacking(["answer_match"], tools=False) == "no_gold_answer"
