"""Text kernels: polars expression, plain Python and DuckDB give the same; hashes are stable and unambiguous."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_128_hexdigest

from curatec.compiler import text as T

TRICKY = "aAzZ09 \t\r\n\f\v\u00a0ßẞéÉe\u0301ΣσςİıKÅ\u1e9e東京😀👩‍💻\u200d\U00010d50ꟜDŽ\x00'\""
TEXTS = st.text(st.sampled_from(TRICKY) | st.characters(exclude_categories=["Cs"]), max_size=12)
quick = settings(max_examples=150, deadline=None, derandomize=True)


def evaluate(texts: list[str | None], e: pl.Expr) -> list[object]:
    return pl.DataFrame({"t": texts}, schema={"t": pl.String}).select(e.alias("out"))["out"].to_list()


def all_letters() -> list[str]:
    return [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]


@pytest.fixture(scope="module")
def letters() -> pl.DataFrame:
    return pl.DataFrame({"t": all_letters()}).with_columns(
        polars=pl.col("t").str.to_lowercase(), ours=T.lower(pl.col("t"))
    )


def test_lower_patch_is_what_the_pinned_versions_need(letters: pl.DataFrame) -> None:
    frame = duckdb.sql("select t, polars, ours, lower(t) as duck from letters").pl()
    differ = {row["t"]: row["ours"] for row in frame.filter(pl.col("ours") != pl.col("duck")).to_dicts()}
    assert differ == T.LOWER_PATCH | T.LOWER_EXPANSIONS
    assert len(T.LOWER_PATCH) == 55
    assert frame.filter(pl.col("polars") != pl.col("ours")).is_empty()  # alone, no letter is at the end of a word
    assert {
        r["t"]: r["ours"] for r in letters.filter(pl.col("ours").str.len_chars() > 1).to_dicts()
    } == T.LOWER_EXPANSIONS


def test_lower_of_every_letter(letters: pl.DataFrame) -> None:
    assert letters["ours"].to_list() == [T.lower_py(c) for c in letters["t"]]
    assert (
        duckdb.sql(f"select {T.lower_sql('t')} as x, ours from letters where x is distinct from ours").fetchall() == []
    )


@pytest.mark.parametrize(
    ("given_text", "want"), [("ΟΔΟΣ", "οδοσ"), ("ΑΣ.", "ασ."), ("ς", "ς"), ("İSTANBUL", "i̇stanbul")]
)
def test_lower_looks_at_no_neighbour(given_text: str, want: str) -> None:
    assert evaluate([given_text], T.lower(pl.col("t"))) == [want]
    assert duckdb.execute(f"select {T.lower_sql('$1')}", [given_text]).fetchall() == [(want,)]


@quick
@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_unary_kernels(texts: list[str]) -> None:
    t = pl.col("t")
    assert evaluate([*texts, None], T.lower(t)) == [*map(T.lower_py, texts), None]
    assert evaluate([*texts, None], T.trim(t)) == [*map(T.trim_py, texts), None]
    assert evaluate([*texts, None], T.length(t)) == [*map(len, texts), None]
    assert evaluate([*texts, None], T.estimate_tokens(t)) == [*map(T.estimate_tokens_py, texts), None]


@settings(quick, max_examples=60)
@given(TEXTS)
def test_duckdb_says_the_same(text: str) -> None:
    rows = duckdb.execute(f"select {T.lower_sql('$1')}, trim($1, $2), length($1)", [text, T.TRIM_CHARS]).fetchall()
    assert rows == [(T.lower_py(text), T.trim_py(text), len(text))]


@quick
@given(TEXTS, st.integers(-3, 14), st.sampled_from(["start", "end", "ends"]), st.sampled_from(["", "…"]))
def test_truncate(text: str, n: int, keep: T.Keep, marker: str) -> None:
    want = T.truncate_py(text, n, keep, marker)
    assert evaluate([text, None], T.truncate(pl.col("t"), pl.lit(n), keep, marker)) == [want, None]
    assert len(want) <= max(n, 0) + len(marker)
    column = pl.DataFrame({"t": [text, text], "n": [n, None]})
    assert column.select(T.truncate(pl.col("t"), pl.col("n"), keep, marker)).to_series().to_list() == [want, None]


def test_truncate_by_example() -> None:
    t = pl.col("t")
    assert evaluate(["abcdefg"], T.truncate(t, pl.lit(5), "ends")) == ["abcfg"]
    assert evaluate(["日本語😀"], T.truncate(t, pl.lit(2), "end")) == ["語😀"]
    assert evaluate(["abcdefg"], T.truncate(t, pl.lit(1), "ends", "[…]")) == ["a[…]"]
    with pytest.raises(ValueError, match="keep is"):
        T.truncate(t, pl.lit(1), "middle")  # type: ignore[arg-type]


@quick
@given(TEXTS, st.integers(-15, 15), st.none() | st.integers(-2, 15))
def test_slice(text: str, start: int, count: int | None) -> None:
    e = T.slice_text(pl.col("t"), pl.lit(start), None if count is None else pl.lit(count))
    assert evaluate([text, None], e) == [T.slice_text_py(text, start, count), None]


def test_slice_of_null_bounds() -> None:
    nothing = pl.lit(None, dtype=pl.Int64)
    assert evaluate(["abc"], T.slice_text(pl.col("t"), nothing)) == [None]
    assert evaluate(["abc"], T.slice_text(pl.col("t"), pl.lit(0), nothing)) == [None]


@quick
@given(st.none() | TEXTS, st.none() | TEXTS)
def test_concat(a: str | None, b: str | None) -> None:
    frame = pl.DataFrame({"a": [a], "b": [b]}, schema={"a": pl.String, "b": pl.String})
    assert frame.select(T.concat(pl.col("a"), pl.lit(": "), pl.col("b"))).item() == T.concat_py(a, ": ", b)


# --- hashes ---------------------------------------------------------------------------------------------------------


def encode_py(value: object) -> bytes:
    """The canonical bytes written down a second time, from the comment in text.py."""
    import struct

    if value is None:
        return b"n;"
    if isinstance(value, bool):
        return b"b%d;" % value
    if isinstance(value, int):
        return b"i%d;" % value
    if isinstance(value, float):
        return b"f%d;" % struct.unpack("<q", struct.pack("<d", value + 0.0))
    if isinstance(value, str):
        return b"s%d:%b" % (len(value.encode()), value.encode())
    assert isinstance(value, list)
    return b"l%d;" % len(value) + b"".join(map(encode_py, value))


ROWS = st.lists(
    st.tuples(
        st.none() | st.booleans(),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | TEXTS,
        st.none() | st.lists(st.none() | TEXTS, max_size=3),
    ),
    max_size=5,
)
TYPES = [pl.Boolean, pl.Int64, pl.Float64, pl.String, pl.List(pl.String)]


@quick
@given(ROWS)
def test_hash_key_is_xxh3_of_the_documented_bytes(rows: list[tuple[object, ...]]) -> None:
    columns = [pl.Series(f"c{i}", [row[i] for row in rows], dtype=kind) for i, kind in enumerate(TYPES)]
    want = [xxh3_128_hexdigest(b"".join(map(encode_py, row))) for row in rows]
    assert T.hash_key(columns).to_list() == want


def keys(*columns: pl.Series) -> list[str]:
    return T.hash_key(columns).to_list()


def test_hash_key_tells_apart_what_differs() -> None:
    text = keys(pl.Series(["", None, "null", "n;", "0", "s1:a"]))
    assert len(set(text)) == 6
    assert keys(pl.Series(["a"]), pl.Series(["bc"])) != keys(pl.Series(["ab"]), pl.Series(["c"]))
    lists = [[], [""], None, [None], ["a", "b"], ["ab"], ["b", "a"]]
    assert len(set(keys(pl.Series(lists, dtype=pl.List(pl.String))))) == 7
    assert keys(pl.Series([1]))[0] not in keys(pl.Series(["1"])) + keys(pl.Series([True])) + keys(pl.Series([1.0]))


def test_hash_key_unites_what_is_equal() -> None:
    assert len(set(keys(pl.Series([0.0, -0.0])))) == 1
    assert keys(pl.Series([7], dtype=pl.Int32)) == keys(pl.Series([7], dtype=pl.UInt64)) == keys(pl.Series([7]))
    assert keys(pl.Series(["tool"], dtype=pl.Enum(["tool"]))) == keys(pl.Series(["tool"]))
    assert keys(pl.Series([None])) == keys(pl.Series([None], dtype=pl.List(pl.String)))
    assert T.hash_key([pl.Series([], dtype=pl.List(pl.String))]).to_list() == []


def test_hash_key_of_known_values() -> None:
    """Keys live in published files: these digits may never change."""
    assert keys(pl.Series(["airline/1"]), pl.Series([3])) == [xxh3_128_hexdigest(b"s9:airline/1i3;")]
    assert keys(pl.Series([""])) == ["5c8eef17b21d97c28e748bb28b3d062b"]


def test_hash_key_refuses() -> None:
    with pytest.raises(ValueError, match="at least one"):
        T.hash_key([])
    with pytest.raises(ValueError, match="same length"):
        T.hash_key([pl.Series([1]), pl.Series([1, 2])])
    with pytest.raises(ValueError, match="NaN"):
        T.hash_key([pl.Series([float("nan")])])
    with pytest.raises(TypeError, match="cannot be a key"):
        T.hash_key([pl.Series([{"a": 1}])])


def test_draw_depends_on_verb_seed_and_digest_only() -> None:
    digests = pl.Series([f"{i:032x}" for i in range(4000)])
    first = T.draw("sample", 7, digests)
    assert first.dtype == pl.UInt64
    assert T.draw("sample", 7, digests.reverse()).reverse().to_list() == first.to_list()
    assert not (first == T.draw("sample", 8, digests)).any()
    assert not (first == T.draw("split", 7, digests)).any()
    assert 800 - 90 < (first < T.threshold(0.2)).sum() < 800 + 90
    assert (first < T.threshold(1.0)).all()
    assert not (first < T.threshold(0.0)).any()
    assert T.draw("sample", 7, pl.Series([None, "a"], dtype=pl.String)).null_count() == 1


def test_threshold_refuses() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        T.threshold(1.5)
