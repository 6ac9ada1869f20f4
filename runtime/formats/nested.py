"""List columns put together from their elements, without a value passing through Python."""

from __future__ import annotations

import polars as pl


def listed(elements: pl.Series, counts: pl.Series) -> pl.Series:
    """A list for each count, with so many of the elements in their order; a null count gives a null list.

    Series of any type, integers -> List of that type. The counts add up to the number of elements.
    """
    import pyarrow as pa

    ends = counts.fill_null(0).cast(pl.Int64).cum_sum()
    offsets = pl.concat([pl.Series([0], dtype=pl.Int64), ends]).rechunk().to_arrow()
    mask = counts.is_null().to_arrow() if counts.null_count() else None
    values = elements.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    column = pl.Series(elements.name, pl.from_arrow(pa.LargeListArray.from_arrays(offsets, values, mask=mask)))
    assert column.dtype == pl.List(elements.dtype)
    return column
