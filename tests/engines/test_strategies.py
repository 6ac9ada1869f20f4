"""Random strategies: what is published of them, rows, turns and ledger, is the same on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from curatec.compiler.engine import Engine
from curatec.compiler.passes import optimise
from curatec.compiler.plan import Plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.execute import Executed, execute
from tests.engines.tools import ENGINES
from tests.semantics.corpora import Finished, corpora, write
from tests.semantics.generate import strategies
from tests.semantics.test_strategies import plan_of, published
from tests.semantics.tools import quick

pytestmark = pytest.mark.usefixtures("parts")


@quick()
@given(corpora(), strategies())
def test_engines_publish_the_same(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], text: str
) -> None:
    folder = tmp_path_factory.mktemp("strategy")
    made = optimise(plan_of(text, folder))
    polars, duckdb = (done(made, sources, folder / name, engine) for name, engine in ENGINES.items())
    if isinstance(polars, str) or isinstance(duckdb, str):
        assert polars == duckdb, text
        return
    for ours, theirs in zip(published(polars), published(duckdb), strict=True):
        assert repr(ours) == repr(theirs), text


def done(made: Plan, sources: dict[str, Finished], folder: Path, engine: Engine) -> Executed | str:
    """What a plan gives, or all that is said where it fails."""
    (folder / "scratch").mkdir(parents=True)
    try:
        return execute(made, write(sources, folder, 3), folder / "scratch", engine=engine)
    except CuratecError as error:
        return "\n".join(f"{d.code} {d.message} {d.note} {d.help}" for d in error.diagnostics)
