"""Comparisons of rows as SQL over one narrow table `rows`.

`row_at` is the position of a row; `k0`, `k1`, … are its keys and `o0`, `o1`, … what orders it. Nulls come last both
ways (semantics 13), and texts compare by code point, which is how DuckDB compares the bytes of UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence

from curatec.compiler.duckdb.spelling import text_literal
from curatec.compiler.types import Type

_MICRO = "1000000"


def _over(keys: int, descending: Sequence[bool]) -> str:
    """A window over the rows of each group, in order."""
    groups = ", ".join(f"k{i}" for i in range(keys))
    order = ", ".join(f"o{i} {'desc' if down else 'asc'} nulls last" for i, down in enumerate(descending))
    partition = f"    partition by {groups}\n" if groups else ""
    return f"over (\n{partition}    order by {order}\n  )"


def places(keys: int, descending: Sequence[bool]) -> str:
    """The place of each row in its group, from 0."""
    return f"select\n  row_number() {_over(keys, descending)} - 1 as place\nfrom rows\norder by row_at"


def leaders(keys: int, descending: Sequence[bool]) -> str:
    """The position of the row that comes first in each row's group."""
    return f"select\n  first_value(row_at) {_over(keys, descending)} as leader\nfrom rows\norder by row_at"


def allot(bounds: Sequence[tuple[int, str]], rest: str) -> str:
    """The name of the first bound above the draw."""
    cases = "".join(f"    when draw < {bound} then {text_literal(name)}\n" for bound, name in bounds)
    chosen = f"case\n{cases}    else {text_literal(rest)}\n  end" if bounds else text_literal(rest)
    return f"select\n  {chosen} as part\nfrom rows\norder by row_at"


def look_up(columns: Sequence[str]) -> str:
    """Columns of the side table `beside` by key, and whether there is a row of that key."""
    shown = "".join(f"beside.{name},\n  " for name in columns)
    return (
        f"select\n  {shown}beside.key is not null as matched\n"
        "from rows\nleft join beside on beside.key = rows.key\norder by rows.row_at"
    )


ATTEMPTS = """with groups as (
  select
    k0, k1,
    count(success) as attempts,
    count(*) filter (where success) as solved,
    count(reward) as rewards,
    max(reward) - min(reward) as spread
  from rows
  group by k0, k1
)
select
  attempts,
  case when attempts >= 2 then solved::DOUBLE / attempts::DOUBLE end as pass_rate,
  case when rewards >= 2 then spread end as spread
from rows
join groups on groups.k0 is not distinct from rows.k0 and groups.k1 is not distinct from rows.k1
order by row_at"""

# ---- windows (semantics 12, 15, 16) ----

# Sums go over round_even(x · 10⁶) in 128 bits, so that neither engine nor order of rows can change the last bit.
_TOTAL = "sum(micro(x))::BIGINT::DOUBLE"


def _aggregate(function: str, type_: Type) -> str:
    match function:
        case "count":
            return "count(*)"
        case "sum" if type_ is Type.INT:
            return "coalesce(sum(x), 0)::BIGINT"
        case "sum":
            return f"coalesce({_TOTAL}, 0) / {_MICRO}"
        case "mean":
            return f"{_TOTAL} / (count(x) * {_MICRO})"
        case "min" | "max":
            return f"{function}(x)" if type_ is Type.INT else f"settled({function}(x))"
        case "share":
            return "(count(*) filter (where x))::DOUBLE / count(*)"
        case "median":
            return "middle(list(x::DOUBLE order by x) filter (where x is not null))"
    raise AssertionError(function)


def window(function: str, type_: Type, keys: int, *, descending: bool = False) -> str:
    """The aggregate of `x` over each row's group, null where a key is null; no keys: of all rows."""
    names = [f"k{i}" for i in range(keys)]
    whole = " and ".join(f"{k} is not null" for k in names)
    if function == "rank":
        groups = f"partition by {', '.join(names)} " if names else ""
        known = " and ".join(["x is not null", *([whole] if whole else [])])
        direction = "desc" if descending else "asc"
        return (
            f"select case when {known} then rank() over ({groups}order by x {direction} nulls last) end as value\n"
            "from rows\norder by row_at"
        )
    grouped = f"\n  where {whole}\n  group by {', '.join(names)}" if names else ""
    shown = "".join(f"{k}, " for k in names)
    joined = " and ".join(f"groups.{k} = rows.{k}" for k in names)
    join = f"left join groups on {joined}" if names else "cross join groups"
    if function == "std":
        means = f"join means on {joined.replace('groups.', 'means.')}" if names else "cross join means"
        own = "".join(f"rows.{k}, " for k in names)
        by = f"\n  group by {', '.join(f'rows.{k}' for k in names)}" if names else ""
        square = "micro((x::DOUBLE - mean) * (x::DOUBLE - mean))"
        return (
            f"with means as (\n  select {shown}{_aggregate('mean', type_)} as mean\n  from rows{grouped}\n), "
            "groups as (\n"
            f"  select\n    {own}case when count(x) > 1 then\n"
            f"      sqrt(sum({square})::BIGINT::DOUBLE / {_MICRO} / (count(x) - 1))\n    end as value\n"
            f"  from rows\n  {means}{by}\n)\nselect value\nfrom rows\n{join}\norder by row_at"
        )
    return (
        f"with groups as (\n  select {shown}{_aggregate(function, type_)} as value\n  from rows{grouped}\n)\n"
        f"select value\nfrom rows\n{join}\norder by row_at"
    )
