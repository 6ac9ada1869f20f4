"""MinHash signatures by bands: which sets are worth comparing, and how likely a likeness is missed.

A signature has one number for each of many random orders: the lowest shingle. Two sets agree in one of them with a
chance equal to their likeness, so they agree in all `rows` numbers of a band with likeness**rows, and in none of the
bands with `miss`. Of the pairs that share a band, most are far below the threshold where many texts are half alike. The
lowest bit of each number tells them: it is equal with a chance of (1 + likeness) / 2 (Li and König, WWW 2010).
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from itertools import chain

import polars as pl

from curatec.runtime.near.shingles import raw

SEED = 42
SIGNATURE = 256  # numbers of a signature: with a power of two rensa leaves out updates that can change nothing
MISS = 1e-3
BITS_MISS = 1e-4
WORD = 64  # bits


@dataclass(frozen=True, slots=True)
class Bands:
    count: int
    rows: int

    def miss(self, likeness: float) -> float:
        """The chance that two sets of this likeness share no band."""
        return float((1.0 - likeness**self.rows) ** self.count)


def bands_for(threshold: float) -> Bands:
    """The longest bands, hence the fewest needless comparisons, with a miss below MISS at the threshold itself.

    Below a threshold of 0.027 no choice reaches that; the widest net is taken.
    """
    if threshold >= 1.0:
        return Bands(1, SIGNATURE)
    for rows in range(SIGNATURE, 0, -1):
        count = math.ceil(math.log(MISS) / math.log1p(-(threshold**rows))) if threshold**rows > 1e-12 else SIGNATURE + 1
        if count * rows <= SIGNATURE:
            return Bands(count, rows)
    return Bands(SIGNATURE, 1)


def fewest_bits(threshold: float) -> int:
    """In how many of the lowest bits two sets must agree: those at the threshold do not with less than BITS_MISS."""
    equal = (1.0 + threshold) / 2
    below = 0.0
    for bits in range(SIGNATURE + 1):
        below += math.comb(SIGNATURE, bits) * equal**bits * (1.0 - equal) ** (SIGNATURE - bits)
        if below > BITS_MISS:
            return bits
    return SIGNATURE


def agreeing(one: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """In how many of the lowest bits the signatures of two rows agree, row by row of what `signed` made."""
    names = [name for name in one.columns if name.startswith("bits")]
    differing = [(pl.lit(one[name]) ^ pl.lit(other[name])).bitwise_count_ones() for name in names]
    return pl.select(bits=SIGNATURE - pl.sum_horizontal(differing).cast(pl.Int64)).to_series()


def signed(sets: pl.Series, bands: Bands) -> pl.DataFrame:
    """List(UInt64), none empty -> UInt64 columns: "band0", … the hash of each band, "bits0", … the lowest bits."""
    from rensa import RMinHash

    tokens = raw(sets.explode(empty_as_null=False, keep_nulls=False)).cast("Q")
    ends = array("Q", [0, *sets.list.len().cast(pl.UInt64).cum_sum().to_list()])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(tokens, ends, SIGNATURE, SEED).to_rows()
    flat = pl.Series(list(chain.from_iterable(matrix)), dtype=pl.UInt32).cast(pl.UInt64)
    columns = pl.DataFrame([flat.gather_every(SIGNATURE, i).alias(f"{i}") for i in range(SIGNATURE)])
    hashes = [_folded(band, bands.rows).alias(f"band{band}") for band in range(bands.count)]
    return columns.select(*hashes, *(_lowest_bits(word).alias(f"bits{word}") for word in range(SIGNATURE // WORD)))


def _lowest_bits(word: int) -> pl.Expr:
    bit = pl.lit(1, dtype=pl.UInt64)
    return pl.sum_horizontal(
        (pl.col(f"{word * WORD + i}") & bit) * pl.lit(1 << i, dtype=pl.UInt64) for i in range(WORD)
    )


def _folded(band: int, rows: int) -> pl.Expr:
    """The numbers of a band in one: a polynomial modulo 2**64."""
    value = pl.col(f"{band * rows}")
    for i in range(band * rows + 1, (band + 1) * rows):
        value = value * pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64) + pl.col(f"{i}")
    return value
