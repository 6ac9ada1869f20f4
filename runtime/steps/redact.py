"""`redact pii, secrets in all`: personal data and secrets give way to placeholders (`curatec.runtime.redaction`).

The same value has the same placeholder wherever it stands in a trajectory, `[EMAIL_1]`, so that what a call passes on
is still what a result gave. In scope `all` that holds for `gold` and `meta` of a reward's inputs as well. Facts keep
what the source said (a sink whose key is `meta.x` shows it), and so do schemas of tools, which are not the run's data.
Names of people have no pattern; they are out of reach without a language model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.runtime.redaction import Finder, RecogniserFailed, Redacted, Text, redact
from curatec.runtime.state import State
from curatec.runtime.steps.step import Place, apply

_SPOKEN = {"user": "content", "assistant": "content", "tool": "results", "system": "system"}  # role → scope
_COLUMNS = ("content", "parts", "reasoning", "calls")
_WIDE = ("gold_json", "meta_json")  # what of the record is exported besides its turns


@apply.register
def _(operation: plan.Redact, state: State, place: Place) -> State:
    finder = _finder(operation, place)
    written, rewritten, edited = state.turns, dict(state.rewritten), 0
    for part, frames in state.batches():
        ids, turns = frames.runs["id"], frames.turns
        wide: list[dict[str, str | None]] = [{} for _ in ids]
        if operation.scope == "all":
            wide = place.loaded.wide(state, frames.runs).select(_WIDE).to_dicts()
        work = _Part({name: turns[name].to_list() for name in ("role", *_COLUMNS)}, wide)
        try:
            work.redact(turns["run"].to_list(), operation.scope, finder)
        except RecogniserFailed as error:
            raise place.fail(
                "C0503",
                f"a library that looks for what to redact failed: {error}",
                "install the versions that this one was tested with: pip install --upgrade 'curatec[redact]'",
            ) from error
        finder.forget()
        for run, texts in work.rewritten.items():
            rewritten[ids[run]] = {**rewritten.get(ids[run], {}), **texts}
        written = written.written(part, work.turns(turns).drop("run"), place.file(part))
        edited += work.log(turns, ids, place)
    after = replace(state.edited(written), rewritten=rewritten)
    place.count(state, after, edited=edited)
    return after


def _finder(operation: plan.Redact, place: Place) -> Finder:
    try:
        return Finder(operation.families)
    except ImportError as error:
        raise place.fail(
            "C0502",
            f"`redact` needs a library that is not installed: {error.name}",
            "install it: pip install 'curatec[redact]'",
        ) from None


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a text stands: in a column of some turn, below it for parts and calls; without a turn, in the record.
    `again`: another one says the same, and its values are counted there."""

    at: int | None
    column: str
    index: int = 0
    member: str = ""
    again: bool = False


@dataclass
class _Part:
    """The turns of a part as plain values while they are rewritten."""

    columns: dict[str, list[Any]]
    wide: Sequence[Mapping[str, str | None]]
    counts: dict[tuple[int, int | None], Counter[str]] = field(default_factory=dict)  # (run, turn's position)
    rewritten: dict[int, dict[str, str]] = field(default_factory=dict)

    def redact(self, runs: Sequence[int], scope: str, finder: Finder) -> None:
        """Every trajectory of the part. `runs`: of each turn, ascending."""
        rows: list[list[int]] = [[] for _ in self.wide]
        for at, run in enumerate(runs):
            rows[run].append(at)
        for run, own in enumerate(rows):
            texts = [*self._texts(own, scope), *self._record(run)]
            for (slot, _), new in zip(texts, redact([text for _, text in texts], finder), strict=True):
                if new is not None:
                    self._put(run, slot, new)

    def _texts(self, own: Sequence[int], scope: str) -> Iterator[tuple[_Slot, Text]]:
        """All texts of some turns in their order, each with whether the step is about it."""
        role, content, parts, reasoning, calls = (self.columns[name] for name in ("role", *_COLUMNS))
        for at in own:
            spoken = scope in ("all", _SPOKEN.get(role[at]))
            if reasoning[at]:
                yield _Slot(at, "reasoning"), Text(reasoning[at], scope in ("all", "reasoning"))
            if content[at]:
                yield _Slot(at, "content"), Text(content[at], spoken)
            for index, part in enumerate(parts[at] or ()):
                if part["text"]:
                    yield _Slot(at, "parts", index, "text", part["kind"] == "text"), Text(part["text"], spoken)
            for index, call in enumerate(calls[at]):
                for member in ("args_json", "args_raw"):
                    if call[member]:
                        # Names of parameters belong to the tool.
                        said = Text(call[member], scope in ("all", "arguments"), keys=False)
                        again = member == "args_raw" and bool(call["args_json"])
                        yield _Slot(at, "calls", index, member, again), said

    def _record(self, run: int) -> Iterator[tuple[_Slot, Text]]:
        for name, text in self.wide[run].items():
            if text:
                yield _Slot(None, name), Text(text, keys=False)

    def _put(self, run: int, slot: _Slot, new: Redacted) -> None:
        self.counts.setdefault((run, slot.at), Counter()).update({} if slot.again else new.counts)
        if slot.at is None:
            self.rewritten.setdefault(run, {})[slot.column] = new.value
        elif slot.member:
            self.columns[slot.column][slot.at][slot.index][slot.member] = new.value
        else:
            self.columns[slot.column][slot.at] = new.value

    def turns(self, old: pl.DataFrame) -> pl.DataFrame:
        changed = pl.Series([at for _, at in self.counts if at is not None], dtype=pl.UInt32)
        return old.with_columns(
            *(pl.Series(name, self.columns[name], dtype=old.schema[name]) for name in _COLUMNS),
            edited=pl.col("edited") | pl.int_range(pl.len(), dtype=pl.UInt32).is_in(changed.implode()),
        )

    def log(self, turns: pl.DataFrame, ids: pl.Series, place: Place) -> int:
        """One ledger row for each turn and kind of finding, without a turn for the record; how many turns changed."""
        numbers = turns["turn"].to_list()
        rows = [
            (ids[run], None if at is None else numbers[at], name, n)
            for (run, at), counts in self.counts.items()
            for name, n in sorted(counts.items())
        ]
        schema = {"id": pl.String, "turn": pl.Int32, "key": pl.String, "n": pl.Int64}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        place.ledger.add(
            frame["id"],
            "edited",
            turn=frame["turn"],
            key=frame["key"],
            n=frame["n"],
            **place.common(),
        )
        return sum(at is not None for _, at in self.counts)
