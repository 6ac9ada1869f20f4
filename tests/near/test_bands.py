"""Bands: the promised misses, signatures against datasketch's, candidates against its index."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import polars as pl
import pytest

from curatec.runtime.near import Sketches, components
from curatec.runtime.near.bands import BITS_MISS, MISS, SIGNATURE, agreeing, bands_for, fewest_bits, signed
from tests.reference import near as reference


@pytest.mark.parametrize("percent", range(3, 101))
def test_misses_are_as_rare_as_promised(percent: int) -> None:
    bands = bands_for(percent / 100)
    assert bands.count * bands.rows <= SIGNATURE
    assert bands.miss(percent / 100) <= MISS
    assert bands.miss(min(1.0, percent / 100 + 0.05)) <= bands.miss(percent / 100)


@pytest.mark.parametrize(("threshold", "count", "rows"), [(0.5, 52, 3), (0.7, 38, 5), (0.8, 30, 7), (0.9, 21, 12)])
def test_bands_of_usual_thresholds(threshold: float, count: int, rows: int) -> None:
    """By hand: count = ceil(ln 0.001 / ln(1 - threshold**rows)), rows the most that fit in 256 numbers."""
    bands = bands_for(threshold)
    assert (bands.count, bands.rows) == (count, rows)
    longer = math.log(0.001) / math.log(1 - threshold ** (rows + 1))
    assert math.ceil(longer) * (rows + 1) > 256


def planted(likeness: float, size: int, count: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """Pairs of sets of 64-bit numbers with this likeness."""
    chance = random.Random(seed)
    shared = round(size * likeness)
    pairs = []
    for _ in range(count):
        common = [chance.getrandbits(64) for _ in range(shared)]
        own = [chance.getrandbits(64) for _ in range(size - shared)]
        half = len(own) // 2
        pairs.append((common + own[:half], common + own[half:]))
    return pairs


@pytest.mark.parametrize("size", [20, 200, 1_000])
@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_pairs_meet_in_a_band_as_often_as_the_formula_says(threshold: float, size: int) -> None:
    """At half the rows' strength of the curve, where both outcomes are common: 400 pairs, 4.5 deviations."""
    bands = bands_for(threshold)
    likeness = round((1 - 0.5 ** (1 / bands.count)) ** (1 / bands.rows) * size) / size  # met by half of the pairs
    pairs = planted(likeness, size, 400, seed=size)
    sides = [signed(pl.Series([p[i] for p in pairs], dtype=pl.List(pl.UInt64)), bands) for i in (0, 1)]
    met = (
        pl.select(pl.any_horizontal(sides[0][n] == sides[1][n] for n in sides[0].columns if n[:4] == "band"))
        .to_series()
        .sum()
    )
    expected = 1 - bands.miss(likeness)
    assert abs(met / 400 - expected) <= 4.5 * math.sqrt(expected * (1 - expected) / 400)


@pytest.mark.parametrize(("likeness", "size"), [(0.0, 2), (1.0, 2), *product([0.0, 0.5, 0.8, 1.0], [20, 200, 1_000])])
def test_lowest_bits_agree_as_often_as_the_formula_says(likeness: float, size: int) -> None:
    """Binomial: mean and spread over 400 pairs; so no more pairs of the threshold's likeness fall out than promised."""
    pairs = planted(likeness, size, 400, seed=size)
    sides = [signed(pl.Series([p[i] for p in pairs], dtype=pl.List(pl.UInt64)), bands_for(0.8)) for i in (0, 1)]
    bits = agreeing(*sides)
    equal = (1 + likeness) / 2
    spread = math.sqrt(SIGNATURE * equal * (1 - equal))
    assert abs(sum(bits) / 400 - SIGNATURE * equal) <= 4.5 * spread / 20
    assert float(bits.std() or 0.0) <= 1.2 * spread  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8, 0.95, 1.0])
def test_bits_that_pairs_at_the_threshold_have(threshold: float) -> None:
    """The tail of the binomial distribution, as a sum of fractions."""
    equal = Fraction((1 + threshold) / 2)
    terms = [math.comb(256, k) * equal**k * (1 - equal) ** (256 - k) for k in range(257)]
    fewest = fewest_bits(threshold)
    assert sum(terms[:fewest]) <= BITS_MISS < sum(terms[: fewest + 1])


def corpus(seed: int, count: int = 300) -> list[str]:
    """Documents of 80 words, a third of them changed copies of others."""
    chance = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(500)]
    made: list[list[str]] = []
    for _ in range(count):
        words = list(chance.choice(made)) if made and chance.random() < 0.33 else chance.choices(vocabulary, k=80)
        for _ in range(chance.randint(0, 12)):
            words[chance.randrange(80)] = chance.choice(vocabulary)
        made.append(words)
    return [" ".join(words) for words in made]


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_whatever_datasketch_finds_is_found(threshold: float) -> None:
    datasketch = pytest.importorskip("datasketch")
    texts = corpus(seed=5)
    sets = [reference.shingles(text) for text in texts]
    bands = bands_for(threshold)
    index = datasketch.MinHashLSH(num_perm=bands.count * bands.rows, params=(bands.count, bands.rows))
    theirs = set()
    for row, one in enumerate(sets):
        signature = datasketch.MinHash(num_perm=bands.count * bands.rows, seed=1)
        signature.update_batch([" ".join(words).encode() for words in one])
        theirs |= {(other, row) for other in index.query(signature)}
        index.insert(row, signature)
    near = {(a, b) for a, b in theirs if reference.jaccard(sets[a], sets[b]) >= threshold}
    assert near  # there is something to find
    found = Sketches(threshold, few=0)
    found.add(pl.Series(texts))
    names = components(len(texts), found.pairs()).to_list()
    assert all(names[a] == names[b] for a, b in near)
    everything = reference.near_pairs(texts, threshold)
    assert names == reference.components(len(texts), everything)
