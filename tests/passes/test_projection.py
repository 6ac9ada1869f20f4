"""What an expression is said to read is enough to compute it, and none of it can be left out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.core import Apply, Column, Core
from curatec.compiler.frames import KEY, Frames, Tokens
from curatec.compiler.passes.projection import needs_turns, turn_columns_of
from curatec.compiler.types import Level, Type
from curatec.runtime.conversation.tokens import RenderedTokens
from curatec.runtime.corpus import load
from curatec.runtime.formats.model import Run, Turn
from curatec.runtime.state import State
from tests.reference.digest import finished
from tests.semantics.corpora import Finished, corpora, write
from tests.semantics.generate import expressions
from tests.semantics.test_expressions import LEVELS, same
from tests.semantics.tools import core, plain, quick

MISSING = (pl.exceptions.ColumnNotFoundError, AssertionError)


def computed(
    state: State, made: Core, level: Level, only: Iterable[str] | None = None, tokens: Tokens | None = None
) -> object:
    """The values with all columns of TURNS or some; `overflow` where a number does not fit."""
    found: list[object] = []
    for _, whole in state.batches():
        turns = whole.turns.drop("run")
        some = turns if only is None else turns.select(sorted(only)) if only else None
        frames = Frames(whole.runs, some, toolsets=state.toolsets, paths=state.arg_paths, tokens=tokens)
        try:
            found += plain(frames.series(made, level))
        except pl.exceptions.InvalidOperationError as error:
            return "overflow" if "conversion" in str(error) else str(error)
    return found


@quick(0.5)
@given(corpora(), st.data())
def test_enough_and_not_too_much(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], data: st.DataObject
) -> None:
    texts = [(data.draw(expressions(level)), level) for level in LEVELS]
    cores = [(core(text, level), level) for text, level in texts]
    cores += [(Apply(KEY, (made,), Type.TEXT), level) for made, level in cores if made.type is Type.TEXT]
    state = load(write(sources, folder := tmp_path_factory.mktemp("parts")), [c for c, _ in cores], folder).state
    for made, level in cores:
        read = turn_columns_of([made], level)
        assert needs_turns(made) == bool(turn_columns_of([made])), made
        whole = computed(state, made, level)
        assert same(computed(state, made, level, read), whole), (made, read)
        if state.rows.height and isinstance(whole, list):
            assert unneeded(state, made, level, read) == [], made


def unneeded(state: State, made: Core, level: Level, read: frozenset[str], tokens: Tokens | None = None) -> list[str]:
    """Columns without which the expression is computed as well."""
    found = []
    for name in sorted(read):
        try:
            computed(state, made, level, read - {name}, tokens)
        except MISSING:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize(
    ("text", "level", "read"),
    [
        ("reward > 0.5 and meta.n == 1", Level.TRAJECTORY, ""),
        ("1 == 1", Level.TURN, "row"),
        ("content", Level.TURN, "content row"),
        ("index + 1", Level.TURN, "row"),
        ("prev.content", Level.TURN, "call_turn content role row turn"),
        ("count(turns)", Level.TRAJECTORY, "row"),
        ("count(calls)", Level.TRAJECTORY, "calls row turn"),
        ("any(calls where args.x == 1)", Level.TRAJECTORY, "calls row turn"),
        ('last(turns where role == "tool").content', Level.TRAJECTORY, "content role row"),
        ("result", Level.CALL, "calls content row turn"),
        ("trajectory.turn_count > 1", Level.TOOL, "role row"),
        ("used", Level.TOOL, "calls row turn"),
        ("name", Level.TOOL, ""),
        ("mean(turn_count) over (task)", Level.TRAJECTORY, "role row"),
    ],
)
def test_by_hand(text: str, level: Level, read: str) -> None:
    assert turn_columns_of([core(text, level)], level) == set(read.split())


def test_several_together() -> None:
    assert turn_columns_of([core("turn_count"), core("reward"), core("tool_names")]) == {"row", "role", "turn", "calls"}


@pytest.mark.parametrize("name", ["tokens", "trained_tokens"])
def test_tokens_of_a_template(tmp_path: Path, name: str) -> None:
    pytest.importorskip("tokenizers")
    from curatec.runtime.rendering import load as renderer_of

    said = Run("openai", [Turn("user", "hi", "text"), Turn("assistant", "Hello you", "text", loss_weight=1.0)])
    state = load(write({"t": [finished(said, set())]}, tmp_path), [], tmp_path).state
    tokens = RenderedTokens(renderer_of("builtin:tiny-qwen3", None, tmp_path, tmp_path, ()))
    made = Column(Level.TRAJECTORY, name, Type.INT)
    read = turn_columns_of([made], rendered=True)
    counted = computed(state, made, Level.TRAJECTORY, read, tokens)
    assert counted == computed(state, made, Level.TRAJECTORY, tokens=tokens) != computed(state, made, Level.TRAJECTORY)
    assert unneeded(state, made, Level.TRAJECTORY, read, tokens) == []
    of_turns = core("tokens", Level.TURN)
    read = turn_columns_of([of_turns], Level.TURN, rendered=True)
    assert read == {"row", "content", "reasoning", "calls"}
    assert computed(state, of_turns, Level.TURN, read, tokens) == computed(state, of_turns, Level.TURN, tokens=tokens)
