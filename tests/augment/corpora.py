"""Small corpora in which calls name things: ids in arguments, results, prose, gold, and where they are hard to find."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from curatec.runtime.formats.model import Call, Run, Turn
from tests.reference.digest import finished
from tests.semantics.corpora import TOOLS, Finished

USERS = ("una_ko_3668", "UNA_KO_3668", "otto_winkl_7719", "[EMAIL_1]")
ORDERS = ("#W12345", "W12345", "w12345", "#W99", "K9X", "8765", "A-7-Q", "QXB07T", "b2")
ODD = ("customer", "", "--", "1e555", "a", "JFK", "{}", "una_ko_3668 #W12345", '{"order_id": "#W12345"}')
FRAMES = (
    "{}", "I am {}.", "is it {}?", "({})", "{}'s", "a,{},b", "number:{}", "订单{}已发",
    "{}@example.com", "pay_{}", "{}0", "x{}", "7-{}", "{}-7", "1,{}", "{}.", "{}.pdf", "9:{}", "é{}",
)  # fmt: skip
SAID = ("done", "ok", "Error: no", "order W12 costs 8.765", "8765 and 87651", "una ko")


def values() -> st.SearchStrategy[str]:
    return st.one_of(*map(st.sampled_from, (USERS, ORDERS, ORDERS, ODD)))


def prose() -> st.SearchStrategy[str]:
    framed = st.builds(lambda frame, value: frame.format(value), st.sampled_from(FRAMES[:8]), values())
    hard = st.builds(lambda frame, value: frame.format(value), st.sampled_from(FRAMES), values())
    texts = st.one_of(st.sampled_from(SAID), framed, framed, hard)
    return st.lists(texts, min_size=1, max_size=2).map(" ".join)


def numbers() -> st.SearchStrategy[Any]:
    return st.sampled_from([8765, 87651, 12, 3.5, 8765.0, True, None, -8765])


def data(depth: int = 2) -> st.SearchStrategy[Any]:
    """A JSON value with ids as values, in lists, as names of members, and in texts that are JSON themselves."""
    leaf = st.one_of(values(), prose(), numbers())
    if not depth:
        return leaf
    inner = data(depth - 1)
    names = st.one_of(st.sampled_from(["user_id", "order_id", "order_id", "note", "n"]), values())
    return st.one_of(leaf, st.lists(inner, max_size=2), st.dictionaries(names, inner, max_size=3), inner.map(text_of))


def text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def arguments() -> st.SearchStrategy[str]:
    usual = st.fixed_dictionaries({}, optional={"user_id": st.sampled_from(USERS[:3]), "order_id": values()})
    listed = st.fixed_dictionaries({"order_id": st.lists(st.one_of(values(), numbers()), max_size=2)})
    number = st.fixed_dictionaries({"order_id": st.sampled_from([8765, 4321, -8765, 3.25])})
    deep = st.dictionaries(st.sampled_from(["q", "order_id"]), data(), max_size=2)
    return st.one_of(usual, usual, listed, number, deep).map(text_of)


@st.composite
def calls(draw: st.DrawFn, n: int) -> Call:
    state = draw(st.sampled_from(["json"] * 8 + ["invalid", "none"]))
    text = draw(arguments())
    args, raw = {"json": (text, None), "invalid": (None, "{" + text), "none": (None, None)}[state]
    call = Call(str(n), draw(st.sampled_from(["search", "book", "book"])), args, raw, state)  # type: ignore[arg-type]
    call.requestor = draw(st.sampled_from(["agent"] * 5 + ["user"]))
    return call


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Turns in an order that real runs have: who calls is answered, mostly."""
    turns: list[Turn] = []
    if draw(st.booleans()):
        turns.append(Turn("system", draw(prose()), "text"))
    turns.append(Turn("user", draw(prose()), "text"))
    for n in range(draw(st.integers(0, 5))):
        turn = Turn("assistant", draw(st.one_of(st.none(), prose())), "text")
        turn.content_kind = "text" if turn.content is not None else "null"
        turn.reasoning = draw(st.one_of(st.none(), st.none(), prose()))
        turn.calls = [draw(calls(10 * n + i)) for i in range(draw(st.integers(0, 2)))]
        turn.loss_weight = draw(st.sampled_from([1.0, 1.0, 1.0, 0.0]))
        turns.append(turn)
        for call in turn.calls:
            if draw(st.integers(0, 9)):
                result = Turn("tool", draw(st.one_of(prose(), data().map(text_of))), "text")
                result.tool_call_id = call.id
                result.is_error = draw(st.sampled_from([True, True, False, None]))
                turns.append(result)
        if not draw(st.integers(0, 2)):
            turns.append(Turn("user", draw(prose()), "text"))
    run = Run("openai", turns)
    run.task_id = draw(st.sampled_from(["a", "b", "c", "d"]))
    run.tools_json = draw(st.sampled_from([None, *TOOLS, '[{"type":"function","function":{"name":"W12345"}}]']))
    gold = st.fixed_dictionaries({"actions": st.lists(arguments().map(json.loads), max_size=2)})
    run.gold_json = draw(st.one_of(st.none(), st.none(), gold.map(text_of)))
    run.meta_json = text_of({"note": draw(prose())})
    return run


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, Finished]:
    found: dict[str, Finished] = {"first": [], "second": []}
    for run in draw(st.lists(runs(), min_size=1, max_size=5)):
        source = draw(st.sampled_from(["first", "first", "second"]))
        found[source].append(finished(run, set()))
    return found
