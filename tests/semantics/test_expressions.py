"""Random expressions at every level: the engine gives what the reference gives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.core import Core
from curatec.compiler.types import Level
from curatec.runtime.corpus import load
from tests.reference.corpus import rows_at_from
from tests.reference.interpreter import Interpreter, spots
from tests.reference.values import Overflow
from tests.semantics.corpora import Finished, corpora, listed, write
from tests.semantics.generate import expressions
from tests.semantics.tools import core, plain, quick

pytestmark = pytest.mark.usefixtures("parts")


def engine(sources: dict[str, Finished], folder: Path, cores: list[tuple[Core, Level]], per_part: int) -> list[Any]:
    """Values of each expression over all rows of its level; the name of the error where a number does not fit."""
    state = load(write(sources, folder, per_part), [c for c, _ in cores], folder).state
    found: list[Any] = []
    for made, level in cores:
        try:
            if level is Level.TRAJECTORY:  # windows compare all rows: measured part by part, then put together
                found.append(plain(state.values([made])[1][0]))
            else:
                found.append([v for _, frames in state.batches() for v in plain(frames.series(made, level))])
        except pl.exceptions.InvalidOperationError as error:
            found.append("overflow" if "conversion" in str(error) else str(error))
    return found


def reference(sources: dict[str, Finished], cores: list[tuple[Core, Level]]) -> list[Any]:
    rows = rows_at_from(listed(sources))
    told = Interpreter(rows)
    found: list[Any] = []
    for made, level in cores:
        try:
            found.append([told.value(made, spot) for row in rows for spot in spots(row, level)])
        except Overflow:
            found.append("overflow")
    return found


def same(a: Any, b: Any) -> bool:
    """Equal, and of one type: 1 is not 1.0, and no value is NaN."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    assert not (isinstance(a, float) and not math.isfinite(a)), a
    return type(a) is type(b) and a == b


LEVELS = (Level.TRAJECTORY, Level.TRAJECTORY, Level.TURN, Level.CALL, Level.TOOL)


@quick()
@given(corpora(), st.data(), st.sampled_from([1, 2, 100]))
def test_engine_and_reference_agree(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], data: st.DataObject, per_part: int
) -> None:
    texts = [(data.draw(expressions(level, windows=True)), level) for level in LEVELS for _ in range(2)]
    cores = [(core(text, level), level) for text, level in texts]
    made = engine(sources, tmp_path_factory.mktemp("parts"), cores, per_part)
    for (text, level), ours, theirs in zip(texts, made, reference(sources, cores), strict=True):
        assert same(ours, theirs), f"{level}: {text}\nengine:    {ours}\nreference: {theirs}"
