"""The files that a compile reads: spec and imports, corpus, side data, tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from curatec.compiler import plan
from curatec.compiler.load import Program
from curatec.runtime.cache import TICK, stamp_of
from curatec.runtime.memo.unchanged import search


@dataclass(frozen=True)
class Read:
    """`files` that are read, with their stats; `searched`: patterns, the folder that they are relative to, and what is
    found by them."""

    files: dict[str, tuple[int, ...]]
    searched: list[tuple[list[str], str, list[str]]]


def read_by(spec: str, program: Program, whole: plan.Plan, began: int) -> Read | None:
    """Everything that a compile of a plan reads; null where it cannot be told from what comes later. `began`: when the
    spec began to be read, in ns."""
    files = [module.folder.absolute() / Path(module.parsed.source.name).name for module in program.modules]
    searched = [(list(patterns), base, search(patterns, base)) for patterns, base in _patterns(whole)]
    for said in (step.operation for step in whole.shared if isinstance(step.operation, plan.Render)):
        folder = Path(said.base) / said.tokenizer
        if said.tokenizer.startswith("builtin:"):
            continue
        if not folder.is_dir():  # in a cache that others keep
            return None
        files += [folder.absolute(), *folder.absolute().rglob("*")]
        files += [Path(said.base).absolute() / said.template] if said.template is not None else []
    try:
        found = [Path(name) for _, _, names in searched for name in names]
        stats = {str(file): stamp_of(file) for file in (*files, *found)}
    except OSError:  # of a spec from git as well
        return None
    changed = max(changed for _, changed, _ in stats.values())
    return Read(stats, searched) if Path(spec).exists() and changed < began - TICK else None


def _patterns(whole: plan.Plan) -> Iterator[tuple[tuple[str, ...], str]]:
    for corpus in whole.corpora:
        yield corpus.path, corpus.base
        yield from (((name,), corpus.base) for name in (corpus.tools_from, corpus.system_from) if name is not None)
    yield from ((table.path, table.base) for table in whole.tables)
    yield from ((sealed.path, sealed.base) for sealed in whole.sealed)
