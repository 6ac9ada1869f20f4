"""Text kernels, each with one definition, and the hashes that stand in key columns.

Every function on text comes as a polars expression builder and as a plain-Python reference `*_py` of the same meaning
(the tests prove the two equal, and equal to DuckDB where it has the function). A null text gives null unless the
docstring says otherwise. Lengths and positions count code points, never bytes or grapheme clusters.

Hashes are never an engine's own: `hash_key` fills narrow key columns that both engines read, `draw` gives the numbers
that sampling and splitting compare with `threshold`. Both rest on xxh3, over bytes that this module defines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import polars as pl
from xxhash import xxh3_64_intdigest, xxh3_128_hexdigest

Keep = Literal["start", "end", "ends"]

TRIM_CHARS = " \t\r\n\f"

# Code points that DuckDB 2.0.1 leaves alone because its Unicode tables are older than those of polars 2.1.0, as runs
# (first, last, distance to the lower-case letter); tests/test_text.py regenerates the table from the two engines.
_NEWER_CASE_PAIRS: tuple[tuple[int, int, int], ...] = (
    (0x1C89, 0x1C89, 1),
    (0xA7CB, 0xA7CB, 0x0264 - 0xA7CB),
    (0xA7CC, 0xA7CC, 1),
    (0xA7CE, 0xA7CE, 1),
    (0xA7D2, 0xA7D2, 1),
    (0xA7D4, 0xA7D4, 1),
    (0xA7DA, 0xA7DA, 1),
    (0xA7DC, 0xA7DC, 0x019B - 0xA7DC),
    (0x10D50, 0x10D65, 0x20),
    (0x16EA0, 0x16EB8, 0x1B),
)

LOWER_PATCH: dict[str, str] = {
    chr(code): chr(code + shift) for first, last, shift in _NEWER_CASE_PAIRS for code in range(first, last + 1)
}
"""The 55 letters, one code point to one, that DuckDB's `lower` misses. Python 3.11's `str.lower` misses the same."""

LOWER_EXPANSIONS: dict[str, str] = {"\u0130": "i\u0307"}
"""The one letter whose lower case is two code points. DuckDB drops the dot, so its lowering replaces it beforehand."""


def lower(e: pl.Expr) -> pl.Expr:
    """Lower case, code point by code point: String -> String.

    The Unicode lower-case mapping of polars 2.1.0 without its one rule that looks at neighbours: a capital sigma is
    always U+03C3, also at the end of a word (where polars alone would write U+03C2, and DuckDB would not). So
    `lower(concat(a, b)) == concat(lower(a), lower(b))`. Only U+0130 becomes two code points (`LOWER_EXPANSIONS`).
    """
    return e.str.replace_all("\u03a3", "\u03c3", literal=True).str.to_lowercase()


def lower_py(text: str) -> str:
    """The reference of `lower`."""
    return "".join(LOWER_PATCH.get(char) or char.lower() for char in text)


def lower_sql(x: str) -> str:
    """DuckDB text of `lower` over the SQL expression `x` (VARCHAR)."""
    for char, expansion in LOWER_EXPANSIONS.items():
        x = f"replace({x}, '{char}', '{expansion}')"
    return f"translate(lower({x}), '{''.join(LOWER_PATCH)}', '{''.join(LOWER_PATCH.values())}')"


def trim(e: pl.Expr) -> pl.Expr:
    """Strip `[ \\t\\r\\n\\f]` on both sides, and nothing else (no U+00A0): String -> String."""
    return e.str.strip_chars(TRIM_CHARS)


def trim_py(text: str) -> str:
    """The reference of `trim`."""
    return text.strip(TRIM_CHARS)


def length(e: pl.Expr) -> pl.Expr:
    """Number of code points: String -> Int64."""
    return e.str.len_chars().cast(pl.Int64)


def slice_text(e: pl.Expr, start: pl.Expr, count: pl.Expr | None = None) -> pl.Expr:
    """The part of `e` that begins at code point `start` (from 0): String, int, int -> String.

    A negative start counts from the end; what lies before the first code point is part of the count but empty.
    Without `count` the part runs to the end; a negative count is 0; a null start or count gives null.
    """
    if count is None:
        return pl.when(start.is_not_null()).then(e.str.slice(start))
    part = e.str.slice(start, count.clip(lower_bound=0))
    return pl.when(start.is_not_null() & count.is_not_null()).then(part)


def slice_text_py(text: str, start: int, count: int | None = None) -> str:
    """The reference of `slice_text`."""
    begin = start if start >= 0 else start + len(text)
    end = len(text) if count is None else begin + max(count, 0)
    return text[max(begin, 0) : max(end, 0)]


def truncate(e: pl.Expr, n: pl.Expr, keep: Keep = "start", marker: str = "") -> pl.Expr:
    """At most `n` code points of `e`: String, int -> String.

    `keep` says which: the first ones, the last ones, or both ends (the head gets the odd one). A text that is not
    longer than `n` stays as it is. `marker` stands where text was cut and is not counted in `n`. A negative `n` is 0,
    a null `n` gives null. Raises ValueError for another `keep`.
    """
    n = n.cast(pl.Int64).clip(lower_bound=0)
    cut = pl.lit(marker)
    if keep == "start":
        short = pl.concat_str(e.str.head(n), cut)
    elif keep == "end":
        short = pl.concat_str(cut, e.str.tail(n))
    elif keep == "ends":
        short = pl.concat_str(e.str.head(n - n // 2), cut, e.str.tail(n // 2))
    else:
        raise ValueError(f"keep is start, end or ends, not {keep!r}")
    return pl.when(n.is_null()).then(None).when(e.str.len_chars() <= n).then(e).otherwise(short)


def truncate_py(text: str, n: int, keep: Keep = "start", marker: str = "") -> str:
    """The reference of `truncate`."""
    n = max(n, 0)
    if len(text) <= n:
        return text
    head = {"start": n, "end": 0, "ends": n - n // 2}[keep]
    return text[:head] + marker + text[len(text) - (n - head) :]


def concat(*parts: pl.Expr) -> pl.Expr:
    """The parts one after the other, a null part as "": String, ... -> String, never null."""
    return pl.concat_str([part.fill_null("") for part in parts])


def concat_py(*parts: str | None) -> str:
    """The reference of `concat`."""
    return "".join(part or "" for part in parts)


def estimate_tokens(e: pl.Expr) -> pl.Expr:
    """Tokens of a text where no tokenizer is named: its UTF-8 bytes / 4, rounded up: String -> Int64."""
    return (e.str.len_bytes().cast(pl.Int64) + 3) // 4


def estimate_tokens_py(text: str) -> int:
    """The reference of `estimate_tokens`."""
    return (len(text.encode()) + 3) // 4


# --- hashes ---------------------------------------------------------------------------------------------------------
#
# The canonical bytes of a tuple are those of its values one after the other. Each value says its type and where it
# ends, so no two tuples share their bytes:
#   null n;   bool b0; b1;   int i-12;   float f<IEEE bits as a signed integer>;   time t<microseconds, UTC>;
#   text s<bytes of its UTF-8>:<UTF-8>   list l<number of elements>;<elements>


def _encode_text(e: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit("s"), e.str.len_bytes().cast(pl.String), pl.lit(":"), e).fill_null("n;")


def _encode_whole(e: pl.Expr, tag: str) -> pl.Expr:
    return pl.concat_str(pl.lit(tag), e.cast(pl.String), pl.lit(";")).fill_null("n;")


def _float_bits(column: pl.Series) -> pl.Series:
    """The bits of each float as Int64, -0.0 as 0.0; ValueError for NaN or infinity, which no column may hold."""
    values = column.cast(pl.Float64) + 0.0
    if not values.is_finite().all():
        raise ValueError(f"column {column.name!r} holds NaN or infinity")
    bits = pl.Series(values.to_arrow().view("int64"))
    return bits.set(values == 0, 0)


def _encode(column: pl.Series) -> pl.Series:
    """The canonical bytes of each value of a column, as String."""
    kind = column.dtype
    if kind == pl.Null:
        return pl.Series(column.name, ["n;"] * len(column), dtype=pl.String)
    if kind.is_float():
        column, tag = _float_bits(column), "f"
    elif kind.is_integer():
        tag = "i"
    elif kind == pl.Boolean:
        column, tag = column.cast(pl.Int8), "b"
    elif isinstance(kind, pl.Datetime):
        column, tag = column.dt.cast_time_unit("us").cast(pl.Int64), "t"
    elif isinstance(kind, pl.List):
        return _encode_list(column)
    elif kind in (pl.String, pl.Enum, pl.Categorical):
        return pl.select(_encode_text(pl.lit(column.cast(pl.String)))).to_series()
    else:
        raise TypeError(f"column {column.name!r} of type {kind} cannot be a key")
    return pl.select(_encode_whole(pl.lit(column), tag)).to_series()


def _encode_list(column: pl.Series) -> pl.Series:
    if column.list.len().sum() == 0:
        inner = pl.Series([""] * len(column), dtype=pl.String)
    else:
        flat = _encode(column.explode(empty_as_null=False, keep_nulls=False))
        rows = pl.select(row=pl.int_range(len(column)).repeat_by(pl.lit(column).list.len().fill_null(0))).to_series()
        rows = rows.explode(empty_as_null=False, keep_nulls=False)
        joined = pl.DataFrame({"row": rows, "text": flat}).group_by("row").agg(pl.col("text").str.join(""))
        order = pl.DataFrame({"row": pl.int_range(len(column), eager=True)})
        inner = order.join(joined, on="row", how="left", maintain_order="left")["text"].fill_null("")
    size = column.list.len().cast(pl.String)
    return pl.select(pl.concat_str(pl.lit("l"), pl.lit(size), pl.lit(";"), pl.lit(inner)).fill_null("n;")).to_series()


def _canonical_bytes(columns: Sequence[pl.Series]) -> list[bytes]:
    parts = [pl.lit(_encode(column)) for column in columns]
    joined = pl.select(pl.concat_str(parts).cast(pl.Binary)).to_series()
    out: list[bytes] = joined.to_list()
    return out


def hash_key(columns: Sequence[pl.Series]) -> pl.Series:
    """The key of each row: n columns of the same length -> String "key", 32 hexadecimal digits, never null.

    xxh3_128 over the canonical bytes of the row's values. Columns are Boolean, integer (any width: the same number has
    the same key), float (-0.0 equals 0.0), String, Enum, Categorical, Datetime, or a List of these; the order of the
    columns counts and their names do not. Null differs from "" and from an empty list and equals null: what a null in
    a key means is the caller's. Raises ValueError for no column, unequal lengths, NaN or infinity, TypeError for
    another type.
    """
    if not columns or len({len(column) for column in columns}) != 1:
        raise ValueError("a key needs at least one column, all of the same length")
    return pl.Series("key", list(map(xxh3_128_hexdigest, _canonical_bytes(columns))), dtype=pl.String)


DRAW_BITS = 63


def draw(verb: str, seed: int, digests: pl.Series) -> pl.Series:
    """The draw of each trajectory for one step: String digests -> UInt64 "draw" below 2**63; null where it is null.

    A hash of the verb, the seed and the digest, so neither a label nor the order of rows or files can move it. A draw
    has 63 bits, so that `threshold(1.0)` is a uint64 too and every test is `draw < threshold(fraction)`.
    """
    head = f"s{len(verb.encode())}:{verb}i{seed};".encode()
    shift = 64 - DRAW_BITS
    values = [
        None if digest is None else xxh3_64_intdigest(head + b"s%d:%b" % (len(digest), digest)) >> shift
        for digest in digests.cast(pl.Binary).to_list()
    ]
    return pl.Series("draw", values, dtype=pl.UInt64)


def threshold(fraction: float) -> int:
    """The exclusive bound of the draws that make up `fraction`: 0.0 keeps none, 1.0 keeps all (2**63).

    Raises ValueError for a fraction outside 0 .. 1.
    """
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"a fraction lies between 0 and 1, not {fraction!r}")
    return int(math.ldexp(fraction, DRAW_BITS))
