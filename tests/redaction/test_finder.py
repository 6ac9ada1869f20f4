"""What is found: known values of each kind, and what looks like them and is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.redaction import Finder
from tests.redaction.samples import HARMLESS, IN_PLACE, PII, SECRETS
from tests.semantics.tools import quick

KNOWN = [(name, value) for name, values in (PII | SECRETS).items() for value in values]


def found(finder: Finder, text: str, member: str | None = None) -> list[tuple[str, str]]:
    return [(one.name, text[one.start : one.end]) for one in finder.find(text, member)]


@pytest.mark.parametrize("around", ["{}", "It is {}, you see.", "x ({})\n", '"{}"', "now: {}.", "是{}吗", "a;{};b"])
@pytest.mark.parametrize(("name", "value"), KNOWN, ids=[f"{name}-{i}" for i, (name, _) in enumerate(KNOWN)])
def test_known_values(finder: Finder, name: str, value: str, around: str) -> None:
    assert found(finder, around.format(value)) == [(name, value)]


@pytest.mark.parametrize(("name", "text", "value"), [(n, *case) for n, cases in IN_PLACE.items() for case in cases])
def test_values_that_their_place_tells(finder: Finder, name: str, text: str, value: str) -> None:
    assert found(finder, text) == [(name, value)]
    assert found(finder, f"First this.\n{text}\nThen that.") == [(name, value)]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_records_are_full_of_is_left(finder: Finder, text: str) -> None:
    assert found(finder, text) == []


def test_a_member_says_what_its_value_is(finder: Finder) -> None:
    assert found(finder, "6505550123", "phone_number") == [("pii.phone", "6505550123")]
    assert found(finder, "6505550123", "item_id") == []
    assert found(finder, "p@ss,w0rd'x", "password") == [("secrets.password", "p@ss,w0rd'x")]
    assert found(finder, "p@ss,w0rd'x", "name") == []


def test_spellings_of_one_value_are_the_same(finder: Finder) -> None:
    text = "+1 650-555-0123, (650) 555-0123; 4111 1111 1111 1111, 4111-1111-1111-1111; Ann@Example.com ann@example.com"
    assert [one.same for one in finder.find(text)] == [
        *["+16505550123"] * 2,
        *["4111111111111111"] * 2,
        *["ann@example.com"] * 2,
    ]


def test_only_the_families_asked_for() -> None:
    text = f"jane@example.com {SECRETS['secrets.aws_key'][0]}"
    assert [one.family for one in Finder(["pii"]).find(text)] == ["pii"]
    assert [one.family for one in Finder(["secrets"]).find(text)] == ["secrets"]


def test_a_secret_is_one_finding_whatever_else_it_looks_like(finder: Finder) -> None:
    url = "postgres://ann:" + "pw-17" + "@db.example.com"
    assert found(finder, url) == [("secrets.basic_auth", "pw-17")]
    key = SECRETS["secrets.aws_key"][0]
    assert found(finder, f'api_key = "{key}"') == [("secrets.aws_key", key)]


def test_a_key_that_is_cut_goes_as_far_as_it_goes(finder: Finder) -> None:
    block = SECRETS["secrets.private_key"][0]
    cut = block[: len(block) // 2]
    assert found(finder, f"cat key\n{cut}") == [("secrets.private_key", cut)]
    grep = "grep '" + block.splitlines()[0] + "' -r . # nothing here"
    assert found(finder, grep) == [("secrets.private_key", block.splitlines()[0])]


def test_placeholders_are_never_found(finder: Finder) -> None:
    assert found(finder, "password: [PASSWORD_1] [EMAIL_22] https://ann:[BASIC_AUTH_1]@example.com/x") == []


def test_a_long_text_is_read_to_its_end(finder: Finder) -> None:
    rows = " ".join(f"{i:07d} {i * 7919 % 10**7:07d}" for i in range(35_000))  # the library gives up after 65,535
    assert found(finder, f"{rows} (650) 555-0123") == [("pii.phone", "(650) 555-0123")]


_PIECES = st.sampled_from(
    [value for _, value in KNOWN]
    + list('@:/.-+([ 0159aZ="\\\n')
    + ["é", "中", "\ud800", "pwd=", "aws", "://", "eyJ", "[A_1]"]
)


@quick(4)
@given(st.lists(_PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_findings_of_any_text_are_in_order_and_apart(text: str) -> None:
    made = Finder(("pii", "secrets")).find(text)
    ends = [0, *(one.end for one in made)]
    assert all(end <= one.start < one.end <= len(text) for end, one in zip(ends, made, strict=False))
