"""The JSON reader against values worked out by hand, and against the standard library on random values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.formats.json_text import JsonError, NonFinite, Reader, encode


def read(text: str) -> tuple[Any, set[str]]:
    reader = Reader()
    return reader.decode(text), reader.notes


SPELLINGS = """
1.0 1 -0 -0.0 0.10 1e5 1E5 1e-05 1.0e+10 100000.0 0.1 1e16 5e-324 1e-400 3.141592653589793238462643
18446744073709551615 18446744073709551616 -9223372036854775808 -9223372036854775809 123456789012345678901234567890
"""


@pytest.mark.parametrize("number", SPELLINGS.split())
def test_numbers_keep_their_spelling(number: str) -> None:
    value, notes = read(f'{{"n":{number}}}')
    assert encode(value) == f'{{"n":{number}}}'
    assert not notes


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_float_keeps_its_spelling(number: float) -> None:
    for text in (repr(number), f"{number:.17g}", f"{number:.20e}"):
        assert encode(read(text)[0]) == text


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999"])
def test_quirk_bare_nan_becomes_null_with_a_note(text: str) -> None:
    value, notes = read(f'{{"a":[{text}]}}')
    assert isinstance(value["a"][0], NonFinite)
    assert encode(value) == '{"a":[null]}'
    assert encode(value, raw=True) == f'{{"a":[{text}]}}'
    assert notes == {"nan"}


def test_key_order_is_the_source_s() -> None:
    assert encode(read('{"b":1,"a":2,"B":3}')[0]) == '{"b":1,"a":2,"B":3}'


def test_quirk_duplicate_key_last_one_wins() -> None:
    value, notes = read('{"a":1,"b":2,"a":3}')
    assert value == {"a": 3, "b": 2}
    assert notes == {"duplicate_key"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r'"\ud83d"', "�"),
        (r'"\ude00x"', "�x"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud83d\ude00"', "\\ud83d�"),
        (r'"\ud83d\ud83d\ude00"', "�\U0001f600"),
    ],
)
def test_quirk_lone_surrogates_become_replacement_characters(text: str, wanted: str) -> None:
    value, notes = read(text)
    assert value == wanted
    assert notes == ({"lone_surrogate"} if "�" in wanted else set())
    value.encode("utf-8")


def test_lone_surrogate_in_a_key() -> None:
    value, notes = read(r'{"\ud800":{"x":["\udfff"]}}')
    assert value == {"�": {"x": ["�"]}}
    assert notes == {"lone_surrogate"}


def test_quirk_u2028_inside_a_string() -> None:
    assert read('"a\u2028b\u0085c"')[0] == "a\u2028b\u0085c"


@pytest.mark.parametrize("depth", [2_000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", '{"a":}'])
def test_a_depth_bomb_is_an_error_not_a_crash(depth: int, brackets: str) -> None:
    opening, closing = brackets[:-1], brackets[-1]
    with pytest.raises(JsonError, match="nested too deeply"):
        read(opening * depth + "1" + closing * depth)


def test_what_is_too_deep_to_write_is_an_error() -> None:
    with pytest.raises(JsonError, match="nested too deeply"):
        encode(read("[" * 400 + "]" * 400)[0])


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ('{"a": 1', True),
        ('{"a": "long long long long long', True),
        ("[1, 2", True),
        ("[1 2, 3, 4, 5, 6, 7, 8, 9]", False),
    ],
)
def test_incomplete_text_is_told_from_wrong_text(text: str, cut: bool) -> None:
    with pytest.raises(JsonError) as caught:
        read(text)
    assert caught.value.cut is cut


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.booleans())
def test_reading_agrees_with_the_standard_library(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    found, notes = read(text)
    assert not notes
    assert json.loads(encode(found)) == json.loads(text)
