"""`augment distractors`: which tools a copy shows, and that nothing else of it differs."""

from __future__ import annotations

from typing import Any

import pytest

from curatec.runtime.state import State
from curatec.runtime.steps.augment.distractors import tools_of
from tests.semantics.tools import Bench, Record, call, record, result, turns_now

USER = {"role": "user", "content": "hi"}


def tool(name: str, **more: Any) -> Record:
    return {"type": "function", "function": {"name": name, **more}}


def shows(*names: str, calls: str = "a", **facts: Any) -> Record:
    return record(USER, call(calls), result("ok"), tools=[tool(n) for n in names], **facts)


def shown(state: State) -> dict[str, list[str | None]]:
    rows = state.rows.filter(state.rows["id"].str.contains("#")).select("id", "toolset")
    return {id_: [name for name, _ in tools_of(state.toolsets[key])] for id_, key in rows.iter_rows()}


def reasons(done: Any) -> list[tuple[str, int]]:
    ledger = done.ledger.table()
    return sorted(ledger.filter(ledger["action"] == "rejected").select("reason", "n").iter_rows())


def test_copies_show_more_tools_that_the_run_has_no_use_for(bench: Bench) -> None:
    records = [shows("a", "b", calls="x", task_id="1"), shows("x", "y", "z", calls="y", task_id="2")]
    done = bench.run("more: augment distractors(n: 2, copies: 8)", records)
    first, second = (id_ for _, id_ in sorted(done.start.rows.select("task", "id").iter_rows()))
    found = shown(done.shared)
    assert {id_ for id_ in found if id_.startswith(first)} == {f"{first}#amore.{k}" for k in range(8)}
    for id_, names in found.items():
        # `x` is called by the first run, though it does not show it.
        own, others = (["a", "b"], ["y", "z"]) if id_.startswith(first) else (["x", "y", "z"], ["a", "b"])
        assert [n for n in names if n in own] == own
        assert sorted(n for n in names if n not in own) == others
    assert len({tuple(names) for id_, names in found.items() if id_.startswith(second)}) > 3  # places are drawn
    now = turns_now(done.shared)
    plain = {id_: [{**t, "row": 0, "run": 0} for t in turns] for id_, turns in now.items()}
    assert all(plain[id_] == plain[id_.partition("#")[0]] for id_ in found)
    assert reasons(done) == []
    assert done.ledger.counts[0].created == 16


def test_some_of_many_are_drawn_evenly(bench: Bench) -> None:
    names = [f"t{i}" for i in range(10)]
    records = [shows("a", task_id=str(i), trial=i) for i in range(30)] + [shows(*names, calls="t0", task_id="x")]
    done = bench.run("more: augment distractors(n: 3, copies: 10)", records)
    drawn = [n for names in shown(done.shared).values() for n in names if str(n).startswith("t")]
    assert len(drawn) == 30 * 10 * 3
    assert all(60 <= drawn.count(name) <= 120 for name in names)  # 90 are expected, with a deviation of 8


def test_what_cannot_be_made_is_counted(bench: Bench) -> None:
    records = [
        shows("a", task_id="1"),
        shows("a", "b", "c", task_id="2"),
        record(USER, call("a"), result("ok"), task_id="3"),
        record(USER, call("a"), result("ok"), tools=[], task_id="4"),
    ]
    done = bench.run("more: augment distractors(n: 2, copies: 3)", records)
    assert reasons(done) == [("no_tools", 3), ("no_tools", 3), ("pool_too_small", 3)]
    assert list(map(len, shown(done.shared).values())) == [3, 3, 3]
    assert done.ledger.counts[0].failed == 9


def test_a_pool_may_be_of_the_same_source(bench: Bench) -> None:
    bench.write("a.jsonl", [shows("a", task_id="1"), shows("b", calls="b", task_id="2")])
    bench.write("b.jsonl", [shows("c", calls="c", task_id="3")])
    sources = 'source t { path "a.jsonl" format openai }\nsource u { path "b.jsonl" format openai }'
    for pool, expected in (("source", [["a", "b"], ["a", "b"]]), ("all", [["a", "b", "c"]] * 3)):
        step = f"more: augment distractors(n: {len(expected[0]) - 1}, pool: {pool})"
        done = bench.execute(f"curate 1\n{sources}\nstrategy s {{ from t, u {step} emit sft {{}} }}")
        assert sorted(sorted(map(str, names)) for names in shown(done.shared).values()) == expected
        assert reasons(done) == ([("pool_too_small", 1)] if pool == "source" else [])


def test_only_what_enters_the_step_is_in_the_pool(bench: Bench) -> None:
    records = [shows("a", task_id="1", reward=1.0), shows("b", task_id="2", reward=0.0)]
    done = bench.run("good: keep where reward > 0 more: augment distractors(n: 1)", records)
    assert reasons(done) == [("pool_too_small", 1)]


def test_one_of_several_schemas_of_a_name_is_taken_as_it_is_written(bench: Bench) -> None:
    odd = '{"type": "function", "function": {"name": "odd", "parameters": {"maximum": 1.50e3, "x": "\\u00e9,]"}}}'
    lines = [
        '{"task_id": "1", "tools": [{"type": "function", "function": {"name": "a"}}], "messages": MESSAGES}',
        f'{{"task_id": "2", "tools": [{odd}], "messages": MESSAGES}}',
        '{"task_id": "3", "tools": [{"type": "function", "function": {"name": "odd"}}], "messages": MESSAGES}',
    ]
    messages = '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}]'
    (bench.folder / "a.jsonl").write_text("\n".join(lines).replace("MESSAGES", messages), encoding="utf-8")
    done = bench.execute(bench.spec("more: augment distractors(n: 1, copies: 30)"))
    read = {text for tools in done.start.toolsets.values() for _, text in tools_of(tools)}
    assert any("1.50e3" in text for text in read)
    copies = done.shared.rows.filter(done.shared.rows["id"].str.contains("#"))
    texts = [text for key in copies["toolset"] for _, text in tools_of(done.shared.toolsets[key])]
    assert set(texts) == read


@pytest.mark.parametrize("text", ["[]", " [ ] ", '[{"function":{"name":null}} , {"function":{}}]'])
def test_lists_are_read_however_they_are_written(text: str) -> None:
    assert [name for name, _ in tools_of(text)] == [None] * text.count("function")
