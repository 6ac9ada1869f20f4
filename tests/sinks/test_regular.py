"""Rows that are made by columns are those that are made one by one: at random over the canonical turns, so that runs
have what no format gives; with what becomes of runs that give none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from curatec.compiler import plan
from curatec.compiler.core import Column
from curatec.compiler.frames import Frames
from curatec.compiler.types import Level, Type
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.conversation import training
from curatec.runtime.sinks import sft, sft_rows
from curatec.runtime.sinks.account import FATES
from curatec.runtime.sinks.place import PLACE, SPLIT, WINDOWS
from curatec.runtime.sinks.sft_rows import Rows
from curatec.runtime.state import State
from curatec.runtime.tables import TURNS
from curatec.runtime.turns import Turns

from .conftest import TOOLS, Make, Record, calls, result, run, says, system, user

TOOLSETS = {"good": '[{"name": "f"}, {"b":\n1e2}]', "wide": '[{"n": 123456789012345678901234567890}]', "none": "[]"}
TEXTS = st.sampled_from(
    ["", "ok", 'a "quoted" \\ line\n', "é\U0001f600\u2028", "\x00\x1f\x7f", " \u3000\x1c", "x" * 30]
) | st.text(max_size=6)
THOUGHTS = st.sampled_from(["<think>hm</think>\n\nyes", "<think>cut", "so</think> no", "<think></think>"])
ARGUMENTS = st.sampled_from(['{"q": 1}', "{}", '{"q":\r\n"a b"}', '{"é": [1.0, 1e5]}', '{"n": 1000000000000000000}'])
HARD = st.sampled_from(
    [
        '{"n": 12345678901234567890}',
        '{"n": ' + "9" * 30 + "}",
        '{"d": ' + "[" * 950 + "]" * 950 + "}",
        '{"s": "' + "[" * 950 + '"}',
    ]
)


def seldom(draw: st.DrawFn, often: int = 9) -> bool:
    return draw(st.sampled_from([*[False] * often, True]))


# ---- turns ----


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """The turns of a run: a conversation as it should be, or one with a fault or two."""
    turns: list[Record] = [] if seldom(draw, 3) else [{"role": "system", "content": draw(TEXTS)}]
    for _ in range(0 if seldom(draw) else draw(st.integers(1, 2))):
        turns.append({"role": "user", "content": draw(TEXTS)})
        for _ in range(draw(st.integers(1, 2))):
            turns += draw(exchanges())
    for number, turn in enumerate(turns):
        turn["turn"] = number + 2  # numbers are those of the source, in which other turns stood
        turn.setdefault("calls", [])
        turn["edited"] = seldom(draw)
    caller = None
    for turn in turns:  # results know their calls
        if turn["role"] != "tool":
            caller = turn["turn"]
        else:
            turn |= {"call_turn": caller, "call_index": turn.pop("index")}
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        if turns:
            draw(st.sampled_from(FAULTS))(draw, turns)
    return turns


@st.composite
def exchanges(draw: st.DrawFn) -> list[Record]:
    """What the assistant says and calls, with the results."""
    said: Record = {"role": "assistant", "content": draw(TEXTS | st.none())}
    said["reasoning"] = draw(st.none() | TEXTS)
    said["loss_weight"] = 0.0 if seldom(draw) else 1.0
    said["copied_context"] = draw(st.sampled_from([None, *[False] * 5, True]))
    said["calls"] = [draw(made()) for _ in range(draw(st.integers(0, 2)))]
    order = draw(st.permutations(range(len(said["calls"]))))
    results = [{"role": "tool", "content": draw(st.none() | TEXTS), "index": k} for k in order]
    for told in results:
        told["tool_name"] = draw(st.sampled_from(["f", None, "", 'g"']))
    return [said, *results]


@st.composite
def made(draw: st.DrawFn) -> Record:
    call: Record = {"id": draw(st.uuids()).hex, "name": draw(st.sampled_from(["f", "é\n"])), "requestor": "agent"}
    call |= {"args_state": "json", "args_json": draw(ARGUMENTS), "args_raw": None}
    if seldom(draw, 3):
        call["id"] = draw(st.sampled_from([None, ""]))
    match draw(st.integers(0, 5)):
        case 1:
            call |= {"args_state": "none", "args_json": None}
        case 2:
            call |= {"args_state": "repaired", "args_raw": "{'q': 1}"}
        case 3:
            call |= {"args_raw": '{"q":  1}'}
    return call


# ---- faults: each is about some turn of a run ----


def some(draw: st.DrawFn, turns: list[Record], *roles: str) -> Record:
    """A turn of one of the roles, if there is one."""
    return draw(st.sampled_from([turn for turn in turns if turn["role"] in roles] or turns))


def call_of(draw: st.DrawFn, turns: list[Record]) -> Record:
    """A call, perhaps of none of the turns."""
    return draw(st.sampled_from([call for turn in turns for call in turn["calls"]] or [{}]))


def a_turn_less(draw: st.DrawFn, turns: list[Record]) -> None:
    turns.remove(some(draw, turns, "tool", "assistant"))


def a_turn_more(draw: st.DrawFn, turns: list[Record]) -> None:
    at = draw(st.integers(0, len(turns)))
    turns.insert(at, {**some(draw, turns, "tool"), "role": draw(st.sampled_from(["system", "event", "user", "tool"]))})
    turns[at]["turn"] = 99


def another_role(draw: st.DrawFn, turns: list[Record]) -> None:
    some(draw, turns, "assistant", "tool")["role"] = draw(st.sampled_from(["user", "system", "event", "tool"]))


def another_call(draw: st.DrawFn, turns: list[Record]) -> None:
    told = some(draw, turns, "tool")
    told["call_turn"] = draw(st.sampled_from([told.get("call_turn"), None, 2, 3, 4, 5]))
    told["call_index"] = draw(st.sampled_from([0, 1, 2, -1, None]))


def an_image(draw: st.DrawFn, turns: list[Record]) -> None:
    parts = [{"kind": draw(st.sampled_from(["image", "text"])), "text": "a"}]
    some(draw, turns, "user", "tool").update(parts=parts, content_kind="parts")


def a_user_simulators_call(draw: st.DrawFn, turns: list[Record]) -> None:
    call_of(draw, turns)["requestor"] = "user"


def a_nameless_call(draw: st.DrawFn, turns: list[Record]) -> None:
    call_of(draw, turns)["name"] = draw(st.sampled_from([None, ""]))


def an_id_again(draw: st.DrawFn, turns: list[Record]) -> None:
    call, other = call_of(draw, turns), call_of(draw, turns)
    other["id"] = draw(st.sampled_from([call.get("id"), "call_3_0"]))


def hard_arguments(draw: st.DrawFn, turns: list[Record]) -> None:
    call_of(draw, turns).update(args_state="json", args_json=draw(HARD))


def no_arguments(draw: st.DrawFn, turns: list[Record]) -> None:
    raw = draw(st.sampled_from([None, "no", "[1]"]))
    call_of(draw, turns).update(args_state="invalid", args_json=None, args_raw=raw)


def a_thought(draw: st.DrawFn, turns: list[Record]) -> None:
    some(draw, turns, "assistant")["content"] = draw(THOUGHTS)


def half_a_weight(draw: st.DrawFn, turns: list[Record]) -> None:
    some(draw, turns, "assistant")["loss_weight"] = draw(st.sampled_from([0.5, 2.0, 0.5, -1.0]))


FAULTS = [
    a_turn_less,
    a_turn_more,
    another_role,
    another_call,
    an_image,
    a_user_simulators_call,
    a_nameless_call,
    an_id_again,
    hard_arguments,
    no_arguments,
    a_thought,
    half_a_weight,
]


TARGETS = st.builds(
    plan.Sft,
    loss=st.builds(
        plan.Loss,
        where=st.sampled_from([*[None] * 5, Column(Level.TURN, "copied_context", Type.BOOL)]),
        except_reasoning=st.booleans(),
        only_last=st.booleans(),
        including_edited=st.booleans(),
    ),
    fit_tokens=st.sampled_from([None, None, None, 12, 60]),
    overflow=st.sampled_from(["drop", "window", "cut"]),
    format=st.sampled_from(["trl", "openai"]),
    reasoning=st.sampled_from(["keep", "last", "strip"]),
    context=st.sampled_from([None, None, None, plan.Context(system=False, results=1, elide=None)]),
)


def batch(given: list[list[Record]], toolsets: list[str | None]) -> Frames:
    defaults = {"content_kind": "text", "loss_weight": 1.0, "copied_context": False, "edited": False}
    turns = [{"row": row, **defaults, **turn} for row, own in enumerate(given) for turn in own]
    schema = {**TURNS, "edited": pl.Boolean}
    columns = {name: pl.Series(name, [t.get(name) for t in turns], dtype=dtype) for name, dtype in schema.items()}
    n = len(given)
    about = {name: [None] * n for name in ("license", "trial", "reward", "success", "model", "agent")}
    text = {
        name: [f"{name}-{i}" for i in range(n)] for name in ("id", "source", "task", "domain", "task_id", "outcome")
    }
    rows = pl.DataFrame(
        {
            **text,
            **about,
            "origin": [f"id-{i}" for i in range(n)],
            "toolset": pl.Series(toolsets, dtype=pl.String),
            "row": pl.int_range(n, dtype=pl.UInt32, eager=True),
            PLACE: pl.Series([(7 * i) % n * WINDOWS for i in range(n)], dtype=pl.UInt64),
            SPLIT: ["train"] * n,
        }
    ).cast({"license": pl.String})
    return Frames(rows, pl.DataFrame(columns), toolsets=TOOLSETS)


def facts(frames: Frames, target: plan.Sft, *, one_by_one: bool) -> list[Any]:
    """All that is made of a batch, or what is said instead."""
    shape = sft.columns(target)
    state = State(frames.runs, Turns(), TOOLSETS)
    try:
        made = Rows(state, target, shape, shape, one_by_one=one_by_one).of(frames)
    except CuratecError as error:
        return list(error.diagnostics)
    if not one_by_one:
        event(f"{made.rows[0].height} rows by columns, {sum(rows.height for rows in made.rows[1:])} one by one")
    rows = pl.concat(made.rows).sort("position").to_dicts()
    fates = pl.concat(made.fates).sort(list(FATES)).to_dicts()
    return [rows, fates, made.masks, sorted(made.fractional)]


@pytest.fixture(autouse=True, scope="module")
def _few_at_a_time() -> Iterator[None]:
    """So that runs of one batch are made in several portions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_PORTION", 2)
        patch.setattr(sft_rows, "_PORTION", 1)
        yield


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data(), TARGETS)
def test_by_columns_as_one_by_one(data: st.DataObject, target: plan.Sft) -> None:
    given = data.draw(st.lists(runs(), min_size=4, max_size=4))
    toolsets = data.draw(
        st.lists(st.sampled_from([None, "good", "good", *TOOLSETS]), min_size=len(given), max_size=len(given))
    )
    frames = batch(given, toolsets)
    wanted, found = (facts(frames, target, one_by_one=one_by_one) for one_by_one in (True, False))
    assert found == wanted


# ---- which way is taken ----


def plain(n: int = 3, **more: Any) -> Record:
    called = calls(*((f"c{k}", "find", {"k": k}) for k in range(n)), text="é", **more)
    return run("1", system(), user("Go"), called, *(result(f"c{k}") for k in range(n)), says("Done"), tools=TOOLS)


@pytest.mark.parametrize(
    "loss",
    [
        "",
        "only last",
        "where count(calls) > 0",
        "except reasoning",
        "fit 500 tokens else window",
        "format openai",
        "reasoning strip",
        "context { task, last 1 results }",
    ],
)
def test_regular_runs_are_made_by_columns(made: Make, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    monkeypatch.setattr(sft_rows.OneByOne, "take", refuse)
    records = [plain(), plain(1), run("2", user("a"), calls((None, "find", "{}")), result(None), says("b"))]
    got = made(records, f"emit sft {{ loss on assistant {loss} }}")
    assert got.written["sft"].rows == {"train": 3}


@pytest.mark.parametrize(
    "body",
    [
        "loss on assistant except reasoning",
        "loss on assistant fit 3 tokens else cut oldest exchange",
        "format sharegpt",
    ],
)
def test_others_are_made_one_by_one(made: Make, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(sft_rows.OneByOne, "take", refuse)
    with pytest.raises(NotImplementedError):
        made([run("1", user("a"), says("<think>so</think>b"))], f"emit sft {{ {body} }}")


def refuse(*_: object) -> None:
    raise NotImplementedError
