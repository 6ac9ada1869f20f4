"""Sketches find what comparing all pairs finds, and what they find depends on the texts alone."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curatec.runtime.near import Sketches, buckets, components, shingles, sketches
from tests.reference import near as reference
from tests.semantics.tools import quick

THRESHOLDS = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
WORDS = st.sampled_from(["a", "B", "c"])
SPACES = st.sampled_from([" ", "  ", "\n", "\t ", "\u00a0"])


@st.composite
def texts(draw: st.DrawFn) -> str | None:
    """Few words, so that likenesses of every size are common."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([None, "", " \n", "Σ", "İ a"]))
    return "".join(draw(WORDS) + draw(SPACES) for _ in range(draw(st.integers(0, 12))))


def sketched(parts: Sequence[Sequence[str | None]], threshold: float, few: int = 2_000) -> Sketches:
    found = Sketches(threshold, few=few)
    for part in parts:
        found.add(pl.Series(part, dtype=pl.String))
    return found


def found_components(found: Sketches, groups: Sequence[str | None] | None = None) -> list[int]:
    keys = None if groups is None else pl.Series(groups, dtype=pl.String)
    return components(len(found.numbers), found.pairs(keys)).to_list()


@quick()
@given(st.lists(texts(), max_size=25), THRESHOLDS, st.data())
def test_few_texts_as_all_pairs(drawn: list[str | None], threshold: float, data: st.DataObject) -> None:
    groups = data.draw(st.none() | st.lists(st.sampled_from(["x", "y", None]), min_size=25, max_size=25))
    groups = groups and groups[: len(drawn)]
    expected = reference.components(len(drawn), reference.near_pairs(drawn, threshold, groups))
    assert found_components(sketched([drawn], threshold), groups) == expected


@quick()
@given(st.lists(texts(), max_size=25), THRESHOLDS)
def test_bands_as_all_pairs(drawn: list[str | None], threshold: float) -> None:
    """A pair may be missed with a chance of 1e-3 at the threshold itself, far less beyond it: with these examples,
    which are the same each time, none is."""
    expected = reference.components(len(drawn), reference.near_pairs(drawn, threshold))
    assert found_components(sketched([drawn], threshold, few=0)) == expected


@quick(0.5)
@given(st.lists(texts(), max_size=25), THRESHOLDS, st.sampled_from([0, 2_000]), st.randoms(use_true_random=False))
def test_neither_order_nor_parts_count(drawn: list[str | None], threshold: float, few: int, random: object) -> None:
    order = list(range(len(drawn)))
    random.shuffle(order)  # type: ignore[attr-defined]
    cut = random.randint(0, len(drawn))  # type: ignore[attr-defined]
    mixed = [drawn[i] for i in order]
    first = found_components(sketched([drawn], threshold, few))
    other = found_components(sketched([mixed[:cut], [], mixed[cut:]], threshold, few))
    together = {frozenset(order[i] for i, name in enumerate(other) if name == one) for one in set(other)}
    assert together == {frozenset(i for i, name in enumerate(first) if name == one) for one in set(first)}


@quick(0.5)
@given(st.lists(texts(), min_size=1, max_size=20), THRESHOLDS)
def test_pairs_are_exact_and_in_order(drawn: list[str | None], threshold: float) -> None:
    found = sketched([drawn], threshold)
    near = reference.near_pairs(drawn, threshold)
    for left, right, likeness in found.pairs().iter_rows():
        assert (left, right) in near
        assert likeness == reference.jaccard(*(reference.shingles(drawn[i]) for i in (left, right)))
    worded = [i for i, text in enumerate(drawn) if reference.shingles(text)]
    left, right = ([i for i in worded for _ in worded], [i for _ in worded for i in worded])
    told = found.likeness(pl.Series(left, dtype=pl.UInt32), pl.Series(right, dtype=pl.UInt32)).to_list()
    sets = [reference.shingles(text) for text in drawn]
    assert told == [reference.jaccard(sets[a], sets[b]) for a, b in zip(left, right, strict=True)]


@quick()
@given(st.lists(texts(), max_size=10))
@example(["Ünï  CODE x", "ünï code x", "one", "one two", "", None, "a\u00a0b c d"])
def test_shingles_by_definition(drawn: list[str | None]) -> None:
    """As many as the definition says, equal where it says so, through the file and back."""
    found = shingles.shingles(pl.Series(drawn, dtype=pl.String), shingles.Words())
    expected = {row: one for row, text in enumerate(drawn) if (one := reference.shingles(text))}
    assert found["row"].to_list() == list(expected)
    kept = shingles.Sets(None)
    kept.append(found["shingles"])
    read = [kept.load([number]).to_list()[0] for number in range(len(kept))]
    assert read == found["shingles"].to_list()
    assert kept.sizes.to_list() == list(map(len, expected.values()))
    for one, ours in zip(expected.values(), read, strict=True):
        for other, theirs in zip(expected.values(), read, strict=True):
            assert len(set(ours) & set(theirs)) == len(one & other)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 29, 100])
def test_a_likeness_of_just_the_threshold_is_enough(size: int) -> None:
    """A text that begins as another does and is shorter: k of `size` shingles, for every k."""
    words = [f"w{i}" for i in range(size + 2)]
    for k in range(1, size + 1):
        nested = [" ".join(words), " ".join(words[: k + 2])]
        assert found_components(sketched([nested], k / size)) == [0, 0], k
        if k < size:
            assert found_components(sketched([nested], (k + 0.5) / size)) == [0, 1], k


def test_the_same_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bounds of memory at their least: pieces of one text, pairs one by one, sets in a file."""
    drawn = [" ".join("abc"[(i * i // (k + 1)) % 3] for i in range(12)) for k in range(40)] * 2
    expected = [found_components(sketched([drawn], 0.5, few)) for few in (0, 2_000)]
    for module, name in (
        (sketches, "_TEXT_AT_ONCE"), (sketches, "_SHINGLES_AT_ONCE"), (buckets, "_AT_ONCE"), (shingles, "_SETS_KEPT"),
        (shingles, "_WORDS_KEPT"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 1)
    assert [found_components(sketched([drawn], 0.5, few)) for few in (0, 2_000)] == expected
    assert expected[0] == expected[1] == reference.components(80, reference.near_pairs(drawn, 0.5))


def test_a_thousand_copies_and_a_chain() -> None:
    """Equal texts are one comparison; each text of a chain is like the next only."""
    words = [f"w{i}" for i in range(400)]
    chain = [" ".join(words[start : start + 100]) for start in range(0, 300, 10)]
    found = sketched([["so it is"] * 1_000, chain], 0.8, few=0)
    assert found_components(found) == [0] * 1_000 + [1_000] * 30
    ends = found.likeness(pl.Series([1_000]), pl.Series([1_029])).to_list()
    assert ends == [0.0]


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.01, float("nan")])
def test_a_threshold_that_means_nothing(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        Sketches(threshold)
