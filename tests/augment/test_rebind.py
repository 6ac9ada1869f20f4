"""`augment rebind`: what a copy says, by hand; that it holds no old value and gives its parent again; why it fails."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.state import State
from curatec.runtime.steps.augment.conversation import Conversation, entities
from curatec.runtime.steps.augment.entities import Finder, others, spelled
from tests.augment.corpora import runs
from tests.reference.rebind import leaves, low, occurrences, told
from tests.semantics.tools import Bench, Record, call, quick, record, result, turns_now

NAMES = ["user_id", "order_id"]
STEP = 'a: augment rebind(entities: ["user_id", "order_id"], copies: 2)'


def user(text: str) -> Record:
    return {"role": "user", "content": text}


def tool(name: str, **more: Any) -> Record:
    return {"type": "function", "function": {"name": name, **more}}


def copies(state: State) -> dict[str, list[Record]]:
    return {id_: turns for id_, turns in turns_now(state).items() if "#a" in id_}


def args(turns: list[Record], at: int) -> Any:
    return json.loads(turns[at]["calls"][0]["args_json"])


# ---- by hand ----

REPLY = '{"id":"una_ko_3668",\n "orders": {"#W6140927": {"total": 6140.927e0}},"mail":"una@x.com","n":[87654321, 1.0]}'
RUN = record(
    {"role": "system", "content": "The caller is una_ko_3668."},
    user("I am Una_Ko_3668 (yes, una_ko_3668). It's about W6140927, number 87654321."),
    {**call("get", {"user_id": "una_ko_3668"}), "reasoning_content": "ask for una_ko_3668's data"},
    result(REPLY),
    call("cancel", {"user_id": "una_ko_3668", "what": [{"order_id": ["#W6140927", 87654321]}]}, id="2"),
    result("cancelled '#W6140927'", id="2"),
    gold={"actions": [{"order_id": "#W6140927"}], "note": "of una_ko_3668"},
    about="una_ko_3668",
)


def test_every_place_says_the_new_value(bench: Bench) -> None:
    done = bench.run(STEP, [RUN]).shared
    parent = next(turns for id_, turns in turns_now(done).items() if "#" not in id_)
    assert sorted(id_.partition("#")[2] for id_ in copies(done)) == ["aa.0", "aa.1"]
    news = set()
    for id_, turns in copies(done).items():
        last = args(turns, 4)
        una, (order, number) = last["user_id"], last["what"][0]["order_id"]
        assert re.fullmatch(r"[a-z]{3}_[a-z]{2}_\d{4}", una)
        assert re.fullmatch(r"#[A-Z]\d{7}", order)
        assert isinstance(number, int)
        assert len(str(number)) == 8
        news |= {una, order, number}
        # Nothing else changes, to the byte: the old ones stood alone everywhere.
        swaps = {"una_ko_3668": una, "W6140927": order[1:], "87654321": str(number)}
        swaps["Una_Ko_3668"] = "_".join(part.capitalize() for part in una.split("_"))

        def swapped(text: str | None, swaps: dict[str, str] = swaps) -> str | None:
            for old, new in swaps.items():
                text = text and text.replace(old, new)
            return text

        for turn, old in zip(turns, parent, strict=True):
            for name in ("content", "reasoning"):
                assert turn[name] == swapped(old[name])
            for made, before in zip(turn["calls"], old["calls"], strict=True):
                assert made["args_json"] == swapped(before["args_json"])
                assert {**made, "args_json": None} == {**before, "args_json": None}
            same = ("turn", "role", "loss_weight", "edited", "call_turn", "call_index", "is_error", "tool_name")
            assert [turn[name] for name in same] == [old[name] for name in same]
        wide = {r["id"]: r for r in bench_wide(bench, done)}
        before = wide[id_.partition("#")[0]]
        assert wide[id_]["gold_json"] == swapped(before["gold_json"]) != before["gold_json"]
        assert wide[id_]["meta_json"] == swapped(before["meta_json"]) != before["meta_json"]
    assert len(news) == 6
    assert not news & {"una_ko_3668", "#W6140927", 87654321}


def bench_wide(bench: Bench, state: State) -> list[Record]:
    loaded = bench.execute((bench.folder / "s.curate").read_text()).loaded
    return loaded.wide(state, state.rows).to_dicts()


def test_gold_that_the_run_saw_but_did_not_name_stays(bench: Bench) -> None:
    seen = record(
        user("hi"), call("get", {"user_id": "una_ko_3668"}), result('["#W6140927"]'), gold={"order_id": "#W6140927"}
    )
    done = bench.run(STEP, [seen])
    assert done.ledger.counts[0].created == 2
    assert {r["gold_json"] for r in done.loaded.wide(done.shared, done.shared.rows).to_dicts()} == {
        '{"order_id":"#W6140927"}'
    }


def with_user(value: Any, *more: Record, reply: str = "ok", **facts: Any) -> Record:
    return record(user("hi"), call("get", {"user_id": value}), result(reply), *more, **facts)


FAILURES = {
    "no_entity": [
        record(),
        record(user("una_ko_3668"), call("get", {"user": "una_ko_3668"}), result("ok")),
        with_user(None),
        with_user({"id": "una_ko_3668"}),
        with_user(" #- "),
        with_user("[EMAIL_1]"),
    ],
    "entity_too_short": [with_user("b2"), with_user(42), with_user("#W9"), with_user("東京都庁")],
    "entity_is_word": [with_user("customer"), with_user("Mia")],
    "entity_is_number": [with_user("1e555"), record(user("x"), call("g", '{"user_id": 12e34}'), result("ok"))],
    "entity_in_invalid_arguments": [
        with_user("una_ko_3668", call("get", '{"user_id": "una_ko_3668"', id="2"), result("no", id="2"))
    ],
    "entity_in_tools": [with_user("una_ko_3668", tools=[tool("get", description="such as `una_ko_3668`")])],
    "entity_inside_word": [
        with_user("una_ko_3668", reply="write to una_ko_3668@example.com"),
        with_user("8765", reply="paid with payment_8765"),
        with_user("8765", reply="call 555-8765"),
        with_user("876", reply="costs 12,876"),
        with_user("876", reply='{"total": 12.876}'),
        with_user("W1234", reply="see W12345"),
        with_user("W1234", reply="see w1234.pdf"),
        with_user("W1234", meta={"note": "xW1234"}),
        with_user("W1234", call("get", {"order_id": "W1234 W99"}, id="2"), result("ok", id="2")),
    ],
    "gold_disagrees": [with_user("una_ko_3668", gold={"actions": [{"kwargs": {"user_id": "tom_fox_1212"}}]})],
    "no_new_value": [with_user("123", reply=" ".join(map(str, range(100, 1000))))],
}


@pytest.mark.parametrize("reason", FAILURES)
def test_a_copy_that_would_contradict_itself_is_counted(bench: Bench, reason: str) -> None:
    records = [{**r, "task_id": str(i)} for i, r in enumerate(FAILURES[reason])]
    done = bench.run(STEP, records)
    ledger = done.ledger.table()
    assert ledger["action"].to_list() == ["rejected"] * len(records)
    assert set(ledger["reason"]) == {reason}
    assert set(ledger["n"]) == {2}
    assert sorted(ledger["traj_id"]) == sorted(done.start.rows["id"])
    [count] = done.ledger.counts
    assert (count.entered, count.left, count.created, count.failed) == (len(records), len(records), 0, 2 * len(records))


ALONE = [
    "W12345", "#W12345.", "(W12345)", "W12345's", "a/W12345/b", "W12345,W12345", "id:W12345", "订单W12345已发",
    "`w12345`", "W12345 - done", "-W12345", "W12345?!", "=W12345;", '{"W12345": ["W12345"]}', "[W12345, 5]",
    'say "W12345"', '{"a": "{\\"b\\": \\"line\\\\nW12345\\"}"}', '"\\u0057"', '{"a": "\\u005712345"}',
]  # fmt: skip


@pytest.mark.parametrize("text", ALONE)
def test_a_value_that_stands_alone_is_replaced(bench: Bench, text: str) -> None:
    done = bench.run('a: augment rebind(entities: ["order_id"])', [
        record(user("hi"), call("get", {"order_id": "#W12345"}), result(text))
    ]).shared  # fmt: skip
    [turns] = copies(done).values()
    new = args(turns, 1)["order_id"].removeprefix("#")
    expected = [leaf.replace("W12345", new).replace("w12345", new.lower()) for leaf, _ in leaves(told(text))]
    assert [leaf for leaf, _ in leaves(told(turns[2]["content"]))] == expected


def test_draws_go_by_the_record_and_not_by_the_label(bench: Bench) -> None:
    other = RUN | {"messages": [*RUN["messages"], user("bye")]}
    found = [copies(bench.run(step, [RUN, other]).shared) for step in (STEP, STEP.replace("a:", "renamed:"), STEP)]
    values = [[args(turns, 4) for _, turns in sorted(one.items())] for one in found]
    assert values[0] == values[1] == values[2]
    assert len({str(value) for value in values[0]}) == 4


def test_a_new_label_moves_no_row(bench: Bench) -> None:
    records = [with_user(f"una_ko_{i}") for i in range(3000, 3040)]
    kept = []
    for label in ("a", "b"):
        step = f'{label}: augment rebind(entities: ["user_id"]) some: sample 50% seed 1'
        kept.append({id_.replace(f"#a{label}", "#") for id_ in bench.run(step, records).shared.rows["id"]})
    assert kept[0] == kept[1]
    parents = {id_ for id_ in kept[0] if "#" not in id_}
    assert parents != {id_.partition("#")[0] for id_ in kept[0] if "#" in id_}  # they are drawn apart


# ---- what must always hold ----


def respelled(conversation: Conversation, indent: int | None, ascii_only: bool) -> Conversation:
    """The same, its JSON written in another way."""

    def edit(text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return json.dumps(value, indent=indent, ensure_ascii=ascii_only) if isinstance(value, dict | list) else text

    return conversation.edited(edit)


@quick(5)
@given(runs(), st.sampled_from([None, 1]), st.booleans(), st.text("ab1", max_size=4))
def test_a_copy_holds_no_old_value_and_gives_its_parent_again(
    run: Any, indent: int | None, ascii_only: bool, seed: str
) -> None:
    calls = [
        [{"args_json": c.args_json, "args_raw": c.args_raw, "name": c.name, "id": c.id} for c in t.calls]
        for t in run.turns
    ]
    columns = {
        "content": [t.content for t in run.turns],
        "parts": [[{"kind": "text", "text": t.content}] if t.role == "user" else None for t in run.turns],
        "reasoning": [t.reasoning for t in run.turns],
        "calls": calls,
    }
    whole = Conversation(columns, {"gold_json": run.gold_json, "meta_json": run.meta_json})
    parent = respelled(whole, indent, ascii_only)
    found = entities(parent, NAMES, run.tools_json or "")
    if isinstance(found, str):
        return
    new = others(found.cores, seed, found.known)
    assert new is not None
    assert sorted(new) == sorted(found.cores)
    assert len({*new.values(), *found.cores}) == 2 * len(new)
    for core, other in new.items():
        assert [shape(c) for c in core] == [shape(c) for c in other]
    copy = parent.edited(partial(found.finder.replaced, new=new))
    texts = [*copy.said(), *filter(None, copy.record.values())]
    assert not [t for text in texts for t, _ in leaves(told(text)) if occurrences(t, set(found.cores))]
    assert [kind(text) for text in texts] == [kind(t) for t in (*parent.said(), *filter(None, parent.record.values()))]
    back = Finder.of(new.values())
    assert copy.edited(partial(back.replaced, new={other: core for core, other in new.items()})) == parent
    assert all(low(core) in found.known for core in found.cores)


def shape(char: str) -> str:
    return "digit" if char in "0123456789" else "letter" if char.isascii() and char.isalpha() else char


def kind(text: str) -> str:
    """What JSON reads, with the types of all values."""
    try:
        value = json.loads(text)
    except ValueError:
        return "text"
    return str(types(value))


def types(value: Any) -> Any:
    if isinstance(value, dict):
        return [types(item) for item in value.values()]
    return [types(item) for item in value] if isinstance(value, list) else type(value).__name__


def test_case_is_that_of_each_place() -> None:
    assert spelled("kwq_7", "Mia_3") == "Kwq_7"
    assert spelled("kwq", "MIA") == "KWQ"
