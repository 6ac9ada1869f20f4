"""Connected components of rows."""

from __future__ import annotations

import polars as pl


class Components:
    """Union-find over numbers from 0; the name of a component is its lowest number."""

    def __init__(self, height: int) -> None:
        self._above = list(range(height))

    def _find(self, row: int) -> int:
        above = self._above
        while above[row] != row:
            above[row] = row = above[above[row]]
        return row

    def names(self, rows: pl.Series) -> pl.Series:
        """The component of each of these rows: UInt32."""
        return pl.Series("component", list(map(self._find, rows.to_list())), dtype=pl.UInt32)

    def unite(self, left: pl.Series, right: pl.Series) -> None:
        for one, other in zip(left.to_list(), right.to_list(), strict=True):
            a, b = self._find(one), self._find(other)
            self._above[max(a, b)] = min(a, b)

    def apart(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """The pairs (left, right) that nothing connects yet."""
        return pairs.filter(self.names(pairs["left"]) != self.names(pairs["right"]))


def components(height: int, pairs: pl.DataFrame) -> pl.Series:
    """The lowest row of each row's connected component: `height` rows, pairs (left, right) -> UInt32 "component"."""
    found = Components(height)
    found.unite(pairs["left"], pairs["right"])
    return found.names(pl.int_range(height, dtype=pl.UInt32, eager=True))
