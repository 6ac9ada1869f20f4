"""`distractors(n, pool, copies)`: copies that show `n` more tools, which the run had no use for.

The others are tools that some run shows as it enters the step, of the same source if `pool` says so, under names that
this run neither shows nor calls. Which ones, and where they stand among the run's own, is drawn; schemas keep their
text. Turns stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import polars as pl
import xxhash

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.compiler.text import draw
from curatec.runtime.state import State
from curatec.runtime.steps.augment.copies import Failures, copies, parents, repeated
from curatec.runtime.steps.created import Made, add
from curatec.runtime.steps.step import Place, apply

# Name of a tool → its schemas, as texts: runs of other versions or domains may show others under one name.
Pool = Mapping[str, Sequence[str]]
Tool = tuple[str | None, str]  # name and schema


@apply.register
def _(operation: plan.Distractors, state: State, place: Place) -> State:
    work = _Work(operation, place, dict(state.toolsets), _pools(state, operation))
    made = (work.copies(frames) for _, frames in state.batches())
    after = replace(add(state, place, "distractors", made), toolsets=work.toolsets)
    place.count(state, after, created=after.rows.height - state.rows.height, failed=work.failures.log(place))
    return after


def _pools(state: State, operation: plan.Distractors) -> dict[str | None, Pool]:
    """By source; under null where all runs share one."""
    shown = state.rows.select("source" if operation.pool == "source" else pl.lit(None).alias("source"), "toolset")
    found: dict[str | None, dict[str, set[str]]] = {}
    for source, toolset in shown.unique().drop_nulls("toolset").iter_rows():
        pool = found.setdefault(source, {})
        for name, text in tools_of(state.toolsets[toolset]):
            if name is not None:
                pool.setdefault(name, set()).add(text)
    return {source: {name: sorted(pool[name]) for name in sorted(pool)} for source, pool in found.items()}


@dataclass
class _Work:
    """The step while it goes from part to part. `toolsets` grows by what copies show."""

    operation: plan.Distractors
    place: Place
    toolsets: dict[str, str]
    pools: Mapping[str | None, Pool]
    failures: Failures = field(default_factory=Failures)
    parsed: dict[str, list[Tool]] = field(default_factory=dict)

    def copies(self, frames: Frames) -> Made:
        """The copies of a part."""
        called = dict(frames.calls.drop_nulls("name").group_by("run").agg("name").iter_rows())
        rows = frames.runs.select("id", "digest", "source", "toolset").rows()
        made: list[tuple[int, int, str]] = []
        for run in parents(frames.runs):
            id_, digest, source, toolset = rows[run]
            texts = self._shown(digest, source, toolset, frozenset(called.get(run, ())))
            if isinstance(texts, str):
                self.failures.add(id_, texts, self.operation.copies)
                continue
            for k, text in enumerate(texts):
                key = xxhash.xxh3_128_hexdigest(text.encode())
                self.toolsets[key] = text
                made.append((run, k, key))
        of = pl.DataFrame(made, schema={"run": pl.UInt32, "k": pl.Int32, "toolset": pl.String}, orient="row")
        children = copies(frames.runs, of["run"], of["k"], self.place).with_columns(of["toolset"])
        return Made(children, repeated(frames.turns, of["run"]))

    def _shown(self, digest: str, source: str, toolset: str | None, called: frozenset[str]) -> list[str] | str:
        """The lists of tools that copies of a run show, or why there are none."""
        if toolset is None:
            return "no_tools"
        own = self._tools(toolset)
        pool = self.pools[source if self.operation.pool == "source" else None]
        taken = called | {name for name, _ in own}
        if len(pool.keys() - taken) < self.operation.n:
            return "pool_too_small"
        shown = [text for _, text in own]
        keys = [f"{digest}.{k}" for k in range(self.operation.copies)]
        return [_mixed(shown, _drawn(pool, taken, self.operation.n, key), key) for key in keys]

    def _tools(self, toolset: str) -> list[Tool]:
        if toolset not in self.parsed:
            self.parsed[toolset] = tools_of(self.toolsets[toolset])
        return self.parsed[toolset]


def _drawn(pool: Pool, taken: frozenset[str | None], n: int, key: str) -> list[str]:
    """The schemas of `n` names that are not taken."""
    names = list(pool)
    found: dict[str, str] = {}
    for attempt in count():
        [number] = draw("distractors", attempt, pl.Series([key]))
        name = names[number % len(names)]
        if name not in taken:
            found.setdefault(name, pool[name][number // len(names) % len(pool[name])])
        if len(found) == n:
            break
    return list(found.values())


def _mixed(own: Sequence[str], more: Sequence[str], key: str) -> str:
    """All schemas as one list; each of the others goes to a drawn place, one after the other."""
    mixed = list(own)
    for number, text in enumerate(more):
        [place] = draw("distractors place", number, pl.Series([key]))
        mixed.insert(place % (len(mixed) + 1), text)
    return f"[{','.join(mixed)}]"


def tools_of(tools_json: str) -> list[Tool]:
    """Name and schema of each tool of a list, the schema as it is written."""
    decoder = json.JSONDecoder()
    found: list[Tool] = []
    at = _skip(tools_json, tools_json.index("[") + 1)
    while tools_json[at] != "]":
        tool, end = decoder.raw_decode(tools_json, at)
        found.append((tool["function"].get("name"), tools_json[at:end]))
        at = _skip(tools_json, end)
    return found


def _skip(text: str, at: int) -> int:
    """Behind white space and a comma."""
    while text[at] in " \t\r\n,":
        at += 1
    return at
