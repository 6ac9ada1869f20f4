"""Pairs of texts whose likeness reaches a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import polars.selectors as cs
from xxhash import xxh3_128_digest

from curatec.runtime.near.bands import agreeing, bands_for, fewest_bits, signed
from curatec.runtime.near.buckets import buckets, paired, rarest
from curatec.runtime.near.components import Components
from curatec.runtime.near.shingles import Sets, Words, raw, shingles

_TEXT_AT_ONCE = 16 * 2**20  # bytes of text that are sketched together, a text counting as _TEXT_LEAST and more
_TEXT_LEAST = 2**11
_SHINGLES_AT_ONCE = 2**21  # shingles of the pairs that are compared together
_FEW_SHINGLES = 2**22  # of few texts


class Sketches:
    """Sketches of texts, which are added part by part.

    The sets of shingles go to a file of `folder` if they are many; a hash for each band and 256 bits stay in memory.
    Texts with equal sets are one. Two others are compared exactly if they share a band and their bits do not tell that
    they are far below the threshold. Where there are up to `few` different texts of moderate length, all are compared
    whose likeness can reach it: then none is missed. Neither the order of rows nor how they were cut into parts decides
    what is connected.
    """

    def __init__(self, threshold: float, folder: Path | None = None, few: int = 2_000) -> None:
        if not 0.0 < threshold <= 1.0:
            raise ValueError(f"a threshold of likeness lies above 0 and up to 1, not {threshold!r}")
        self.threshold = threshold
        self.few = few
        self.bands = bands_for(threshold)
        self._words = Words()
        self._sets = Sets(folder)
        self._numbers: dict[bytes, int] = {}  # digest of a set → its number
        self._signed: list[pl.DataFrame] = []  # one row a set
        self._rows: list[pl.Series] = []  # the number of each row's set

    # ---- texts in ----

    def add(self, texts: pl.Series) -> None:
        """Further rows; a text that is null or has no words is like no other."""
        size = texts.str.len_bytes().fill_null(0).cast(pl.Int64) + _TEXT_LEAST
        cut = pl.DataFrame({"text": texts, "piece": size.cum_sum() // _TEXT_AT_ONCE})
        for piece in cut.partition_by("piece", maintain_order=True):
            self._rows.append(self._sketched(piece["text"]))

    def _sketched(self, texts: pl.Series) -> pl.Series:
        found = shingles(texts, self._words)
        numbers, fresh = self._numbered(found["shingles"])
        if fresh:
            new = found["shingles"].gather(fresh)
            self._sets.append(new)
            self._signed.append(signed(new, self.bands))
        of_row = found.select("row", number=pl.Series(numbers, dtype=pl.UInt32))
        rows = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.UInt32, eager=True)})
        return rows.join(of_row, on="row", how="left", maintain_order="left")["number"]

    def _numbered(self, sets: pl.Series) -> tuple[list[int], list[int]]:
        """The number of each set, and where those stand that were not seen before."""
        view = raw(sets.explode(empty_as_null=False, keep_nulls=False))
        numbers: list[int] = []
        fresh: list[int] = []
        start = 0
        for position, size in enumerate(sets.list.len().to_list()):
            end, next_number = start + 8 * size, len(self._numbers)
            numbers.append(self._numbers.setdefault(xxh3_128_digest(view[start:end]), next_number))
            if numbers[-1] == next_number:
                fresh.append(position)
            start = end
        return numbers, fresh

    # ---- pairs out ----

    @property
    def numbers(self) -> pl.Series:
        """Equal for rows with equal sets, null for a row without words: UInt32."""
        return pl.concat(self._rows) if self._rows else pl.Series([], dtype=pl.UInt32)

    def pairs(self, groups: pl.Series | None = None) -> pl.DataFrame:
        """Pairs that connect all rows of sufficient likeness: left, right (row numbers, UInt32, left < right) and
        likeness (exact). Rows that other pairs connect already are not compared, so not every near pair is there.

        `groups` has one key a row: only rows of equal keys are alike, and none whose key is null.
        """
        numbers = self.numbers
        group = groups if groups is not None else pl.repeat(0, len(numbers), dtype=pl.UInt8, eager=True)
        rows = pl.DataFrame({"number": numbers, "group": group}).with_row_index("row").drop_nulls()
        units = rows.group_by("number", "group").agg(first=pl.col("row").min()).sort("first").with_row_index("unit")
        same = rows.join(units, on=["number", "group"], how="inner").filter(pl.col("row") != pl.col("first"))
        found = [same.select(left="first", right="row", likeness=pl.lit(1.0))]
        for near in self._near(units):
            rows_of = {side: units["first"].gather(near[side]) for side in ("left", "right")}
            found.append(near.with_columns(**rows_of).select("left", "right", "likeness"))
        return pl.concat(found).sort("left", "right")

    def likeness(self, left: pl.Series, right: pl.Series) -> pl.Series:
        """The exact likeness of rows, pair by pair: Float64; both must have words."""
        numbers = self.numbers
        pairs = pl.DataFrame({"left": numbers.gather(left), "right": numbers.gather(right)})
        compared = [self._compared(some["left"], some["right"]) for some in self._cut(pairs, self._sets.sizes)]
        return pl.concat(compared) if compared else pl.Series([], dtype=pl.Float64)

    def _near(self, units: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Pairs of units (left, right, likeness) that reach the threshold, until all that are near are connected."""
        joined = Components(units.height)
        sizes = self._sets.sizes.gather(units["number"])
        for candidates in self._candidates(units, joined):
            one, other = sizes.gather(candidates["left"]), sizes.gather(candidates["right"])
            long_enough = pl.select(pl.min_horizontal(one, other) / pl.max_horizontal(one, other)).to_series()
            for some in self._cut(candidates.filter(long_enough >= self.threshold), sizes):
                pairs = joined.apart(some)
                numbers = (units["number"].gather(pairs[side]) for side in ("left", "right"))
                near = pairs.with_columns(likeness=self._compared(*numbers))
                near = near.filter(pl.col("likeness") >= self.threshold)
                joined.unite(near["left"], near["right"])
                yield near

    def _candidates(self, units: pl.DataFrame, joined: Components) -> Iterator[pl.DataFrame]:
        if self.threshold == 1.0 or units.is_empty():
            return  # equal sets are one unit
        if units.height <= self.few and self._sets.sizes.gather(units["number"]).sum() <= _FEW_SHINGLES:
            sets = units.select("unit", "group", shingles=self._sets.load(units["number"].to_list()))
            found = [pairs.unique() for pairs in paired(buckets(rarest(sets, self.threshold)), joined)]
            yield from [pl.concat(found).unique().sort("left", "right")] if found else []
            return
        signatures = pl.concat(self._signed)[units["number"]]
        bits = signatures.select(cs.starts_with("bits"))
        columns = signatures.select(cs.starts_with("band")).get_columns()
        fewest = fewest_bits(self.threshold)
        for band, key in enumerate(columns):
            for bucketed in paired(buckets(units.select("unit", "group", key=key)), joined):
                pairs = bucketed.filter(agreeing(bits[bucketed["left"]], bits[bucketed["right"]]) >= fewest)
                met = pl.repeat(False, pairs.height, dtype=pl.Boolean, eager=True)
                for before in columns[:band]:  # their pairs were compared there
                    met |= before.gather(pairs["left"]) == before.gather(pairs["right"])
                yield pairs.filter(~met)

    def _cut(self, pairs: pl.DataFrame, sizes: pl.Series) -> list[pl.DataFrame]:
        """Pairs of positions in `sizes`, in pieces whose sets fit in memory together."""
        work = sizes.gather(pairs["left"]).cast(pl.Int64) + sizes.gather(pairs["right"]).cast(pl.Int64)
        cut = pairs.with_columns(piece=work.cum_sum() // _SHINGLES_AT_ONCE)
        return cut.partition_by("piece", maintain_order=True, include_key=False)

    def _compared(self, left: pl.Series, right: pl.Series) -> pl.Series:
        """The likeness of sets, by number, pair by pair."""
        wanted = pl.concat([left, right]).unique().sort()
        sets = self._sets.load(wanted.to_list())
        both = pl.DataFrame({side: sets.gather(wanted.search_sorted(n)) for side, n in (("a", left), ("b", right))})
        together = pl.col("a").list.len().cast(pl.Int64) + pl.col("b").list.len().cast(pl.Int64)
        either = pl.concat_list("a", "b").list.n_unique().cast(pl.Int64)  # half the time of an intersection
        return both.select(likeness=(together - either) / either)["likeness"]
