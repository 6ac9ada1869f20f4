"""`explain --engine`: what is printed is what runs, in lines that fit a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.check.program import check
from curatec.compiler.content import TRAJECTORY_CONTENT
from curatec.compiler.duckdb import sql
from curatec.compiler.duckdb.layout import laid_out, macros
from curatec.compiler.load import load
from curatec.compiler.passes import optimise
from curatec.compiler.polars_text import OF_TURNS
from curatec.runtime.answers.explain import as_data
from tests import every_step
from tests.engines.tools import DUCKDB
from tests.semantics.generate import expressions, strategies
from tests.semantics.test_expressions import LEVELS
from tests.semantics.test_strategies import plan_of
from tests.semantics.tools import core, quick


def pieces(data: dict[str, Any]) -> list[str]:
    told = [*(step for branch in data["branches"] for step in branch["steps"]), *data["branches"]]
    return [piece["text"] for one in told for piece in one.get("runs", []) if piece["text"]]


def tokens(text: str) -> list[str]:
    return re.findall(r"E'(?:[^'\\]|\\.)*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|[^\w\s]", text)


@quick()
@given(st.data(), st.sampled_from(LEVELS))
def test_layout_changes_white_space_only(data: st.DataObject, level: Any) -> None:
    made = core(data.draw(expressions(level, windows=True)), level)
    for step in sql.plan([made], level, sql.Setting()):
        if isinstance(step, sql.Statement):
            laid = laid_out(step.sql)
            assert tokens(laid) == tokens(step.sql)
            assert [s.type for s in duckdb.extract_statements(laid)] == [duckdb.StatementType.SELECT]


@quick(0.5)
@given(strategies(), st.sampled_from(["polars", "duckdb"]))
def test_any_strategy_can_be_explained(tmp_path_factory: pytest.TempPathFactory, text: str, engine: str) -> None:
    made = optimise(plan_of(text, tmp_path_factory.mktemp("s")))
    data = as_data(made, engine)
    assert all(step["runs"] for branch in data["branches"] for step in branch["steps"])
    if engine == "duckdb":
        for statement in pieces(data):
            duckdb.extract_statements(statement)


def test_every_step_has_its_text(tmp_path: Path) -> None:
    spec = every_step.write(tmp_path)
    whole = optimise(check(load(str(spec))).plan(None))
    for engine in ("polars", "duckdb"):
        data = as_data(whole, engine)
        assert all(step["runs"] for branch in data["branches"] for step in branch["steps"])
    assert "runs" not in as_data(whole)["branches"][0]["steps"][0]


def test_macros_are_told_with_those_that_they_use() -> None:
    told = macros(["select points(x, 1, 2), settled(y)"])
    assert [re.findall(r"macro (\w+)", line)[0] for line in told] == ["settled", "from_point", "points"]
    made = duckdb.connect()
    for line in told:
        made.execute(line)
    made.close()


def test_macros_are_those_that_run() -> None:
    names = {row[0] for row in DUCKDB.select(_MACROS, {}).rows()}
    for line in macros(
        ["json_int( json_whole( estimated( micro( middle( lower_case( trim_blank( most( whole( read_float("]
    ):
        assert re.findall(r"macro (\w+)", line)[0] in names


_MACROS = "select function_name from duckdb_functions() where function_type = 'macro' and not internal"


def test_content_of_turns_has_words_for_polars() -> None:
    assert OF_TURNS.keys() == TRAJECTORY_CONTENT.keys()
