"""Rows that are made by columns are those that are made one by one: at random over the canonical turns, so that runs
have what no format gives; with what becomes of runs that give none."""

from __future__ import annotations

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
OBJECTS = st.sampled_from(
    [
        '{"q": 1}',
        "{}",
        '{"q":\r\n"a b"}',
        '{"é": [1.0, 1e5]}',
        '{"n": 12345678901234567890}',
        '{"n": 1000000000000000000}',
        '{"n": ' + "9" * 30 + "}",
        '{"d": ' + "[" * 950 + "]" * 950 + "}",
        '{"s": "' + "[" * 950 + '"}',
    ]
)


def seldom(draw: st.DrawFn, often: int = 9) -> bool:
    return draw(st.integers(0, often)) == 0


# ---- turns ----


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    """The turns of a run: mostly a conversation as it should be, now and then with a fault."""
    odd = seldom(draw, 2)
    turns: list[Record] = [] if seldom(draw) else [{"role": "system", "content": draw(TEXTS)}]
    for _ in range(0 if seldom(draw) else draw(st.integers(1, 3))):
        turns.append({"role": "user", "content": draw(TEXTS)})
        for _ in range(draw(st.integers(1, 2))):
            turns += draw(exchanges(odd))
    for number, turn in enumerate(turns):
        turn["turn"] = number + 2  # numbers are those of the source, in which other turns stood
        turn.setdefault("calls", [])
        turn["edited"] = seldom(draw, 5)
    _link(draw, turns, odd)
    if odd and turns and draw(st.booleans()):
        _harm(draw, turns)
    return turns


@st.composite
def exchanges(draw: st.DrawFn, odd: bool) -> list[Record]:
    """What the assistant says and calls, with the results."""
    said: Record = {"role": "assistant", "content": draw(st.none() | TEXTS | (THOUGHTS if odd else TEXTS))}
    said["reasoning"] = draw(st.none() | st.none() | TEXTS)
    said["loss_weight"] = 0.0 if seldom(draw, 5) else draw(st.sampled_from([0.5, 1.0])) if odd else 1.0
    said["copied_context"] = draw(st.sampled_from([None, False, False, True]))
    said["calls"] = [draw(made(odd)) for _ in range(draw(st.integers(0, 2)))]
    order = draw(st.permutations(range(len(said["calls"]))))
    results = [{"role": "tool", "content": draw(st.none() | TEXTS), "index": k} for k in order]
    for told in results:
        told["tool_name"] = draw(st.sampled_from([None, "", "f", 'g"']))
    return [said, *results]


@st.composite
def made(draw: st.DrawFn, odd: bool) -> Record:
    call: Record = {"id": draw(st.uuids()).hex, "name": "f", "requestor": "agent", "args_state": "json"}
    call |= {"args_json": draw(OBJECTS if odd else st.sampled_from(['{"q": 1}', "{}", '{"q":\n1}'])), "args_raw": None}
    if seldom(draw, 3):
        call["id"] = draw(st.sampled_from([None, "", "same", "call_3_0"] if odd else [None, ""]))
    if odd and seldom(draw):
        call["name"] = draw(st.sampled_from([None, "", "é\n"]))
    match draw(st.integers(0, 9)):
        case 0:
            call |= {"args_state": "none", "args_json": None}
        case 1:
            call |= {"args_state": "repaired", "args_raw": "{'q': 1}"}
        case 2:
            call |= {"args_raw": '{"q":  1}'}
        case 3 if odd:
            call |= {"args_state": "invalid", "args_json": None, "args_raw": draw(st.sampled_from([None, "no"]))}
    return call


def _link(draw: st.DrawFn, turns: list[Record], odd: bool) -> None:
    """Results know their calls."""
    caller = None
    for turn in turns:
        if turn["role"] != "tool":
            caller = turn["turn"]
            continue
        turn |= {"call_turn": caller, "call_index": turn.pop("index")}
        if odd and seldom(draw):
            turn |= {
                "call_turn": draw(st.none() | st.integers(0, 9)),
                "call_index": draw(st.none() | st.integers(-1, 2)),
            }


def _harm(draw: st.DrawFn, turns: list[Record]) -> None:
    """One fault more."""
    at = draw(st.integers(0, len(turns) - 1))
    match draw(st.integers(0, 6)):
        case 0:
            del turns[at]
        case 1:
            turns.insert(at, {**turns[at], "role": draw(st.sampled_from(["system", "event", "user"]))})
            for number, turn in enumerate(turns):
                turn["turn"] = number + 2
        case 2:
            turns[at]["parts"] = [{"kind": draw(st.sampled_from(["text", "image"])), "text": "a"}]
            turns[at]["content_kind"] = "parts"
        case 3:
            for call in turns[at]["calls"]:
                call["requestor"] = "user"
        case 4:
            turns[at]["role"] = draw(st.sampled_from(["user", "system", "event", "tool", "assistant"]))
        case 5:
            turns[at]["content"] = draw(THOUGHTS)
        case 6:
            turns[at]["loss_weight"] = -1.0


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
    event(f"{[rows.height for rows in made.rows]} rows one by one, by columns")
    rows = pl.concat(made.rows).sort("position").to_dicts()
    fates = pl.concat(made.fates).sort(list(FATES)).to_dicts()
    return [rows, fates, made.masks, sorted(made.fractional)]


@settings(max_examples=150, deadline=None, derandomize=True)
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
        "except reasoning",
        "fit 500 tokens else window",
        "format openai",
        "reasoning strip",
        "context { task, last 1 results }",
    ],
)
def test_regular_runs_are_made_by_columns(made: Make, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    monkeypatch.setattr(sft_rows.OneByOne, "take", refuse)
    records = [plain(), plain(0), run("2", user("a"), calls((None, "find", "{}")), result(None), says("b"))]
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
