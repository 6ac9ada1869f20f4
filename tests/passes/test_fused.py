"""What quantifiers of one pass share: their condition is evaluated once, and so is the table that they go over."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from curatec.compiler import frames
from curatec.compiler.frames import Frames
from curatec.runtime.state import State
from tests.semantics.tools import SAID, USER, Bench, call, record, result


def test_one_condition_for_all_kinds(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    compute, tables = Frames._compute, frames.Frames.calls.func

    def computed(self: Frames, core: Any, level: Any) -> Any:
        asked[f"{level}: {core.function}" if hasattr(core, "function") else "other"] += 1
        return compute(self, core, level)

    def calls(self: Frames) -> Any:
        asked["calls"] += 1
        return tables(self)

    monkeypatch.setattr(Frames, "_compute", computed)
    monkeypatch.setattr(frames.Frames.calls, "func", calls)
    passes: list[int] = []
    batches = State.map_batches
    monkeypatch.setattr(State, "map_batches", lambda self, *given: passes.append(1) or batches(self, *given))
    p = 'calls where name ~ r"^f"'
    body = f"""a: keep where any({p})
      b: derive x = count({p})
      c: drop where none({p}) or first({p}).is_error
      d: derive y = any(calls where name ~ r"^g")"""
    done = bench.run(
        body, [record(USER, call("f1"), result("x", is_error=is_error), SAID) for is_error in (True, False)]
    )
    assert done.shared.rows.select("x", "y").rows() == [(1, False)]
    assert asked["call: matches"] == 2  # one for `^f`, one for `^g`
    assert asked["calls"] == len(passes) == 1
