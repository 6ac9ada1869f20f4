"""What each engine computes itself, from the registry; and what one kernel does for both, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from curatec.compiler import operations, plan
from curatec.compiler.duckdb import sql
from curatec.compiler.functions import FUNCTIONS, WINDOWS
from curatec.compiler.types import Level
from tests.semantics.tools import core

OPERATIONS: tuple[type, ...] = get_args(operations.Operation)
_MAKES = "it makes or rewrites rows"
_HASHES = "hashes have one definition"
# How a spec writes a step, what of it is an engine's work, and what is done once for both.
EXPRESSIONS = "values"
PLACES = "values, and places in groups"
STEPS: dict[type, tuple[str, str, str]] = {
    plan.Filter: ("keep, drop", EXPRESSIONS, ""),
    plan.Derive: ("derive", EXPRESSIONS, ""),
    plan.Tag: ("tag failure", EXPRESSIONS, ""),
    plan.Sort: ("sort by", PLACES, ""),
    plan.Limit: ("limit … per", PLACES, ""),
    plan.LimitEach: ("limit … per each", PLACES, "rows are taken one by one"),
    plan.Sample: ("sample", PLACES, f"the draw: {_HASHES}"),
    plan.Mix: ("mix", "places", f"the draw: {_HASHES}; rows are taken one by one"),
    plan.Dedup: ("dedup exact", "values, and who leads a group", ""),
    plan.DedupNear: ("dedup near", "values, and who leads a group", f"likeness: {_HASHES}"),
    plan.Split: ("split by", "values, and parts by draw", f"the draw: {_HASHES}"),
    plan.Join: ("join", "values, and the look-up", ""),
    plan.TurnsFilter: ("turns keep, turns drop", EXPRESSIONS, f"the turns: {_MAKES}"),
    plan.TurnsSet: ("turns set", EXPRESSIONS, f"the turns: {_MAKES}"),
    plan.TurnsCut: ("turns cut", EXPRESSIONS, f"the turns: {_MAKES}"),
    plan.ToolsFilter: ("tools keep, tools drop", EXPRESSIONS, f"the lists of tools: {_MAKES}"),
    plan.Decompose: ("decompose", EXPRESSIONS, f"the rows: {_MAKES}"),
    plan.View: ("view", "", _MAKES),
    plan.Redact: ("redact", "", _MAKES),
    plan.Render: ("render", "", "a template is rendered by its own library"),
    plan.Distractors: ("augment distractors", "", _MAKES),
    plan.Rebind: ("augment rebind", "", _MAKES),
    plan.Recover: ("augment recover", "", _MAKES),
    plan.Decontaminate: ("decontaminate", "", f"n-grams: {_HASHES}"),
}


def counted() -> str:
    """In one sentence."""
    own = sum(bool(done) for _, done, _ in STEPS.values())
    return (
        f"{len(FUNCTIONS)} of {len(FUNCTIONS)} functions and operators, {len(WINDOWS)} of {len(WINDOWS)} window"
        f" aggregates and {own} of {len(STEPS)} steps are computed by either engine; {len(STEPS) - own} steps are one"
        " kernel for both."
    )


def page() -> str:
    """The tables of the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield counted()
    yield ""
    yield "| function | example | as DuckDB's SQL |"
    yield "|---|---|---|"
    for entry in FUNCTIONS.values():
        yield f"| `{_cell(entry.name)}` | `{_cell(entry.example)}` | `{_cell(_sql(entry.example))}` |"
    yield ""
    yield "| step | either engine | one kernel for both |"
    yield "|---|---|---|"
    for written, own, shared in STEPS.values():
        yield f"| {written} | {own or '–'} | {shared or '–'} |"


def _sql(text: str) -> str:
    """The expression of the only value of the last statement."""
    *_, last = sql.plan([core(text)], Level.TRAJECTORY, sql.Setting())
    assert isinstance(last, sql.Statement)
    return last.sql.split("\n")[1].strip().removesuffix(" as value_0")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
