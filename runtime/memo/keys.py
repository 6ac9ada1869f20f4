"""Keys of what a compile computes: a chain from the records to each sink.

A key is a hash of the key before it, of what is done in canonical form, of what that reads besides rows (side tables, a
tokenizer) and of the code that does it. No label, reason, span or path is in it, and no engine, number of threads or
bound of memory (semantics 34). Two specs that begin alike have keys alike.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import xxhash

from curatec.compiler import plan
from curatec.compiler.core import Core, InTable
from curatec.runtime import sinks
from curatec.runtime.inputs import Input
from curatec.runtime.memo.code import code_of, own_code
from curatec.runtime.side import Side
from curatec.runtime.state import measures
from curatec.runtime.steps.step import apply
from curatec.runtime.way import Stop, ways

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

LAYOUT = 1  # of entries; raised when what is in them is written otherwise
_NAMED = (plan.Distractors, plan.Rebind, plan.Recover)  # ids of the rows that they make hold their label (semantics 30)


@dataclass(frozen=True, slots=True)
class Key:
    """`key` names a result; the others are what it was made of besides the key before it: `what` is done in canonical
    form, what it reads `beside` rows, the `code` that does it."""

    key: str
    what: str
    beside: str
    code: str


@dataclass(frozen=True)
class Keys:
    """`given`: of everything that `from` gives; `ways`: of the state behind each stop of a branch (None: shared);
    `sinks`: of what a sink writes."""

    given: Key
    begun: str  # of the state from which the shared steps begin
    ends: Mapping[str | None, str]  # of the state at the end of each branch
    ways: Mapping[str | None, tuple[Key, ...]]
    sinks: Mapping[str, Key]

    @property
    def source(self) -> str:
        return self.given.key

    def along(self, branch: str | None) -> list[str]:
        return [key.key for key in self.ways[branch]]

    def data(self, whole: plan.Plan, kept: Container[str]) -> dict[str, Any]:
        """For the manifest, so that the next one can be told from this one. `kept`: keys of results in the cache."""
        steps = [
            {"sink": way.branch, "label": stop.label} | _told(key, kept)
            for way in ways(whole)
            for stop, key in zip(way.stops, self.ways[way.branch], strict=True)
        ]
        sinks = {name: _told(key, kept) for name, key in self.sinks.items()}
        return {"from": _told(self.given, kept), "steps": steps, "sinks": sinks}


def _told(key: Key, kept: Container[str]) -> dict[str, Any]:
    return asdict(key) | {"kept": key.key in kept}


def keys_of(
    whole: plan.Plan, inputs: Sequence[Input], side: Side, renderer: Renderer | None, limit: int | None, root: Path
) -> Keys:
    """`root` is that of the cache that the inputs were parsed into."""
    given = _key(str(LAYOUT), _hash([_input(own, root) for own in inputs]), (), code_of("curatec.runtime.corpus"))
    begun = given.key if limit is None else _hash([given.key, limit])
    found: dict[str | None, tuple[Key, ...]] = {}
    last: dict[str | None, str] = {}
    for way in ways(whole):
        before = begun if way.branch is None else last[way.base]
        made: list[Key] = []
        for stop in way.stops:
            made.append(_stop(before, stop, whole, side, renderer))
            before = made[-1].key
        found[way.branch], last[way.branch] = tuple(made), before
    written = {branch.name: _sink(last[branch.name], branch, whole, side) for branch in whole.sinks}
    return Keys(given, begun, last, found, written)


def table_key(of: str, what: Sequence[str]) -> str:
    """The key of a table that is computed of a state."""
    return _hash([LAYOUT, of, *what])


def names_of(whole: plan.Plan, cores: Iterable[Core], side: Side) -> dict[Core, str]:
    """The names under which what expressions measure of turns is kept. They hold what is read of side tables: a state
    may hold what only a later step asks."""
    found = dict.fromkeys(m for core in cores for m in measures(core))
    return {core: "measure:" + _hash([plan.digest(core), _beside(core, whole, side)]) for core in found}


def _hash(parts: Any) -> str:
    return xxhash.xxh3_128_hexdigest(orjson.dumps(parts))


def _input(given: Input, root: Path) -> list[Any]:
    """Parsed parts are entries of the cache: their names are digests of what was parsed and of what parsed it."""
    corpus = given.corpus
    by_name = corpus.domain_from_path is not None or corpus.model_from_path is not None
    parts = [
        (place(part.runs, root), place(part.turns, root), part.files if by_name else ()) for part in given.parsed.parts
    ]
    return [plan.digest(corpus), given.files_digest, parts]


def place(path: Path, root: Path) -> str:
    """A file of the cache, relative to it."""
    return path.relative_to(root).as_posix()


def _stop(before: str, stop: Stop, whole: plan.Plan, side: Side, renderer: Renderer | None) -> Key:
    if stop.step is None:
        ids = [side.sealed[name].digest for name in sorted(side.sealed)]
        return _key(before, "held_out", ids, own_code("curatec.runtime.side"))
    operation = stop.step.operation
    label = stop.step.label if isinstance(operation, _NAMED) else None
    beside = [*_beside(operation, whole, side)]
    if isinstance(operation, plan.Render) and renderer is not None:
        beside.append(renderer.digest)
    code = code_of(apply.dispatch(type(operation)).__module__) + own_code("curatec.runtime.execute")
    return _key(before, _hash([plan.digest(operation), label, stop.again]), beside, code)


def _sink(before: str, branch: plan.Branch, whole: plan.Plan, side: Side) -> Key:
    assert branch.target is not None, branch.name
    what = _hash([plan.digest(branch.target), branch.name])
    return _key(before, what, _beside(branch.target, whole, side), code_of(sinks.module_of(branch.target)))


def _key(before: str, what: str, beside: Sequence[str], code: str) -> Key:
    read = _hash(beside) if beside else ""
    return Key(_hash([before, what, read, code]), what, read, code)


def _beside(node: Any, whole: plan.Plan, side: Side) -> list[str]:
    """Digests of the side tables and sealed sets that a node reads."""
    inside = list(plan.nodes(node))
    tables = {n.table for n in inside if isinstance(n, InTable | plan.Join)}
    sealed = {n.against for n in inside if isinstance(n, plan.Decontaminate)}
    declared = {table.name: plan.digest(table) for table in whole.tables}
    return [
        *(declared[name] + side.tables[name].digest for name in sorted(tables)),
        *(side.sealed[name].digest for name in sorted(sealed)),
    ]
