"""What compares rows: places, leaders, windows, attempts, draws and look-ups are the same on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.core import Column, Window
from curatec.compiler.duckdb.engine import DuckDB
from curatec.compiler.functions import WINDOWS
from curatec.compiler.types import Level, Type
from curatec.dsl.diagnostics import CuratecError
from tests.engines.drawn import VALUES, column
from tests.engines.tools import DUCKDB, ENGINES, same, told
from tests.semantics.tools import plain, quick

KEYS = (Type.TEXT, Type.INT, Type.BOOL, Type.FLOAT)


@st.composite
def columns(draw: st.DrawFn, height: int, type_: Type, distinct: int = 3) -> pl.Series:
    """Values that often come again, nulls among them."""
    few = draw(st.lists(VALUES[type_], min_size=1, max_size=distinct))
    return column("x", type_, draw(st.lists(st.sampled_from([*few, None]), min_size=height, max_size=height)))


@st.composite
def keyed(draw: st.DrawFn) -> tuple[int, list[pl.Series]]:
    height = draw(st.integers(0, 12))
    return height, [draw(columns(height, t)) for t in draw(st.lists(st.sampled_from(KEYS), max_size=2))]


def both(method: str, *given_: Any) -> list[Any]:
    return [told(lambda engine=engine: getattr(engine, method)(*given_)) for engine in ENGINES.values()]


@quick(2)
@given(keyed(), st.data())
def test_places_and_leaders(drawn: tuple[int, list[pl.Series]], data: st.DataObject) -> None:
    height, keys = drawn
    types = data.draw(st.lists(st.sampled_from(KEYS), max_size=2))
    order = [data.draw(columns(height, type_)) for type_ in types]
    ids = pl.Series(
        data.draw(st.lists(VALUES[Type.TEXT], min_size=height, max_size=height, unique=True)), dtype=pl.String
    )
    descending = [*(data.draw(st.booleans()) for _ in order), False]
    for method in ("places", "leaders"):
        polars, duckdb = both(method, keys, [*order, ids], descending)
        assert same(polars, duckdb), (method, keys, order, ids, descending)
    expected = [_place(i, keys, [*order, ids], descending) for i in range(height)]
    assert plain(DUCKDB.places(keys, [*order, ids], descending)) == expected


def _place(row: int, keys: list[pl.Series], order: list[pl.Series], descending: list[bool]) -> int:
    """How many rows of its group come before: a second implementation, pair by pair."""
    alike = [i for i in range(len(order[0])) if all(k[i] == k[row] for k in keys)]
    return sum(_before(i, row, order, descending) for i in alike)


def _before(a: int, b: int, order: list[pl.Series], descending: list[bool]) -> bool:
    for values, down in zip(order, descending, strict=True):
        left, right = values[a], values[b]
        if left == right:
            continue
        if left is None or right is None:
            return right is None
        return bool(left > right if down else left < right)
    return False


@pytest.mark.parametrize("entry", WINDOWS.values(), ids=lambda entry: str(entry.name))
def test_windows(entry: Any) -> None:
    @quick(2)
    @given(keyed(), st.data())
    def holds(drawn: tuple[int, list[pl.Series]], data: st.DataObject) -> None:
        height, keys = drawn
        type_ = data.draw(st.sampled_from(entry.argument)) if entry.argument else Type.INT
        argument = data.draw(columns(height, type_, 8)) if entry.argument else None
        stands = Column(Level.TRAJECTORY, "x", type_)
        window = Window(
            entry.name,
            stands if entry.argument else None,
            (stands,) * len(keys),
            entry.returns or type_,
            descending=entry.name == "rank" and data.draw(st.booleans()),
        )
        polars, duckdb = both("aggregate", window, argument, keys, height)
        assert same(polars, duckdb), f"{window}\n{argument}\n{keys}\n{polars}\n{duckdb}"

    holds()


@quick()
@given(st.integers(0, 12), st.data())
def test_attempts(height: int, data: st.DataObject) -> None:
    keys = [data.draw(columns(height, Type.TEXT)) for _ in range(2)]
    success, reward = data.draw(columns(height, Type.BOOL)), data.draw(columns(height, Type.FLOAT))
    polars, duckdb = (engine.attempts(keys, success, reward) for engine in ENGINES.values())
    assert polars.schema == duckdb.schema
    assert all(same(polars[name], duckdb[name]) for name in polars.columns), (keys, success, reward, polars, duckdb)


@quick()
@given(st.lists(st.integers(0, 2**63 - 1), max_size=8), st.lists(st.integers(0, 2**63), max_size=3))
def test_allot(draws: list[int], bounds: list[int]) -> None:
    named = [(bound, f"part '{i}'") for i, bound in enumerate(sorted(bounds))]
    expected = [next((name for bound, name in named if draw < bound), "rest") for draw in draws]
    for engine in ENGINES.values():
        assert engine.allot(pl.Series(draws, dtype=pl.UInt64), named, "rest").to_list() == expected


@quick()
@given(st.sampled_from(KEYS[:2]), st.data())
def test_look_up(type_: Type, data: st.DataObject) -> None:
    keys = data.draw(st.lists(VALUES[type_], max_size=5, unique=True))
    table = pl.DataFrame([column("key", type_, keys), pl.Series("column:Id", range(len(keys)), dtype=pl.Int64)])
    table = table.with_columns(pl.lit("x").alias("column:id"))
    asked = column(
        "on", type_, data.draw(st.lists(st.sampled_from([*keys, *data.draw(st.lists(VALUES[type_])), None])))
    )
    polars, duckdb = (engine.look_up(asked, table) for engine in ENGINES.values())
    assert polars.columns == duckdb.columns == ["column:Id", "column:id", "matched"]
    assert all(same(polars[name], duckdb[name]) for name in polars.columns)
    assert duckdb["matched"].to_list() == [key is not None and key in keys for key in asked.to_list()]


def test_what_does_not_fit_is_written_to_disk(tmp_path: Path) -> None:
    """600,000 ids and keys of 70 bytes do not fit in 40 MB together with what sorting them takes."""
    height = 600_000
    ids = pl.Series([f"{(i * 2_654_435_761) % height:032x}" for i in range(height)])
    keys = pl.Series([f"task {i % 5_000} {'x' * 60}" for i in range(height)])
    with DuckDB(None, 40 * 10**6, 2, tmp_path / "spill") as bounded:
        found = bounded.places([keys], [ids], [False])
    assert found.equals(ENGINES["polars"].places([keys], [ids], [False]))
    with DuckDB(None, 15 * 10**6, 2, tmp_path / "spill") as tiny, pytest.raises(CuratecError) as raised:
        tiny.places([keys], [ids], [False])
    assert raised.value.diagnostics[0].code == "C0640"
