"""Random expressions at every level, over random corpora: both engines and the reference give the same."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime.corpus import load
from tests.engines.tools import ENGINES, same, values
from tests.semantics.corpora import Finished, corpora, write
from tests.semantics.generate import expressions
from tests.semantics.test_expressions import LEVELS, reference
from tests.semantics.test_expressions import same as equal
from tests.semantics.tools import core, plain, quick

pytestmark = pytest.mark.usefixtures("parts")


@quick()
@given(corpora(), st.data(), st.sampled_from([1, 2, 100]))
def test_engines_and_reference_agree(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], data: st.DataObject, per_part: int
) -> None:
    texts = [(data.draw(expressions(level, windows=True)), level) for level in LEVELS for _ in range(2)]
    asked = [(core(text, level), level) for text, level in texts]
    folder = tmp_path_factory.mktemp("parts")
    inputs, cores = write(sources, folder, per_part), [c for c, _ in asked]
    found = [list(values(load(inputs, cores, folder, engine).state, asked)) for engine in ENGINES.values()]
    for (text, level), polars, duckdb, theirs in zip(texts, *found, reference(sources, asked), strict=True):
        assert same(polars, duckdb), f"{level}: {text}\npolars: {shown(polars)}\nduckdb: {shown(duckdb)}"
        assert equal(shown(duckdb), theirs), f"{level}: {text}\nduckdb: {shown(duckdb)}\nreference: {theirs}"


def shown(found: Any) -> Any:
    """Values as the reference has them; a level without any part has none."""
    return plain(found) if isinstance(found, pl.Series) else [] if found is None else found
