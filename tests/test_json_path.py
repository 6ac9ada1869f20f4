"""JSON canonical form, paths and the text of calls."""

from __future__ import annotations

import json
import math
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.compiler import json_path as J
from curatec.compiler.json_path import JsonPath, canonical, defects, extract, parse_path

quick = settings(max_examples=150, deadline=None, derandomize=True)
TEXTS = st.text(st.sampled_from('ab"\\é東😀\x00\n\u2028') | st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.integers() | st.integers(2**53 - 3, 2**53 + 3) | st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.sampled_from(["a", "b", "a b", "é", "", "x-y"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def one(text: str | None, path: str) -> tuple[str | None, str]:
    frame = extract(pl.Series([text], dtype=pl.String), [parse_path(path)])
    value, kind = frame.row(0)
    return value, kind


# --- the canonical form ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('{"b": 1.0, "a": [1e0, -0.0, -0]}', '{"a":[1,0,0],"b":1}'),
        ("0.10", "0.1"),
        ("1E-7", "1e-07"),
        ("1e17", "1e+17"),
        ("1e-400", "0"),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740992", "-9007199254740992"),
        ("9007199254740993", '"9007199254740993"'),
        ("-9007199254740993", '"-9007199254740993"'),
        ("[123456789012345678901234567890]", '["123456789012345678901234567890"]'),
        ("9" * 5000, '"' + "9" * 5000 + '"'),
        ("9007199254740993.0", "9007199254740992"),
        ('{"a": 1, "a": 2}', '{"a":2}'),
        ('{"a": 1, "a": 12345678901234567890}', '{"a":"12345678901234567890"}'),
        (r'"\ud83d\ude00"', '"😀"'),
        (r'"\ud83d!"', '"\ufffd!"'),
        (r'{"\ude00": 12345678901234567890123}', '{"\ufffd":"12345678901234567890123"}'),
        (r'"\/\u000a"', r'"/\n"'),
        (r'"\u0000\u007f"', '"\\u0000\x7f"'),
        (" \n{}\t", "{}"),
        ("null", "null"),
    ],
)
def test_canonical(text: str, want: str) -> None:
    assert canonical(text) == want
    assert canonical(want) == want


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "NaN",
        "-Infinity",
        "[NaN]",
        "1e400",
        "-1e400",
        '{"a": 1e400, "a": 1}',
        "9" * 400 + ".5",
        "01",
        "+1",
        ".5",
        "1.",
        "[1,]",
        "{a: 1}",
        "{'a': 1}",
        "'a'",
        "\ufeff1",
        '"a\tb"',
        "\xa01",
        "１",
        "1 2",
        r'"\x41"',
        '"\\ud83d',
    ],
)
@pytest.mark.parametrize("wrap", ["{}", '[{}, 12345678901234567890, "\\ud800"]'])
def test_invalid_whichever_way_it_is_read(text: str, wrap: str) -> None:
    text = wrap.replace("{}", text)
    assert canonical(text) is None
    assert defects(text) == ("invalid_json",)
    assert one(text, "a") == (None, "null")


def test_depth() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + "]" * depth

    assert canonical(nested(J.MAX_DEPTH)) == nested(J.MAX_DEPTH)
    assert canonical(nested(J.MAX_DEPTH + 1)) is None
    assert canonical(nested(100_000)) is None
    assert canonical('{"a":' * 100_000) is None
    flat = "[" + ",".join(["{}", '"[[\\"["'] * 300) + "]"
    assert canonical(flat) == flat


def reference(value: Any) -> Any:
    """The canonical value, from one that Python's own reader gave."""
    if isinstance(value, dict):
        return {key: reference(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list(map(reference, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)
    return int(value) if value.is_integer() and abs(value) <= 2**53 else value


@quick
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_canonical_agrees_with_the_standard_library(value: Any, escape: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escape, indent=indent)
    want = json.dumps(reference(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
    assert canonical(text) == want
    assert canonical(want) == want


@quick
@given(st.text('[]{}":,\\ud8e0123456789.-+E tfnalsr', max_size=30))
def test_what_is_accepted_is_what_the_standard_library_accepts(text: str) -> None:
    try:
        value = json.loads(text)
        accepted = all(map(math.isfinite, floats(value)))
    except ValueError:
        accepted = False
    assert (canonical(text) is not None) == accepted


def floats(value: Any) -> list[float]:
    if isinstance(value, float):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [number for item in inner for number in floats(item)]


def test_canonical_series() -> None:
    texts = pl.Series(['{"b":1,"a":2.0}', None, "oops", '{"a":2,"b":1}'])
    assert J.canonical_series(texts).to_list() == ['{"a":2,"b":1}', None, None, '{"a":2,"b":1}']
    assert J.canonical_series(pl.Series([], dtype=pl.String)).to_list() == []


def test_defects() -> None:
    assert defects('{"a": [1, "x"]}') == ()
    text = r'{"a": 9007199254740993, "a": "\ud800"}'
    assert defects(text) == ("big_integer", "duplicate_key", "lone_surrogate")
    assert defects('{"a": {"b": 1, "b": 1}}') == ("duplicate_key",)


# --- paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("x", ("x",)),
        (".x.y", ("x", "y")),
        ('x["a.b"][0].y', ("x", "a.b", 0, "y")),
        ('["a\\"]b"]', ('a"]b',)),
        ('[""][12]', ("", 12)),
        ("$", ()),
        ('["東京"]', ("東京",)),
    ],
)
def test_parse_path(text: str, steps: tuple[str | int, ...]) -> None:
    path = parse_path(text)
    assert path == JsonPath(steps)
    assert parse_path(str(path)) == path


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", 0),
        ("x..y", 1),
        ("x.", 1),
        ("x[-1]", 1),
        ("x[a]", 1),
        ("x y", 1),
        ("[0]x", 3),
        ('x["a]', 1),
        ("x['a']", 1),
        ('["\\q"]', 2),
        ("x[1234567890]", 1),
        ("é", 0),
    ],
)
def test_parse_path_says_where(text: str, start: int) -> None:
    with pytest.raises(J.PathSyntaxError) as caught:
        parse_path(text)
    assert caught.value.start == start


@quick
@given(st.lists(TEXTS | st.integers(0, 999), max_size=4))
def test_paths_print_and_parse(steps: list[str | int]) -> None:
    path = JsonPath(tuple(steps))
    assert parse_path(str(path)) == path


# --- extraction -----------------------------------------------------------------------------------------------------

DOC = (
    '{"s":"x","e":"","n":1.0,"f":0.5,"t":true,"z":null,"o":{"k":[10,{"d":"in"}]},"l":[],"m":{},"big":9007199254740993}'
)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("s", ("x", "string")),
        ("e", ("", "string")),
        ("n", ("1", "number")),
        ("f", ("0.5", "number")),
        ("t", ("true", "bool")),
        ("z", (None, "null")),
        ("nowhere", (None, "null")),
        ("o", (None, "object")),
        ("o.k", (None, "array")),
        ("o.k[0]", ("10", "number")),
        ("o.k[1].d", ("in", "string")),
        ("o.k[2]", (None, "null")),
        ("o.k.d", (None, "null")),
        ("o[0]", (None, "null")),
        ("s[0]", (None, "null")),
        ("l", (None, "empty")),
        ("m", (None, "empty")),
        ("big", ("9007199254740993", "string")),
        ("$", (None, "object")),
    ],
)
def test_extract(path: str, want: tuple[str | None, str]) -> None:
    assert one(DOC, path) == want


def test_extract_keeps_rows_and_names_columns() -> None:
    texts = pl.Series(['{"a":1}', None, '{"a":2}', '{"a":1}', "broken", "[]"])
    frame = extract(texts, [parse_path("a"), parse_path('["a b"]')])
    assert frame.columns == ["a", "a#kind", '["a b"]', '["a b"]#kind']
    assert frame.schema["a"] == pl.String
    assert frame.schema["a#kind"] == J.KIND
    assert frame["a"].to_list() == ["1", None, "2", "1", None, None]
    assert frame["a#kind"].to_list() == ["number", "null", "number", "number", "null", "null"]
    assert extract(texts, []).shape == (6, 0)
    assert extract(texts.clear(), [parse_path("a")]).shape == (0, 2)
    with pytest.raises(ValueError, match="twice"):
        extract(texts, [parse_path("a"), parse_path(".a")])


@settings(quick, max_examples=80)
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2), min_size=1, max_size=4))
def test_duckdb_extracts_the_same_from_the_canonical_text(values: list[Any]) -> None:
    texts = pl.Series("t", [json.dumps(value) for value in values])
    frame = extract(texts, [parse_path("a"), parse_path("b[0]"), parse_path('a["x-y"]')])
    plain = pl.DataFrame({"t": J.canonical_series(texts)})
    sql = """select json_extract_string(t, '$.a') as a, json_extract_string(t, '$.b[0]') as b,
                    json_extract_string(t, '$.a."x-y"') as x, t from plain"""
    for ours, duck in zip(frame.iter_rows(), duckdb.sql(sql).fetchall(), strict=True):
        for (text, kind), other in zip([ours[0:2], ours[2:4], ours[4:6]], duck, strict=False):
            if kind in ("string", "bool", "null"):
                assert text == other
            elif kind == "number":
                assert float(text) == float(other)
    assert plain.height == len(values)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("12", 12),
        ("+012", 12),
        ("-7", -7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("", None),
        ("1.0", None),
        (" 1", None),
        ("1\n", None),
        ("٣", None),
        ("1e3", None),
        (None, None),
    ],
)
def test_as_int_of_a_text(text: str | None, want: int | None) -> None:
    frame = pl.DataFrame({"t": [text]}, schema={"t": pl.String})
    out = frame.select(J.as_int(pl.col("t")))
    assert out.item() == want
    assert out.dtypes == [pl.Int64]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", None),
        ("true", None),
        ('"12"', 12),
        ('"1.0"', None),
        ("-0.0", 0),
        ("{}", None),
        ("9007199254740993", 9007199254740993),
        ("1e17", 10**17),
        ("1e18", None),
        ("1e300", None),
        ("null", None),
    ],
)
def test_as_int_of_a_path(value: str, want: int | None) -> None:
    frame = extract(pl.Series([f'{{"a": {value}}}']), [parse_path("a")])
    assert frame.select(J.as_int(pl.col("a"), pl.col("a#kind"))).item() == want


def test_predicates_on_paths() -> None:
    texts = pl.Series(['{"a":""}', '{"a":"x"}', '{"a":{}}', '{"a":{"b":1}}', '{"a":null}', '{"a":2.50}', None])
    frame = extract(texts, [parse_path("a")])
    text, kind = pl.col("a"), pl.col("a#kind")
    assert frame.select(J.is_null(kind)).to_series().to_list() == [False, False, False, False, True, False, True]
    assert frame.select(J.is_empty(text, kind)).to_series().to_list() == [True, False, True, False, False, False, False]
    assert frame.select(J.as_number(text, kind)).to_series().to_list() == [None] * 5 + [2.5, None]


@quick
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_numbers_survive_the_text(numbers: list[float]) -> None:
    frame = extract(pl.Series([json.dumps({"a": n}) for n in numbers]), [parse_path("a")])
    assert frame.select(J.as_number(pl.col("a"), pl.col("a#kind"))).to_series().to_list() == numbers


# --- calls ----------------------------------------------------------------------------------------------------------

CALL = pl.Struct({"name": pl.String, "args_json": pl.String, "args_raw": pl.String})


def test_calls_text() -> None:
    calls = [
        [("f", '{"b": 1.0, "a": "é"}', None), ("g", "{}", None)],
        [],
        None,
        [("h", None, None)],
        [("h", None, "{oops"), (None, '{"x": NaN}', None)],
        [("f", '{"a":"\\u00e9","b":1}', None), ("g", "{}", None)],
    ]
    rows = [None if c is None else [dict(zip(CALL.to_schema(), x, strict=True)) for x in c] for c in calls]
    out = J.calls_text(pl.Series(rows, dtype=pl.List(CALL)))
    first = 'f({"a":"é","b":1})\ng({})'
    assert out.to_list() == [first, None, None, "h()", 'h({oops)\n({"x": NaN})', first]
    assert out.name == "calls_text"


def test_calls_text_without_rows_or_raw_arguments() -> None:
    narrow = pl.List(pl.Struct({"name": pl.String, "args_json": pl.String}))
    assert J.calls_text(pl.Series([], dtype=narrow)).to_list() == []
    assert J.calls_text(pl.Series([None, []], dtype=narrow)).to_list() == [None, None]


@settings(quick, max_examples=60)
@given(st.lists(st.lists(st.tuples(st.none() | KEYS, st.none() | VALUES.map(json.dumps)), max_size=3), max_size=4))
def test_calls_text_is_the_reference(turns: list[list[tuple[str | None, str | None]]]) -> None:
    narrow = pl.List(pl.Struct({"name": pl.String, "args_json": pl.String}))
    rows = [[{"name": name, "args_json": args} for name, args in calls] for calls in turns]
    assert J.calls_text(pl.Series(rows, dtype=narrow)).to_list() == list(map(J.calls_text_of, turns))
