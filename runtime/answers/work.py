"""What a compile would take from the cache, what it would run, and why: by the keys of this plan, those of the last
compile, and what the cache holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from curatec.compiler import plan
from curatec.compiler.core import InTable
from curatec.runtime.memo.keys import Key
from curatec.runtime.memo.memo import Memo
from curatec.runtime.way import Stop, Way, ways

_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class Work:
    """Of a step (`stop` is its label) or a sink (None): whether it runs, and why it does or need not."""

    branch: str | None
    stop: str | None
    runs: bool
    why: str


@dataclass(frozen=True)
class _Last:
    """The last compile: its keys, whether each result was kept, and what its steps were."""

    kept: Mapping[str, bool]
    steps: Mapping[tuple[str | None, str], Mapping[str, Any]]
    sinks: Mapping[str, Mapping[str, Any]]
    given: Mapping[str, Any]

    @classmethod
    def of(cls, manifest: Mapping[str, Any] | None) -> _Last | None:
        keys = manifest["run"].get("keys") if manifest is not None else None
        if keys is None:
            return None
        told = [keys["from"], *keys["steps"], *keys["sinks"].values()]
        steps = {(step["sink"], step["label"]): step for step in keys["steps"]}
        return cls({one["key"]: one["kept"] for one in told}, steps, keys["sinks"], keys["from"])


def work(whole: plan.Plan, memo: Memo, manifest: Mapping[str, Any] | None) -> Iterator[Work]:
    """Steps in the order in which they run, then sinks. `manifest`: of the output that the last compile left."""
    last = _Last.of(manifest)
    cause: dict[str | None, str] = {}  # branch → why its rows are others than those of the last compile
    for way in ways(whole):
        before = _given(memo.keys.given, last) if way.branch is None else cause[way.base]
        passed = memo.passed(memo.keys.along(way.branch))
        for at, (stop, key) in enumerate(zip(way.stops, memo.keys.ways[way.branch], strict=True)):
            own = before or _changed(stop, key, way, last)
            kept = at < passed
            yield Work(way.branch, stop.label, not kept, _kept(key, last) if kept else own or _gone(key, memo, last))
            before = before or (own if stop.step is None else own and f"behind `{stop.label}`")
        cause[way.branch] = before
    for sink in whole.sinks:
        key = memo.keys.sinks[sink.name]
        kept = memo.cache.find(key.key) is not None
        own = cause[sink.name] or _sink(sink, key, last)
        yield Work(sink.name, None, not kept, _kept(key, last) if kept else own or _gone(key, memo, last))


def _kept(key: Key, last: _Last | None) -> str:
    return "" if last is not None and key.key in last.kept else "kept by another compile"


def _gone(key: Key, memo: Memo, last: _Last | None) -> str:
    """Why the cache does not hold what the last compile came by as well."""
    if last is None or key.key not in last.kept:
        return "the cache holds nothing of it"
    if last.kept[key.key]:
        return f"it left the cache, which is bound to {memo.cache.bound / _GB:g} GB"
    return "it is sooner done than kept"


def _given(key: Key, last: _Last | None) -> str:
    """Why `from` gives something else than the last time; empty where it does not, or where that is not known."""
    if last is None or last.given["key"] == key.key:
        return ""
    if last.given["what"] != key.what:
        return "other runs come in"
    return "the code of curatec that reads runs changed"


def _changed(stop: Stop, key: Key, way: Way, last: _Last | None) -> str:
    """Why a step gives something else than the last time, although the same comes in."""
    if last is None or key.key in last.kept:
        return ""
    old = last.steps.get((way.branch, stop.label))
    if old is None:
        moved = any(step["what"] == key.what for step in last.steps.values())
        return "it stands at another place" if moved else "it is new"
    if old["what"] != key.what:
        return "it changed"
    if old["beside"] != key.beside:
        return f"{_read(stop)} changed"
    if old["code"] != key.code:
        return "the code of curatec that computes it changed"
    return "it stands at another place"


def _read(stop: Stop) -> str:
    """What a step reads besides rows."""
    if stop.step is None:
        return "a test set"
    operation = stop.step.operation
    match operation:
        case plan.Render():
            return "the tokenizer or its template"
        case plan.Decontaminate(against=against):
            return f"test set `{against}`"
    names = sorted({node.table for node in plan.nodes(operation) if isinstance(node, InTable | plan.Join)})
    return " or ".join(f"table `{name}`" for name in names)


def _sink(sink: plan.Branch, key: Key, last: _Last | None) -> str:
    """Why a sink writes something else of the same rows."""
    if last is None or key.key in last.kept:
        return ""
    old = last.sinks.get(sink.name)
    if old is None:
        return "it is new"
    if old["what"] != key.what:
        return "its settings changed"
    if old["beside"] != key.beside:
        return "a table that it reads changed"
    if old["code"] != key.code:
        return "the code of curatec that writes it changed"
    return "other rows come in"
