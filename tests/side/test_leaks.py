"""Leaks are found where a plain search over words finds them, and evidence is what it says."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.side import leaks
from curatec.runtime.side.leaks import EVIDENCE, TEXTS, Finder, Leak, words
from curatec.runtime.side.sealed import Sealed
from curatec.runtime.side.texts import strings
from tests.reference import side as reference
from tests.semantics.tools import quick

VOCABULARY = ("Book", "book", "a", "flight", "to", "größe", "ΣΑΣ", "東京", "W-12", "12", "e\u0301", "x_y")
GAPS = (" ", " ", ", ", "\n", "—", "  ", "! ")


def said(most: int) -> st.SearchStrategy[str]:
    """A text of a small vocabulary, so that texts share words by chance."""
    pair = st.tuples(st.sampled_from(VOCABULARY), st.sampled_from(GAPS))
    return st.lists(pair, max_size=most).map(lambda parts: "".join(word + gap for word, gap in parts))


def texts_of(rows: list[tuple[int, str, bool]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TEXTS, orient="row")


def sealed(*items: tuple[str | None, str | None]) -> Sealed:
    frame = pl.DataFrame(sorted(set(items), key=str), schema={"id": pl.String, "text": pl.String}, orient="row")
    return Sealed(frame, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello,  World!", "hello world"),
        ("  it's 5 o'clock\n", "it s 5 o clock"),
        ("snake_case-word", "snake case word"),
        ("Größe ΣΑΣ İ", "größe σασ i\u0307"),
        ("e\u0301t\u00e9", "e\u0301t\u00e9"),
        ("東京へ行く", "東 京 へ 行 く"),
        ("order#W2611340 costs $54.00", "order w2611340 costs 54 00"),
        ("😀👩‍💻 ok", "ok"),
        ("…—!", ""),
        ("", ""),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert pl.select(words(pl.lit(text))).item() == expected
    assert " ".join(reference.words(text)) == expected


items = st.lists(st.tuples(st.sampled_from([None, "t1", "t2", "t3"]), said(9)), max_size=5)
rows = st.lists(st.tuples(st.integers(0, 4), said(14), st.booleans()), max_size=10)


@quick(5)
@given(items, rows, st.integers(1, 5), st.sampled_from([1, 20, 10**6]))
def test_the_finder_is_a_plain_search(
    items: list[tuple[str | None, str]], rows: list[tuple[int, str, bool]], ngram: int, piece: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "_PIECE", piece)
        found = Finder.of(sealed(*items), ngram).find(texts_of(rows))
    for row in range(5):
        own = [(text, own_) for at, text, own_ in rows if at == row]
        expected = reference.leak_of(own, items, ngram)
        assert found.get(row) == (expected and Leak(*expected)), (items, own)


@quick(1)
@given(items, rows, st.integers(2, 4))
def test_a_collision_of_hashes_finds_nothing(
    items: list[tuple[str | None, str]], rows: list[tuple[int, str, bool]], ngram: int
) -> None:
    """With hashes that say almost nothing the words alone decide."""

    def weak(hashes: pl.Expr, size: int) -> pl.Expr:
        return (hashes % 2).rolling_sum(size).shift(1 - size).cast(pl.UInt64)

    own = Finder.of(sealed(*items), ngram).find(texts_of(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "_rolled", weak)
        found = Finder.of(sealed(*items), ngram).find(texts_of(rows))
    # A colliding item may hide another one's words, but never make some up.
    assert found.keys() <= own.keys()
    for row, leak in found.items():
        texts = [" ".join(reference.words(text)) for at, text, _ in rows if at == row]
        shown = leak.evidence.partition(": ")[2] or leak.evidence
        assert any(f" {shown} " in f" {text} " for text in texts)


def test_words_never_cross_texts() -> None:
    finder = Finder.of(sealed(("t", "one two three four")), 3)
    assert finder.find(texts_of([(0, "one two", True), (0, "three four", True)])) == {}
    assert finder.find(texts_of([(0, "zero one two three", False)])) == {0: Leak("test_ngram", "t: one two three")}
    assert finder.find(texts_of([(0, "One, two: three FOUR", False)])) == {0: Leak("test_ngram", "t: one two three")}
    assert finder.find(texts_of([(0, "One, two: three FOUR", True)])) == {0: Leak("test_text", "t: one two three four")}
    assert finder.find(texts_of([(0, "one twotwo three four", True)])) == {}


def test_a_short_item_is_found_whole_and_said() -> None:
    finder = Finder.of(sealed((None, "Cancel it")), 13)
    rows = [(0, "please cancel it now", True), (1, "please cancel it now", False), (2, "cancel item", True)]
    assert finder.find(texts_of(rows)) == {0: Leak("test_text", "cancel it")}


def test_sets_and_rows_without_words() -> None:
    rows = texts_of([(0, "one two", True), (1, "", True), (2, "…", True)])
    assert Finder.of(sealed(("a", None), ("b", "…"), ("c", "")), 13).find(rows) == {}
    assert Finder.of(sealed(("a", "one two")), 13).find(texts_of([])) == {}


def test_evidence_is_short() -> None:
    text = " ".join(f"word{i}" for i in range(100))
    for ngram in (10**11, 2**63 - 1):  # longer than any text: what is left is the item as a whole
        [leak] = Finder.of(sealed(("long", text)), ngram).find(texts_of([(7, text, True)])).values()
        assert leak.reason == "test_text"
    [leak] = Finder.of(sealed(("long", text)), 13).find(texts_of([(7, text, True)])).values()
    assert len(leak.evidence) == EVIDENCE
    assert leak.evidence.startswith("long: word0 word1")
    assert leak.evidence.endswith("…")


def test_boilerplate_of_a_set_hides_no_item() -> None:
    """Items that begin alike are still told apart."""
    head = "you are a helpful agent and this is the task that you have to do now"
    many = [(f"t{i:03}", f"{head} number {i} of them") for i in range(300)]
    finder = Finder.of(sealed(*many), 13)
    assert finder.find(texts_of([(0, f"x {many[217][1]} y", True)])) == {
        0: Leak("test_text", f"t217: {many[217][1]}"),
    }
    assert finder.find(texts_of([(0, head, True)]))[0].reason == "test_ngram"


# ---- arguments ----


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def leaves(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inside for text in leaves(item)]


@quick(4)
@given(st.dictionaries(st.text(max_size=4), values, max_size=3), st.booleans(), st.sampled_from([None, 1]))
def test_strings_of_arguments(value: Any, ascii_only: bool, indent: int | None) -> None:
    assert strings(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == leaves(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x":1,"x":"a","x":"b"}', ["a", "b"]),
        ('{"x":NaN,"y":1e400,"z":"c"}', ["c"]),
        (r'{"x":"\ud800 a"}', ["� a"]),
        (r'{"x":"a\\","y":"\"b\""}', ["a\\", '"b"']),
        ('{"x" : "a", "y" :["b"]}', ["a", "b"]),
        ("{broken", []),
    ],
)
def test_strings_of_odd_arguments(text: str, expected: list[str]) -> None:
    assert strings(text) == expected
