"""One trajectory at once: same value, same placeholder; once and for all."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.redaction import Finder, Text, redact
from tests.redaction.samples import HARMLESS, IN_PLACE, PII, SECRETS
from tests.semantics.tools import quick

_FINDER = Finder(("pii", "secrets"))
_KNOWN = [value for values in (PII | SECRETS).values() for value in values]
_PLACED = [text for cases in IN_PLACE.values() for text, _ in cases]
_PLACEHOLDER = re.compile(r"\[[A-Z_]+_[1-9][0-9]*\]")


def done(*texts: str | Text) -> list[str]:
    given_ = [Text(text) if isinstance(text, str) else text for text in texts]
    made = redact(given_, _FINDER)
    return [new.value if new else old.value for old, new in zip(given_, made, strict=True)]


def test_the_same_value_has_the_same_placeholder() -> None:
    assert done(
        "I am ann@example.com, call (650) 555-0123.",
        '{"email": "Ann@example.com", "other": "bob@example.com"}',
        "+1 650-555-0123 and bob@example.com",
    ) == [
        "I am [EMAIL_1], call [PHONE_1].",
        '{"email": "[EMAIL_1]", "other": "[EMAIL_2]"}',
        "[PHONE_1] and [EMAIL_2]",
    ]  # fmt: skip


def test_a_value_found_once_gives_way_where_nothing_else_tells_it() -> None:
    secret = "s3cr3t" + "-Pa55"
    inside = f"not x{secret} nor {secret}5"
    assert done(f"DB_PASSWORD={secret}", f"try {secret}!", inside, f'{{"p": ["{secret}"]}}') == [
        "DB_PASSWORD=[PASSWORD_1]",
        "try [PASSWORD_1]!",
        inside,
        '{"p": ["[PASSWORD_1]"]}',
    ]
    assert done("item 6505550123", "phone: 6505550123") == ["item [PHONE_1]", "phone: [PHONE_1]"]


def test_plain_words_stay_elsewhere() -> None:
    assert done("http://ann:" + "secret" + "@example.com", "it is secret") == [
        "http://ann:[BASIC_AUTH_1]@example.com",
        "it is secret",
    ]


def test_a_number_becomes_a_string() -> None:
    assert done('{"phone": 6505550123, "id": 6505550124}') == ['{"phone": "[PHONE_1]", "id": 6505550124}']


def test_arguments_keep_their_names() -> None:
    text = '{"ann@example.com": "ann@example.com"}'
    assert done(Text(text, keys=False), text) == ['{"ann@example.com": "[EMAIL_1]"}', '{"[EMAIL_1]": "[EMAIL_1]"}']


def test_what_is_out_of_scope_stays_and_is_not_asked() -> None:
    assert done(Text("ann@example.com", within=False), "bob@example.com") == ["ann@example.com", "[EMAIL_1]"]


def test_numbers_go_on_after_those_of_an_earlier_step() -> None:
    assert done(Text("[EMAIL_2] wrote", within=False), "to ann@example.com") == ["[EMAIL_2] wrote", "to [EMAIL_3]"]


def test_values_are_counted_by_kind() -> None:
    made = redact([Text("ann@example.com, bob@example.com, ann@example.com, 8.8.8.8"), Text("none")], _FINDER)
    assert made[0] is not None
    assert made[0].counts == {"pii.email": 3, "pii.ip": 1}
    assert made[1] is None


def test_many_values_in_one_text() -> None:
    text = " ".join(f"user{i}@example.com" for i in range(3000))
    [new] = done(text)
    assert new.split() == [f"[EMAIL_{i + 1}]" for i in range(3000)]


_PIECES = st.sampled_from(
    [*_KNOWN, *_PLACED, *HARMLESS, "[EMAIL_1]", "so", "=", ": ", '"', "@", "-", "password=", "//"]
)
_TEXTS = st.builds(
    lambda pieces, between: between.join(pieces),
    st.lists(_PIECES, max_size=6),
    st.sampled_from(["", " ", ", ", "\n", "\\n", ":", "/"]),
)


@quick(5)
@given(st.lists(_TEXTS, min_size=1, max_size=4))
def test_twice_is_once(texts: list[str]) -> None:
    once = done(*texts)
    assert done(*once) == once


@quick(4)
@given(st.lists(st.lists(st.sampled_from(_KNOWN), max_size=4), min_size=1, max_size=4))
def test_no_known_value_is_left_and_equal_ones_stay_equal(texts: list[list[str]]) -> None:
    new = done(*(" | ".join(("so", *values)) for values in texts))
    names: dict[str, str] = {}
    for values, text in zip(texts, new, strict=True):
        first, *placeholders = text.split(" | ")
        assert first == "so"
        assert len(placeholders) == len(values)
        for value, placeholder in zip(values, placeholders, strict=True):
            assert _PLACEHOLDER.fullmatch(placeholder)
            assert names.setdefault(value, placeholder) == placeholder
