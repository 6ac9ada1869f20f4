"""Every function and operator of the registry on both engines: equal in type, in every value, and in what fails."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given

from curatec.compiler.core import Apply
from curatec.compiler.functions import FUNCTIONS
from tests.engines.drawn import applied
from tests.engines.tools import ENGINES, same, told
from tests.semantics.tools import core, plain, quick


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: str(entry.name))
def test_both_engines_compute_it_alike(entry: Any) -> None:
    @quick(1.5)
    @given(applied(entry))
    def holds(drawn: tuple[Apply, pl.DataFrame]) -> None:
        made, runs = drawn
        ours, theirs = (told(lambda engine=engine: engine.batch(runs).series(made)) for engine in ENGINES.values())
        assert same(ours, theirs), f"{made}\n{runs}\npolars: {_shown(ours)}\nduckdb: {_shown(theirs)}"

    holds()


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: str(entry.name))
def test_every_example_gives_what_it_says(entry: Any, engine: Any) -> None:
    runs = pl.DataFrame({"row": [0], "reward": [0.0]}, schema_overrides={"row": pl.UInt32})
    [value] = plain(engine.batch(runs).series(core(entry.example)))
    assert value == entry.gives
    assert type(value) is type(entry.gives)


def _shown(values: Any) -> Any:
    return (values.dtype, plain(values)) if isinstance(values, pl.Series) else values


def test_texts_pass_through_unchanged() -> None:
    """Also such as other libraries cut or mend: NUL, a lone CR, what is no character yet."""
    texts = ["\0", "a\0b", "\r", "\ufeff", "\uffff", "\U0010ffff", "", None]
    runs = pl.DataFrame({"row": range(len(texts)), "agent": texts}, schema_overrides={"row": pl.UInt32})
    for engine in ENGINES.values():
        assert plain(engine.batch(runs).series(core("agent"))) == texts
        assert plain(engine.batch(runs).series(core('if agent is null then agent else concat("", agent)'))) == texts


DEEP = (
    "reward / (" * 12 + "2.0" + ")" * 12,
    "sqrt(" * 14 + "reward" + ")" * 14,
    "least(" * 14 + "reward" + ", cost)" * 14,
    " + ".join(["reward * 0.1"] * 40),
    " + ".join(["trial"] * 60),
    "truncate(" * 8 + "task" + ', trial + 9, marker: "x")' * 8,
    "slice(" * 8 + "task" + ", trial - 3, trial + 5)" * 8,
    "extract(" * 12 + "task" + ', r"(.*)")' * 12,
    "".join(f"if trial == {i} then {i} else (" for i in range(40)) + "0" + ")" * 40,
)


@pytest.mark.parametrize("text", DEEP)
def test_what_is_deep_does_not_grow_beyond_measure(text: str) -> None:
    """A lowering that holds its argument twice would hold the innermost of these thousands of times, and never end."""
    columns = {"row": [0, 1], "reward": [0.5, None], "cost": [0.25, 3.0], "trial": [1, 2], "task": ["abcdef", "b"]}
    runs = pl.DataFrame(columns, schema_overrides={"row": pl.UInt32})
    ours, theirs = (engine.batch(runs).series(core(text)) for engine in ENGINES.values())
    assert same(ours, theirs)
    assert plain(ours)[0] is not None
