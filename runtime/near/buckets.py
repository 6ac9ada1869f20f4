"""Which texts are worth a comparison: those in one bucket, which is a band of the signature or a rare shingle."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curatec.runtime.near.components import Components

_AT_ONCE = 2**21  # pairs in memory


def buckets(units: pl.DataFrame) -> pl.DataFrame:
    """(unit, key, group) -> (unit, at, place, end), one bucket after the other: those of two units and more.

    `at` is the row, `place` the position in the bucket, `end` the row behind the bucket's last.
    """
    shared = units.filter(pl.len().over("key", "group") > 1).sort("group", "key", "unit")
    size, place = pl.len().over("key", "group"), pl.int_range(pl.len(), dtype=pl.Int64).over("key", "group")
    placed = shared.select("unit", at=pl.int_range(pl.len(), dtype=pl.Int64), place=place, size=size)
    return placed.select("unit", "at", "place", end=pl.col("at") - pl.col("place") + pl.col("size").cast(pl.Int64))


def paired(bucketed: pl.DataFrame, joined: Components) -> Iterator[pl.DataFrame]:
    """Pairs (left, right) of units in one bucket, by and by, so that memory is bounded however large a bucket is.

    First the pairs of each bucket's first unit, then those of the second, of the next two, the next four: where texts
    are alike the first ones connect all the others, and what `joined` connects in the meantime is left out.
    """
    first, last = 0, 1
    while not bucketed.is_empty():
        left = bucketed.filter(pl.col("place").is_between(first, last, closed="left"))
        many = (left["end"] - left["at"]).cum_sum() // _AT_ONCE
        for lefts in left.with_columns(many=many).partition_by("many", maintain_order=True):
            at = lefts.select("unit", right=pl.int_ranges(pl.col("at") + 1, "end"))
            at = at.explode("right", empty_as_null=False, keep_nulls=False)
            yield joined.apart(pl.DataFrame({"left": at["unit"], "right": bucketed["unit"].gather(at["right"])}))
        first, last = last, 2 * last
        bucketed = _unsettled(bucketed, joined, first)


def _unsettled(bucketed: pl.DataFrame, joined: Components, first: int) -> pl.DataFrame:
    """Buckets with pairs to come, from this place on, that nothing connects yet."""
    bucketed = bucketed.with_columns(component=joined.names(bucketed["unit"]))
    open_ = (pl.col("place").max() > first) & (pl.col("component").n_unique() > 1)
    kept = bucketed.filter(open_.over("end")).sort("end", "place")
    size = pl.len().over("end").cast(pl.Int64)
    kept = kept.with_columns(size=size, at=pl.int_range(pl.len(), dtype=pl.Int64))
    return kept.select("unit", "at", "place", end=pl.col("at") - pl.col("place") + pl.col("size"))


def rarest(sets: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """(unit, group, shingles) -> (unit, key, group): the shingles of which two alike sets share one at least.

    Sets of likeness t share t times the size of either, and more; so when all are ordered by how rare a shingle is, the
    first size - ceil(t * size) + 1 of each already have one in common (Chaudhuri et al., ICDE 2006; Bayardo et al.,
    WWW 2007). Nothing is missed.
    """
    size = pl.col("shingles").list.len().cast(pl.Int64)
    shared = (size * threshold - 1e-9).ceil().cast(pl.Int64)
    long = sets.with_columns(first=size - shared + 1).explode("shingles", empty_as_null=False, keep_nulls=False)
    ranked = long.with_columns(rarity=pl.len().over("shingles")).sort("unit", "rarity", "shingles")
    place = pl.int_range(pl.len()).over("unit")
    return ranked.filter(place < pl.col("first")).select("unit", "group", key="shingles")
