"""JSON by columns is what orjson writes."""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.json_columns import json_members, json_text
from curatec.runtime.sinks import columns as c

CODE_POINTS = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
TEXTS = st.text(max_size=5)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTS = st.integers(-(2**63), 2**63 - 1)


def told(values: pl.Series) -> list[str]:
    return pl.DataFrame({"v": values}).select(json_text(pl.col("v"))).to_series().to_list()


def test_every_character_is_escaped_alike() -> None:
    texts = [*CODE_POINTS, "", '","', '\\",', "a\\", "\\u0000", "x" * 1000 + '"']
    assert told(pl.Series(texts)) == [orjson.dumps(text).decode() for text in texts]


@given(st.lists(st.none() | FLOATS), st.lists(st.none() | INTS), st.lists(st.none() | st.booleans()))
def test_numbers_are_spelled_alike(floats: list[Any], ints: list[Any], flags: list[Any]) -> None:
    for values, dtype in ((floats, pl.Float64), (ints, pl.Int64), (flags, pl.Boolean)):
        assert told(pl.Series(values, dtype=dtype)) == [orjson.dumps(value).decode() for value in values]


def test_members_are_those_of_an_object() -> None:
    frame = pl.DataFrame({"a": ["x", None], "b": [[1.0], []]})
    assert frame.select(json_members(pl.col("a"), pl.col("b"))).to_series().to_list() == [
        '"a":"x","b":[1.0]',
        '"a":null,"b":[]',
    ]


def objects(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects whose keys stand in this order."""
    return st.tuples(*members.values()).map(lambda values: dict(zip(members, values, strict=True)))


SPAN = objects(message=INTS, part=TEXTS, call=st.none() | INTS, start=INTS, end=INTS)
ENTRY = objects(**{"from": TEXTS, "value": TEXTS})
VALUES: dict[c.Kind, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "texts": st.lists(TEXTS, max_size=2),
    "int": INTS,
    "ints": st.lists(INTS, max_size=2),
    "float": FLOATS,
    "floats": st.lists(FLOATS, max_size=2),
    "flag": st.booleans(),
    "json": st.sampled_from(['{"a": 1e2}', "[ ]", '"x"', "null"]),
    "objects": st.lists(st.sampled_from(['{"a": 1e2}', "{ }", '{"b":"\\u00e9"}']), max_size=2),
    "spans": st.lists(SPAN, max_size=2),
    "terms": st.lists(objects(name=TEXTS, weight=FLOATS), max_size=2),
    "entry": ENTRY,
    "entries": st.lists(ENTRY, max_size=2),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[c.Col, ...], list[dict[str, Any]]]:
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6))
    columns = tuple(c.Col(f"{kind}{i}", kind, "") for i, kind in enumerate(kinds))
    row = st.fixed_dictionaries({col.name: st.none() | VALUES[col.kind] for col in columns})
    return columns, draw(st.lists(row, max_size=3))


@given(tables())
def test_lines_by_columns_are_those_of_the_rows(table: tuple[tuple[c.Col, ...], list[dict[str, Any]]]) -> None:
    columns, rows = table
    assert c.has_lines(columns)
    wanted = [c.json_line(columns, row).decode() for row in rows]
    assert c.lines(columns, c.frame(columns, rows)).to_list() == wanted


def test_what_may_lack_a_key_has_no_lines_by_columns() -> None:
    rows = [{"m": [{"role": "user", "content": "a"}]}]
    shown = (c.Col("m", "chat", ""),)
    assert not c.has_lines(shown)
    assert c.json_line(shown, rows[0]) != c.lines(shown, c.frame(shown, rows)).item().encode()
