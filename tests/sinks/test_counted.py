"""What is counted is what is written: mixes by tokens, tokens after `tools keep`, windows that are refused."""

from __future__ import annotations

import orjson
import polars as pl
import pytest

from curatec.runtime.execute import written_rows

from .conftest import TOOLS, Make, calls, result, run, says, user

pytestmark = pytest.mark.usefixtures("parts")
SEARCH = [user("hi"), calls(("1", "find", {"id": 1})), result("1"), says("ok")]


def test_a_mix_counts_in_the_form_of_the_sink(made: Make) -> None:
    """Arguments that are no JSON: the form `openai` trains them as they are, `trl` refuses them."""
    runs = [
        run(f"{i}", user("hi"), calls(("1", "find", "not json")), result("1"), says("abcd" * 50), success=True)
        for i in range(3)
    ]
    mix = "m: mix { runs 100% } by trained_tokens to at most 60"
    got = made(runs, f"emit sft {{ {mix} format openai }}")
    assert [row["n_trained"] for row in got.rows("sft")] == [53]  # 50, find 1, not json 2


def test_tokens_go_with_the_tools_that_are_shown(made: Make) -> None:
    pytest.importorskip("tokenizers")
    steps = "few: tools keep where used derive after = tokens derive more = tokens + 1"
    runs = [run("a", *SEARCH, tools=TOOLS, success=True)]
    for name, before in (("once", ""), ("twice", "some: keep where tokens > 1 derive before = tokens ")):
        got = made(runs, f'render "builtin:tiny-qwen3" {before}{steps} emit sft {{ }}', name=name)
        [row], [fact] = got.rows("sft"), got.executed.shared.rows.to_dicts()
        assert (fact["after"], fact["more"]) == (row["n_tokens"], row["n_tokens"] + 1)
    assert fact["before"] > fact["after"]


def test_tools_keep_their_text(made: Make) -> None:
    """Numbers are spelled as they were."""
    shown = f'"tools":[{{"type":"function","function":{{"name":"find","x":1e2}}}},{orjson.dumps(TOOLS[1]).decode()}]'
    line = orjson.dumps(run("a", *SEARCH, success=True)).decode()[:-1] + "," + shown + "}"
    [row] = made([line], "few: tools keep where used emit sft { }").texts("sft")
    assert row["tools"] == ['{"type":"function","function":{"name":"find","x":1e2}}']


def test_a_run_whose_windows_are_all_refused_is_not_in_the_sink(made: Make) -> None:
    """A conversation that begins with a greeting has no form in `sharegpt`."""
    turns = [message for i in range(8) for message in (user(f"{i} abcdefghi"), says("abcdefghijklmnop"))]
    runs = [run("good", *turns, success=True), run("bad", says("Hello!"), *turns, success=True)]
    # `good` keeps its first window; the others hold context, which `sharegpt` cannot say.
    got = made(runs, "emit sft { fit 20 tokens else window format sharegpt }")
    got.conserved("sft")
    ids = dict(got.executed.loaded.state.rows.select("task_id", "id").iter_rows())
    assert {row["parents"][0] for row in got.rows("sft")} == {ids["good"]}
    assert len([id_ for id_ in got.reasons("sft") if id_.startswith(ids["bad"])]) > 1
    assert written_rows(got.executed, "sft").rows["id"].to_list() == [ids["good"]]


def test_calls_that_a_view_takes_are_told(made: Make) -> None:
    users = {"id": "u", "name": "look", "arguments": {}, "requestor": "user"}
    talk = [
        {"role": "user", "content": "I look", "tool_calls": [users]},
        {"role": "tool", "id": "u", "content": "red", "requestor": "user"},
        {"role": "assistant", "content": "done"},
    ]
    simulation = {"task_id": "1", "trial": 0, "messages": talk, "reward_info": {"reward": 1.0}}
    got = made([{"tasks": [], "simulations": [simulation]}], "view agent emit sft { }", source="format tau2")
    told = got.executed.ledger.table().filter(pl.col("sink").is_null())
    assert told.select("turn", "action", "key", "n").rows() == [(0, "edited", "calls", 1), (1, "dropped", None, 1)]
    assert got.executed.ledger.counts[0].edited == 2
