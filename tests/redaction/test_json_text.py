"""Strings and numbers of JSON text are rewritten where they stand, and nothing else."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.redaction.json_text import rewritten
from tests.semantics.tools import quick

_PLANTED = "jane@example.com"
_WORDS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["a", 'q"\\', "\n\u2028", "é", "[", "{}"])
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _WORDS
    | st.builds(lambda a, b: f"{a} {_PLANTED} {b}", _WORDS, _WORDS)
)  # fmt: skip
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4), max_leaves=12
)
_ARGUMENTS = st.dictionaries(_WORDS, _VALUES, max_size=4)
_LAYOUTS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n ", "\t: ")])


def mask(text: str, member: str | None) -> str:
    return text.replace(_PLANTED, "[EMAIL_1]")


def expected(value: Any) -> Any:
    """The same by another way: through objects."""
    match value:
        case str():
            return mask(value, None)
        case list():
            return [expected(item) for item in value]
        case dict():
            return {key: expected(item) for key, item in value.items()}
    return value


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1, 1.0, true and 0.0, -0.0 apart."""
    match left, right:
        case dict(), dict():
            return list(left) == list(right) and all(same(left[k], right[k]) for k in left)
        case list(), list():
            return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
        case float(), float():
            return left == right and math.copysign(1, left) == math.copysign(1, right)
    return type(left) is type(right) and left == right


@quick(4)
@given(_ARGUMENTS, _LAYOUTS, st.booleans())
def test_arguments_keep_their_shape(arguments: dict[str, Any], layout: tuple[str, str], ascii_only: bool) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii_only, separators=layout)
    new = rewritten(text, mask, keys=False)
    assert same(json.loads(new), expected(arguments))
    if _PLANTED not in text:
        assert new == text
    elif not ascii_only:  # whatever stands between the values is as it was, to the byte
        assert new == text.replace(_PLANTED, "[EMAIL_1]")


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ('{ "a" :  "é jane@example.com", "b": 1e5 }', '{ "a" :  "é [EMAIL_1]", "b": 1e5 }'),
        (r'{"a": "\u00e9 jane\u0040example.com", "b": "\u00e9"}', r'{"a": "\u00e9 [EMAIL_1]", "b": "\u00e9"}'),
        (r'{"a": "\ud800 jane@example.com"}', r'{"a": "\ud800 [EMAIL_1]"}'),
        ('{"x": NaN, "a": "jane@example.com"}', '{"x": NaN, "a": "[EMAIL_1]"}'),
        ('{"a": "jane@example.com", "a": "x"}', '{"a": "[EMAIL_1]", "a": "x"}'),
        ('{"jane@example.com": "jane@example.com"}', '{"jane@example.com": "[EMAIL_1]"}'),
        (r'{"a": "{\"b\": [\"jane@example.com\"]}"}', r'{"a": "{\"b\": [\"[EMAIL_1]\"]}"}'),
        ("{'a': 'jane@example.com'}", "{'a': '[EMAIL_1]'}"),
        ('{"a": "jane@example.com"', '{"a": "[EMAIL_1]"'),
        ("", ""),
    ],
)  # fmt: skip
def test_texts(text: str, new: str) -> None:
    assert rewritten(text, mask, keys=False) == new


def test_names_of_members_are_texts_where_they_are_data() -> None:
    assert rewritten('{"jane@example.com": {"a": 1}}', mask, keys=True) == '{"[EMAIL_1]": {"a": 1}}'


def test_a_number_that_is_edited_becomes_a_string() -> None:
    new = rewritten('{"a": [12, -12, 3.5e2], "b": 12}', lambda text, member: "[N]" if text == "12" else text, keys=True)
    assert new == '{"a": ["[N]", -12, 3.5e2], "b": "[N]"}'


def test_members_are_told_to_their_values() -> None:
    seen: list[tuple[str, str | None]] = []

    def look(text: str, member: str | None) -> str:
        seen.append((text, member))
        return text

    rewritten('{"a": {"b": "1", "c": [2, {"d": "3"}, "4"]}, "e": "5"}', look, keys=False)
    assert seen == [("1", "b"), ("2", "c"), ("3", "d"), ("4", "c"), ("5", "e")]
