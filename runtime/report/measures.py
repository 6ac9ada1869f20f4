"""Distributions before and after: each run measured at `from`, and again only where a step edited its turns.

Reading turns is what costs, so there is one pass over them, and for a large corpus over a sample of it: the runs with
the lowest digests, which is as good as any draw and the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
import xxhash

from curatec.compiler import plan
from curatec.compiler.core import Apply, Column, Const, Core
from curatec.compiler.frames import DTYPES
from curatec.compiler.types import Level, Type
from curatec.runtime.execute import Executed
from curatec.runtime.memo.code import code_of
from curatec.runtime.report.text import EXCERPT
from curatec.runtime.state import State

SAMPLE = 20_000  # runs at `from`; a sink adds up to a quarter of that of its own
BINS = 18

_COUNTED = ("turn_count", "tokens", "call_count")
_TASK_TEXT = Column(Level.TRAJECTORY, "task_text", Type.TEXT)
# No name of a spec has a space, so none is overwritten.
HEAD = "first text"
# One more than is shown, so that it can be said that something is missing.
_HEAD = Apply("truncate", (_TASK_TEXT, Const(EXCERPT + 1, Type.INT)), Type.TEXT)
_COUNTS: dict[str, Core] = {name: Column(Level.TRAJECTORY, name, Type.INT) for name in _COUNTED}


@dataclass(frozen=True, slots=True)
class Measure:
    """What is plotted: a column of `Measured.stages`. `whole`: its values are integers."""

    name: str
    title: str
    unit: str
    whole: bool = True


MEASURES = (
    Measure("turn_count", "Turns of a run", "turns, system and events left out"),
    Measure("tokens", "Tokens of a run", "tokens, estimated as UTF-8 bytes / 4"),
    Measure("call_count", "Tool calls of a run", "calls"),
    Measure("reward", "Reward", "reward, as the record says", whole=False),
)


@dataclass(frozen=True)
class Measured:
    """`stages`: id and one column a measure, of `from` (key None) and of each sink. `shown`: the counted columns and
    HEAD, the first user text, of the runs that were asked for; without counts where a step edited the run."""

    stages: Mapping[str | None, pl.DataFrame]
    sampled: bool
    shown: pl.DataFrame


def measure(executed: Executed, stages: Mapping[str | None, pl.DataFrame], shown: Sequence[str]) -> Measured:
    """`stages`: the rows of `from` (key None) and those behind each sink's output. `shown`: runs of examples.

    Tokens are estimated at every stage, after `render` as well: what is compared is measured alike, and once more by a
    tokenizer would take as long as the compile.
    """
    drawn = {name: _lowest(rows, SAMPLE if name is None else SAMPLE // 4) for name, rows in stages.items()}
    examples = pl.Series("id", list(shown), dtype=pl.String)
    base = _measured(executed.start, pl.concat([*(rows["id"] for rows in drawn.values()), examples]), _COUNTS)
    touched = _touched(executed)
    found: dict[str | None, pl.DataFrame] = {}
    for name, rows in drawn.items():
        now = base if name is None else _updated(base, executed, name, rows["id"], touched)
        found[name] = rows.select("id", "reward").join(now, on="id", how="left", maintain_order="left")
    edited = pl.col("id").is_in(touched["traj_id"].implode())
    told = base.filter(pl.col("id").is_in(examples.implode()))
    told = told.with_columns(pl.when(~edited).then(pl.col(name)).alias(name) for name in _COUNTED)
    heads = _remembered(executed, None, examples, {HEAD: _HEAD})
    return Measured(found, stages[None].height > SAMPLE, told.join(heads, on="id", how="left", maintain_order="left"))


def _lowest(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    return rows if rows.height <= most else rows.sort("digest", "id").head(most)


def _measured(state: State, ids: pl.Series, cores: Mapping[str, Core]) -> pl.DataFrame:
    """id and the named expressions, for those of the ids that the state has."""
    kept = state.keep(state.rows["id"].is_in(ids.implode()))
    if kept.renderer is not None:
        kept = replace(kept, renderer=None, known={})
    kept, values = kept.values(list(cores.values()))
    # A state without rows has values without a type.
    typed = (v.cast(DTYPES[c.type]).alias(name) for v, (name, c) in zip(values, cores.items(), strict=True))
    return kept.rows.select("id").with_columns(typed)


def _remembered(executed: Executed, sink: str | None, ids: pl.Series, cores: Mapping[str, Core]) -> pl.DataFrame:
    """What was measured before of the same rows at the end of a sink, or at `from`, need not be again."""
    what = (code_of(__name__), xxhash.xxh3_128_hexdigest("\0".join([*cores, *ids.sort()]).encode()))
    state = executed.start if sink is None else executed.ends[sink]
    return executed.computed(sink, what, partial(_measured, state, ids, cores))


def _touched(executed: Executed) -> pl.DataFrame:
    """Runs whose turns a step edited: id and the branch of the step (null: shared)."""
    own = [f.filter(pl.col("turn").is_not_null() & pl.col("step").is_not_null()) for f in executed.ledger.frames]
    schema = {"traj_id": pl.String, "sink": pl.String}
    return pl.concat([f.select(*schema) for f in own]).unique() if own else pl.DataFrame(schema=schema)


def _updated(base: pl.DataFrame, executed: Executed, sink: str, ids: pl.Series, touched: pl.DataFrame) -> pl.DataFrame:
    """`base` with the rows measured again that differ at the end of the sink's steps, and those that steps made."""
    branches = executed.plan.lineage(executed.plan.branch(sink))
    names = [branch.name for branch in branches]
    edited = touched.filter(pl.col("sink").is_null() | pl.col("sink").is_in(names))["traj_id"]
    steps = (*executed.plan.shared, *(step for branch in branches for step in branch.steps))
    if any(isinstance(step.operation, plan.View) for step in steps):
        again = ids  # roles change without a word in the ledger
    else:
        again = ids.filter(ids.is_in(edited.implode()) | ~ids.is_in(base["id"].implode()))
    if again.is_empty():
        return base
    now = _remembered(executed, sink, again, _COUNTS)
    return pl.concat([base.filter(~pl.col("id").is_in(now["id"].implode())), now])


# ---- bins ----


@dataclass(frozen=True, slots=True)
class Axis:
    """Bins of equal width from `start`; the last one also takes all above it (`more`) or its own upper end."""

    start: float
    step: float
    count: int
    more: bool

    @property
    def end(self) -> float:
        return self.start + self.step * self.count


def axis_for(values: Sequence[pl.Series], whole: bool) -> Axis:
    """Bins that hold what is measured at every stage. A long tail is gathered in the last bin."""
    known = pl.concat([v.cast(pl.Float64) for v in values]).drop_nulls() if values else pl.Series([], dtype=pl.Float64)
    if known.is_empty():
        return Axis(0.0, 1.0, 1, False)
    low, high = _ends(known)
    if not whole:
        low, high = min(0.0, low), max(1.0, high)
        step = nice((high - low) / 10)
        start = math.floor(low / step) * step
        return Axis(start, step, max(1, math.ceil((high - start) / step - 1e-9)), False)
    usual = float(known.quantile(0.99, "higher") or 0.0)
    top = high if high <= 1.5 * usual else usual
    step = max(1.0, nice(top / BINS))
    count = int(top // step) + 1
    # Bars of single values stand over their tick; wider ones begin at it.
    start = -0.5 if step == 1.0 else 0.0
    return Axis(start, step, count, high >= start + step * count)


def _ends(known: pl.Series) -> tuple[float, float]:
    low, high = known.min(), known.max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high


def nice(width: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below `width`."""
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))


def counts(values: pl.Series, axis: Axis) -> list[int]:
    """How many values each bin holds; nulls are in none."""
    place = ((values.drop_nulls().cast(pl.Float64) - axis.start) / axis.step + 1e-9).floor().clip(0, axis.count - 1)
    found = dict(place.cast(pl.Int64).value_counts().iter_rows())
    return [found.get(i, 0) for i in range(axis.count)]


@dataclass(frozen=True, slots=True)
class Spread:
    """The numbers beside a plot."""

    runs: int
    unknown: int
    least: float | None
    quarter: float | None
    median: float | None
    three_quarters: float | None
    most: float | None
    mean: float | None


def spread(values: pl.Series) -> Spread:
    known = values.drop_nulls().cast(pl.Float64)
    if known.is_empty():
        return Spread(len(values), len(values), None, None, None, None, None, None)
    low, high = _ends(known)
    quarter, median, three_quarters = (known.quantile(q, "linear") for q in (0.25, 0.5, 0.75))
    # Exact to the last bit whatever the order of rows: a plain mean is not.
    mean = math.fsum(known.to_list()) / len(known)
    return Spread(len(values), len(values) - len(known), low, quarter, median, three_quarters, high, mean)
