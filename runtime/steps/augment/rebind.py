"""`rebind(entities, copies)`: copies in which the values of some arguments are others, everywhere alike.

Every value that a call of the run gives to one of the named arguments, however deep, is an entity. A copy has another
value of the same shape in its place: in what is said, thought, called and returned, in the gold and in `meta`. Facts
stay as read. A copy that would contradict itself is not made:

- `no_entity`: no call names such an argument;
- `entity_too_short`, `entity_is_word`, `entity_is_number`: a value cannot be told from other text (fewer than three
  letters or digits, a plain word), or is a number with an exponent;
- `entity_in_invalid_arguments`: it stands in arguments that are not JSON;
- `entity_in_tools`: the schemas that the run shows hold it;
- `entity_inside_word`: it also stands inside something longer, which would go on naming the old one;
- `gold_disagrees`: the gold gives such an argument a value that the run never saw;
- `no_new_value`: all values of its shape that were tried stand in the run already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.runtime.state import State
from curatec.runtime.steps.augment.conversation import RECORD, TURNS, Conversation, entities
from curatec.runtime.steps.augment.copies import Failures, copies, parents, repeated
from curatec.runtime.steps.augment.entities import others
from curatec.runtime.steps.created import Made, add
from curatec.runtime.steps.step import Place, apply


@apply.register
def _(operation: plan.Rebind, state: State, place: Place) -> State:
    work = _Work(operation, state, place)
    after = add(state, place, "rebind", (work.copies(frames) for _, frames in state.batches()))
    rewritten = {id_: {**after.rewritten.get(id_, {}), **texts} for id_, texts in work.rewritten.items()}
    after = replace(after, rewritten={**after.rewritten, **rewritten})
    place.count(state, after, created=after.rows.height - state.rows.height, failed=work.failures.log(place))
    return after


@dataclass(frozen=True, slots=True)
class _Copy:
    run: int  # position of the parent in its part
    ordinal: int
    told: Conversation


@dataclass
class _Work:
    """The step while it goes from part to part."""

    operation: plan.Rebind
    state: State
    place: Place
    failures: Failures = field(default_factory=Failures)
    rewritten: dict[str, dict[str, str]] = field(default_factory=dict)  # id of a copy → texts of its record

    def copies(self, frames: Frames) -> Made:
        """The copies of a part."""
        runs = frames.runs
        conversations = _conversations(frames, self.place.loaded.wide(self.state, runs))
        about = runs.select("id", "digest", "toolset").rows()
        made = [
            _Copy(run, k, told) for run in parents(runs) for k, told in self._rebound(conversations[run], *about[run])
        ]
        of = pl.Series([copy.run for copy in made], dtype=pl.UInt32)
        rows = copies(runs, of, pl.Series([copy.ordinal for copy in made], dtype=pl.Int32), self.place)
        for id_, copy in zip(rows["id"], made, strict=True):
            before = conversations[copy.run].record
            anew = {name: text for name, text in copy.told.record.items() if text and text != before[name]}
            if anew:
                self.rewritten[id_] = anew
        texts = {name: list(chain.from_iterable(copy.told.turns[name] for copy in made)) for name in TURNS}
        return Made(rows, _saying(repeated(frames.turns, of), texts))

    def _rebound(
        self, run: Conversation, id_: str, digest: str, toolset: str | None
    ) -> Iterator[tuple[int, Conversation]]:
        """The copies of one run, numbered; the others are failures."""
        tools = self.state.toolsets[toolset] if toolset is not None else ""
        found = entities(run, self.operation.entities, tools)
        if isinstance(found, str):
            self.failures.add(id_, found, self.operation.copies)
            return
        for k in range(self.operation.copies):
            new = others(found.cores, f"{digest}.{k}", found.known)
            if new is None:
                self.failures.add(id_, "no_new_value")
            else:
                yield k, run.edited(partial(found.finder.replaced, new=new))


def _saying(turns: pl.DataFrame, texts: Mapping[str, list[Any]]) -> pl.DataFrame:
    """The turns with the columns TURNS of some conversations. Lists of calls are put together from one long column each
    of what is new in them: a list of structs from Python is slow."""
    calls = list(chain.from_iterable(texts["calls"]))
    new = {name: pl.Series(name, [call[name] for call in calls], dtype=pl.String) for name in ("args_json", "args_raw")}
    at = pl.Series("at", [i for i, own in enumerate(texts["calls"]) for _ in own], dtype=pl.UInt32)
    flat = turns["calls"].explode(empty_as_null=False, keep_nulls=False).struct.unnest().with_columns(*new.values())
    listed = pl.DataFrame({"at": at, "calls": flat.to_struct()}).group_by("at", maintain_order=True).agg("calls")
    places = pl.DataFrame({"at": pl.int_range(turns.height, dtype=pl.UInt32, eager=True)})
    joined = places.join(listed, on="at", how="left", maintain_order="left")
    plain = (pl.Series(name, texts[name], dtype=turns.schema[name]) for name in TURNS if name != "calls")
    none = pl.lit([], dtype=turns.schema["calls"])
    return turns.with_columns(*plain, joined.select(pl.col("calls").fill_null(none))["calls"])


def _conversations(frames: Frames, wide: pl.DataFrame) -> list[Conversation]:
    """The runs of a part, in their order."""
    turns = frames.turns
    columns = {name: turns[name].to_list() for name in TURNS}
    ends = turns["run"].search_sorted(pl.int_range(frames.runs.height, dtype=pl.UInt32, eager=True), side="right")
    starts = [0, *ends]
    records = wide.select(RECORD).to_dicts()
    return [
        Conversation({name: column[start:end] for name, column in columns.items()}, record)
        for start, end, record in zip(starts, ends, records, strict=False)
    ]
