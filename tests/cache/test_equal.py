"""Warm is cold: after any edits of a spec, what was kept gives the rows, turns, ledger and files that a run without a
cache gives. Specs share one cache, so that each also begins from what the others left."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.passes import optimise
from curatec.compiler.plan import Plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.cache import Cache, DamagedEntry
from curatec.runtime.compile import sink
from curatec.runtime.execute import execute
from curatec.runtime.inputs import Input
from curatec.runtime.memo.memo import memo_for
from curatec.runtime.side import Side
from tests.semantics.corpora import Finished, corpora, write
from tests.semantics.generate import Steps, strategies
from tests.semantics.test_strategies import published
from tests.semantics.tools import quick

STEP = re.compile(r"^ +[a-z]+\d*: ")


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """A spec with one of its steps gone, moved, new, renamed or given a reason; it may be wrong then."""
    lines = text.split("\n")
    steps = [i for i, line in enumerate(lines) if STEP.match(line)]
    what = draw(st.sampled_from(["drop", "move", "swap", "new", "rename", "because", "same"]))
    if what == "new":
        at = draw(st.integers(7, len(lines) - 3))
        name = f"n{draw(st.integers(0, 99))}"
        lines.insert(at, f"    {name}: {Steps(draw).step(name)}")
    if not steps:
        return "\n".join(lines)
    at = draw(st.sampled_from(steps))
    match what:
        case "drop":
            del lines[at]
        case "move":
            lines.insert(draw(st.sampled_from(steps)), lines.pop(at))
        case "swap":
            other = draw(st.sampled_from(steps))
            lines[at], lines[other] = lines[other], lines[at]
        case "rename":
            lines[at] = re.sub(r"^( +)([a-z]+\d*):", r"\1\2_too:", lines[at])
        case "because":
            lines[at] += f' because "{draw(st.sampled_from(["this", "that"]))}"'
    return "\n".join(lines)


@st.composite
def histories(draw: st.DrawFn) -> list[str]:
    """A spec and what it becomes, edit by edit; now and then another one."""
    texts = [draw(strategies())]
    for _ in range(draw(st.integers(2, 5))):
        before = draw(st.sampled_from(texts))
        texts.append(draw(edited(before)) if draw(st.integers(0, 5)) else draw(strategies()))
    return texts


def plan_of(text: str, folder: Path) -> Plan | None:
    checked = check(load_text(text, "s.curate", folder))
    return optimise(checked.plan("s")) if checked.ok else None


def done(made: Plan, inputs: tuple[Input, ...], folder: Path, cache: Cache | None, limit: int | None) -> Any:
    """What a run publishes, or the code with which it fails."""
    while True:
        try:
            return once(made, inputs, folder, cache, limit)
        except CuratecError as error:
            return error.diagnostics[0].code
        except DamagedEntry:
            continue


def once(made: Plan, inputs: tuple[Input, ...], folder: Path, cache: Cache | None, limit: int | None) -> Any:
    shutil.rmtree(folder, ignore_errors=True)
    scratch, out = folder / "scratch", folder / "out"
    scratch.mkdir(parents=True)
    out.mkdir()
    memo = None if cache is None else memo_for(made, inputs, Side(), None, limit, cache)
    executed = execute(made, inputs, scratch, limit=limit, memo=memo)
    sunk = {branch.name: sink(executed, branch, out, folder / "former", memo) for branch in made.sinks}
    accounts = {name: replace(one.written, lineage=None) for name, one in sunk.items()}  # type: ignore[arg-type]
    frames = (*executed.ledger.lineage, *(one.written.lineage for one in sunk.values()))
    lineage = [row for frame in frames for row in frame.to_dicts()]
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    splits = None if executed.splits is None else executed.splits.sort("id").to_dicts()
    return [published(executed), accounts, lineage, files, splits]


def compare(folder: Path, sources: dict[str, Finished], texts: list[str], per_part: int, limit: int | None) -> None:
    cache = folder / "cache"
    cache.mkdir()
    inputs = write(sources, cache, per_part)
    for text in texts:
        made = plan_of(text, folder)
        if made is not None:
            cold = done(made, inputs, folder / "cold", None, limit)
            assert done(made, inputs, folder / "warm", Cache(cache), limit) == cold, text
            assert done(made, inputs, folder / "warm", Cache(cache), limit) == cold, text


@quick(0.6)
@given(corpora(), histories(), st.sampled_from([1, 2, 100]), st.sampled_from([None, None, 3]))
@pytest.mark.usefixtures("all_kept")
def test_warm_is_cold(
    tmp_path_factory: pytest.TempPathFactory,
    sources: dict[str, Finished],
    texts: list[str],
    per_part: int,
    limit: int | None,
) -> None:
    compare(tmp_path_factory.mktemp("history"), sources, texts, per_part, limit)


@quick(0.2)
@given(corpora(), histories(), st.randoms(use_true_random=False))
def test_whatever_is_lost(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], texts: list[str], chance: random.Random
) -> None:
    """Entries go from the cache, or are damaged, between any two runs."""
    folder = tmp_path_factory.mktemp("lost")
    cache = folder / "cache"
    cache.mkdir()
    inputs = write(sources, cache)
    for text in texts:
        made = plan_of(text, folder)
        if made is None:
            continue
        cold = done(made, inputs, folder / "cold", None, None)
        for _ in range(2):
            for entry in sorted(cache.glob("??/*")):
                lose(entry, chance)
            assert done(made, inputs, folder / "warm", Cache(cache), None) == cold, text


def lose(entry: Path, chance: random.Random) -> None:
    file = chance.choice(sorted(entry.iterdir()))
    match chance.randrange(6):
        case 0:
            shutil.rmtree(entry)
        case 1:
            file.unlink()
        case 2:
            file.write_bytes(file.read_bytes()[:-1])
        case 3:
            file.write_bytes(bytes(len(file.read_bytes())))
