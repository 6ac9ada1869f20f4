"""Three-valued logic over all values: what a condition is rewritten to has its value."""

from __future__ import annotations

import operator
from functools import reduce
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.compiler.core import Apply, Column, Const, Core
from curatec.compiler.frames import Frames
from curatec.compiler.passes.cheap_first import terms
from curatec.compiler.passes.rewriting import everywhere
from curatec.compiler.passes.simplify import simpler
from curatec.compiler.types import Level, Type

NAMES = ("a", "b", "c")
VALUES = (True, False, None)
ROWS = pl.DataFrame(list(product(VALUES, repeat=3)), schema=dict.fromkeys(NAMES, pl.Boolean), orient="row")
ROWS = ROWS.with_row_index("row")


def apply(name: str, *args: Core) -> Core:
    return Apply(name, args, Type.BOOL)


def conditions() -> st.SearchStrategy[Core]:
    columns = [Column(Level.TRAJECTORY, name, Type.BOOL) for name in NAMES]
    leaves = st.sampled_from([*columns, *columns, *(Const(value, Type.BOOL) for value in VALUES)])
    return st.recursive(
        leaves,
        lambda below: st.one_of(
            st.builds(apply, st.sampled_from(["and", "or"]), below, below),
            st.builds(apply, st.just("not"), below),
            st.builds(apply, st.just("if"), below, below, below),
            st.builds(apply, st.just("=="), below, below),
        ),
        max_leaves=12,
    )


def values(core: Core) -> list[bool | None]:
    return list(Frames(ROWS).series(core).to_list())


@settings(max_examples=400, derandomize=True, deadline=None)
@given(conditions())
def test_simpler_is_equal(core: Core) -> None:
    made = everywhere(core, simpler)
    assert values(made) == values(core)
    assert everywhere(made, simpler) == made


@pytest.mark.parametrize(("verb", "join"), [("keep", operator.and_), ("drop", operator.or_)])
@settings(max_examples=400, derandomize=True, deadline=None)
@given(conditions())
def test_terms_together_are_the_condition(verb: str, join: object, core: Core) -> None:
    assert callable(join)
    found = [Frames(ROWS).series(term) for term in terms(core, verb)]
    assert reduce(join, found).to_list() == values(core)


def test_logic_by_hand() -> None:
    """The table that the rules rest on, written down once."""
    a, b = (Column(Level.TRAJECTORY, name, Type.BOOL) for name in "ab")
    rows = ROWS.unique(["a", "b"], maintain_order=True)
    table = zip(
        rows["a"],
        rows["b"],
        Frames(rows).series(apply("and", a, b)),
        Frames(rows).series(apply("or", a, b)),
        strict=True,
    )
    assert list(table) == [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, True, False, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, True, None, True),
        (None, False, False, None),
        (None, None, None, None),
    ]
