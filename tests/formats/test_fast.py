"""The fast reader against the careful one: whatever stands in a line, both give the same rows, and regular lines do go
the fast way."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from curatec.runtime.arrow_file import read as read_part
from curatec.runtime.formats import batches, parse
from curatec.runtime.formats.batches import Batch, of_file, of_lines
from curatec.runtime.formats.fast import reader_of
from curatec.runtime.formats.fast.strings import count, count_many
from curatec.runtime.formats.model import Adapter
from curatec.runtime.formats.openai import OPENAI
from curatec.runtime.formats.parse import Contents, Piece, parse_piece
from curatec.runtime.formats.trl import TRL

from .conftest import REPO, USER, assistant, call, chat, result
from .odd_lines import lines

ADAPTERS: dict[str, Adapter] = {"openai": OPENAI, "trl": TRL}
NEVER = 1 << 60


def read(data: bytes, adapter: Adapter, folder: Path, least: int) -> tuple[Contents, pl.DataFrame, pl.DataFrame]:
    """Contents, RUNS and TURNS of lines; those of at least `least` bytes by columns."""
    folder = Path(tempfile.mkdtemp(dir=folder))  # the tables of a part may be mapped into memory
    path = folder / "lines"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "FAST_LEAST", least)
        found = parse_piece(path, Piece(0, 0, len(data), 1), adapter, folder, lambda *_: None)
    frames = [read_part(folder / found.parts[0][name]) if found.parts else pl.DataFrame() for name in ("runs", "turns")]
    return found, frames[0], frames[1]


def check(data: bytes, adapter: Adapter, folder: Path) -> None:
    fast, careful = read(data, adapter, folder, 0), read(data, adapter, folder, NEVER)
    assert fast[0] == careful[0]
    for one, other in zip(fast[1:], careful[1:], strict=True):
        assert_frame_equal(one, other, check_exact=True)
        assert repr(one.rows()) == repr(other.rows())  # shows the sign of a zero


def regular(*rows: Any, adapter: Adapter = OPENAI) -> int:
    """How many of the records go the fast way."""
    reader = reader_of(adapter)
    assert reader is not None
    data = b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)
    return reader.read(Batch(data, len(data))).rows.runs.height


SAYS = {"role": "assistant", "content": "done"}
TURNS = [USER, assistant(call('{"a": 1}')), result(), SAYS]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("name", ADAPTERS)
@settings(max_examples=60, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=8), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_fast_and_careful_give_the_same(
    name: str, tmp_path_factory: pytest.TempPathFactory, drawn: list[bytes], end: bytes, ended: bool
) -> None:
    check(end.join(drawn) + (end if ended else b""), ADAPTERS[name], tmp_path_factory.getbasetemp())


REGULAR: dict[str, Any] = {
    "plain": chat(*TURNS),
    "facts": chat(*TURNS, id="1", task_id="t", domain="d", model="m", reward=1, success=True, trial=0, cost=0.25),
    "facts that are null": chat(
        *TURNS, id=None, reward=None, success=None, error=None, tools=None, gold=None, depth=None
    ),
    "a time": chat(*TURNS, started_at="2025-01-01T00:00:00Z"),
    "tools": chat(*TURNS, tools=TOOLS),
    "gold": chat(*TURNS, gold={"actions": [{"name": "look", "arguments": {"price": 1.50}}]}),
    "members without a column": chat(*TURNS, note={"deep": [1, 2.5, "x"]}, meta={"seed": 3}, quote='say "hi" \\'),
    "null members of messages": chat(USER, {**SAYS, "tool_calls": None, "name": None, "reasoning_content": None}),
    "no content at all": chat(USER, {"role": "assistant", "tool_calls": [call("{}")]}, result(), SAYS),
    "reasoning": chat(USER, {**SAYS, "reasoning_content": "hm"}),
    "two calls, answered the other way round": chat(
        USER, assistant(call("{}"), call("{}", id="c2")), result(id="c2"), result(), SAYS
    ),
    "a call without a result": chat(USER, assistant(call("{}"))),
    "nested arguments": chat(USER, assistant(call('{"a": {"b": [1, {"c": "x"}]}}')), result(), SAYS),
    "escapes": chat({"role": "user", "content": 'C:\\ "quoted" \\" \n\t\u2028😀'}, SAYS),
    "an event of the developer": chat({"role": "developer", "content": "be kind"}, USER, SAYS),
    "a call in text": chat(USER, {"role": "assistant", "content": "<tool_call>{}</tool_call>"}),
    "names that are numbers": chat(USER, SAYS, id=0, task_id=-7),
    "members of messages without a column": chat(
        {**USER, "cache": {"a": 1.50}}, {**SAYS, "refusal": None, "n": [None]}
    ),
    "members of messages that are null": chat({**USER, "usage": None, "function_call": None, "weight": None}, SAYS),
    "an index": chat(USER, assistant({**call("{}"), "index": 0}), result(), SAYS),
}


@pytest.mark.parametrize("what", REGULAR)
def test_regular_lines_go_the_fast_way(what: str, tmp_path: Path) -> None:
    assert regular(REGULAR[what]) == 1
    check((json.dumps(REGULAR[what]) + "\n").encode(), OPENAI, tmp_path)


IRREGULAR: dict[str, Any] = {
    "a key twice": b'{"messages":[{"role":"user","content":"a"}],"id":"1","id":"2"}\n',
    "a null key twice": b'{"messages":[{"role":"user","content":null,"content":"a"}]}\n',
    "a key twice in a call": b'{"messages":[{"role":"assistant","tool_calls":[{"id":"c","id":"c","function":'
    b'{"name":"f","arguments":"{}"}}]}]}\n',
    "NaN": b'{"messages":[{"role":"user","content":"a"}],"n":NaN}\n',
    "a number beyond a double": b'{"messages":[{"role":"user","content":"a"}],"reward":1e400}\n',
    "half a surrogate pair": b'{"messages":[{"role":"user","content":"\\ud800"}]}\n',
    "no UTF-8": b'{"messages":[{"role":"user","content":"\xff"}]}\n',
    "no UTF-8 in a member without a column": b'{"messages":[{"role":"user","content":"a"}],"n":"\xff"}\n',
    "a byte-order mark": b'\xef\xbb\xbf{"messages":[{"role":"user","content":"a"}]}\n',
    "nested too deeply": b'{"messages":[{"role":"user","content":"a"}],"n":' + b"[" * 300 + b"]" * 300 + b"}\n",
    "a torn line": b'{"messages":[{"role":"user"',
    "a blank line": b"  \n",
    "no messages": chat(),
    "an unknown role": chat({"role": "robot", "content": "x"}),
    "content in parts": chat({"role": "user", "content": [{"type": "text", "text": "x"}]}),
    "usage": chat(USER, {**SAYS, "usage": {"prompt_tokens": 3}}),
    "a weight": chat(USER, {**SAYS, "weight": 0}),
    "a defect in a member of a message": b'{"messages":[{"role":"user","content":"a","x":{"b":1,"b":2}}]}\n',
    "arguments as an object": chat(USER, assistant(call({"a": 1}))),
    "arguments with a key twice": chat(USER, assistant(call('{"a":1,"a":2}'))),
    "arguments with a key twice, spaced": chat(USER, assistant(call('{"a" :1,"a":2}'))),
    "arguments that are no object": chat(USER, assistant(call("[1]"))),
    "arguments in Python": chat(USER, assistant(call("{'a': 1}"))),
    "no arguments": chat(USER, assistant(call(""))),
    "a call without an id": chat(USER, assistant(call("{}", id=None))),
    "a call without a name": chat(USER, assistant(call("{}", name=""))),
    "an id twice": chat(USER, assistant(call("{}"), call("{}"))),
    "a result of no call": chat(USER, result()),
    "a result before its call": chat(USER, result(), assistant(call("{}"))),
    "two results of a call": chat(USER, assistant(call("{}")), result(), result()),
    "a result without an id": chat(USER, assistant(call("{}")), result(id=None)),
    "an id on another turn": chat({**USER, "tool_call_id": "c1"}),
    "the legacy call": chat({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}),
    "a crash": chat(USER, outcome="crash", reward=0),
    "an outcome that is none": chat(USER, outcome="solved"),
    "a reward that is a flag": chat(USER, reward=True),
    "a trial too large": chat(USER, trial=2**31),
    "a time that is none": chat(USER, started_at="yesterday"),
    "an id that is a fraction": chat(USER, id=7.0),
    "an id that is minus zero": b'{"messages":[{"role":"user","content":"a"}],"id":-0}\n',
    "an id of many digits": chat(USER, id=2**63),
    "tools that are none": chat(USER, tools=[1]),
    "the legacy tools": chat(USER, functions=[{"name": "f"}]),
}


@pytest.mark.parametrize("what", IRREGULAR)
def test_other_lines_go_to_the_careful_reader(what: str, tmp_path: Path) -> None:
    line = IRREGULAR[what] if isinstance(IRREGULAR[what], bytes) else json.dumps(IRREGULAR[what]).encode() + b"\n"
    assert regular(line) == 0
    check(line, OPENAI, tmp_path)
    around = json.dumps(chat(*TURNS)).encode() + b"\n"
    assert regular(around, line) == 1
    check(around + line if line.endswith(b"\n") else around + around + line, OPENAI, tmp_path)


def test_rows_of_trl_go_the_fast_way_too(tmp_path: Path) -> None:
    rows = [chat(*TURNS, tools=json.dumps(TOOLS)), chat(USER, SAYS, n=1)]
    assert regular(*rows, adapter=TRL) == 2
    for odd in (
        {"task": "d/t"},
        {"example_id": "x"},
        {"gold": "{}"},
        {"weights": [0, 1]},
        {"meta": "{}"},
        {"prompt": []},
    ):
        assert regular(chat(USER, SAYS, **odd), adapter=TRL) == 0
        rows.append(chat(USER, SAYS, **odd))
    check("".join(json.dumps(row) + "\n" for row in rows).encode(), TRL, tmp_path)


def test_every_line_of_the_benchmark_goes_the_fast_way(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("corpus", REPO / "benchmarks" / "corpus.py")
    assert spec is not None
    assert spec.loader is not None
    corpus = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus)
    made = list(islice(corpus.runs(150, 1), 150))
    assert regular(*made) == 150
    check(b"".join(made), OPENAI, tmp_path)


def test_real_messages_are_read_alike(shared_data: Path, tmp_path: Path) -> None:
    rows = [
        {**{key: item for key, item in row.items() if key != "traj"}, "messages": row["traj"]}
        for path in sorted(shared_data.glob("tau_bench/**/*.json"))
        for row in json.loads(path.read_text())
    ]
    rows += [
        {"messages": run["messages"], "reward": run["reward_info"]["reward"]}
        for path in sorted(shared_data.glob("tau2_bench/*/trajectories/*.json"))
        for run in json.loads(path.read_text())["simulations"]
    ]
    assert len(rows) == 570
    assert regular(*rows) >= 150
    for adapter in ADAPTERS.values():
        check("".join(json.dumps(row) + "\n" for row in rows).encode(), adapter, tmp_path)


STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


@given(st.lists(st.text(st.sampled_from('"\\a:{'), max_size=6)), st.booleans())
def test_strings_are_counted_as_a_tokenizer_does(texts: list[str], many: bool) -> None:
    data = json.dumps(dict.fromkeys(texts, texts)).encode()
    found = count_many(Batch(data + b'"', len(data))) if many else count(data)
    assert found == len(STRING.findall(data))


def test_a_line_longer_than_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curatec.runtime.formats.batches.BATCH", 1_000)
    rows = [chat({"role": "user", "content": "x" * (17 * k % 3_000)}, SAYS, n=k) for k in range(60)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    check(data, OPENAI, tmp_path)
    runs = read(data, OPENAI, tmp_path, 0)[1]
    assert runs["line"].to_list() == list(range(1, 61))
    assert runs["row"].to_list() == list(range(60))


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n"]), max_size=30).map(b"".join), st.integers(1, 40))
def test_batches_hold_whole_lines_and_all_of_them(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BATCH", size)
        for drawn in (of_file(io.BytesIO(data), len(data)), of_lines(io.BytesIO(data))):
            made = [(batch.count, list(map(bytes, batch.lines()))) for batch in drawn]
            assert [line for _, held in made for line in held] == list(io.BytesIO(data))
            assert all(held for _, held in made)
            assert sum(count for count, _ in made) == data.count(b"\n")
