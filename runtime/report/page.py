"""The report: one page that shows where every run went, what that did to the data, and examples behind each label.

The page needs nothing but itself: no script, no request, no font. The same input gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from curatec.runtime.execute import Executed, written_rows
from curatec.runtime.report import ledger, measures, parts, plots, private, spec
from curatec.runtime.report.card import beside
from curatec.runtime.report.measures import Measure, Measured, Spread
from curatec.runtime.report.text import environment, plural
from curatec.runtime.sinks.written import Written

# Facts of a run that are shown beside an example, some only where a filter asks for them.
SAID = (
    "id",
    "task",
    "outcome",
    "reward",
    "model",
    "source",
    "success",
    "attempts",
    "pass_rate",
    "spread",
    "trial",
    "duration",
    "cost",
    "depth",
    "domain",
)
REASONS = 5  # why records could not be read, for each source


@dataclass(frozen=True, slots=True)
class Panel:
    """One sink's distribution over that at `from`."""

    sink: str
    runs: int
    plot: Markup


@dataclass(frozen=True, slots=True)
class Figure:
    measure: Measure
    panels: tuple[Panel, ...]
    spreads: tuple[tuple[str | None, Spread], ...]
    more: float | None  # where the last bin begins, when it takes all above


def render(executed: Executed, written: Mapping[str, Written], summary: Mapping[str, Any]) -> str:
    """report.html of OUT. `summary` is the manifest; nothing of its `run` is shown."""
    found = ledger.branches(executed, written, summary)
    stages: dict[str | None, pl.DataFrame] = {None: executed.start.rows}
    for name in written:
        stages[name] = written_rows(executed, name).rows
    shown = ledger.shown_runs(found)
    quoted = private.redacting(executed.plan)
    measured = measures.measure(executed, stages, shown)
    made = environment()
    return made.get_template("page.html.jinja").render(
        css=Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8")),  # a file of ours
        s=summary,
        runs=executed.start.rows.height,
        loaded=executed.loaded.state.rows.height,
        branches=found,
        sinks=[branch for branch in found if branch.written is not None],
        ends={branch.name: branch.ends for branch in found},
        head=measures.HEAD,
        facts=_facts(executed, measured.shown, private.heads(executed, shown, quoted)),
        quoted=quoted,
        figures=list(_figures(measured)),
        sampled=measures.SAMPLE if measured.sampled else None,
        stages=list(stages),
        beside=beside(summary["side"]),
        formats={branch["name"]: branch["format"] for branch in summary["branches"]},
        compositions=parts.compositions(stages),
        tasks=[(name, parts.tasks(rows)) for name, rows in stages.items()],
        unread=_unread(executed),
        spec=spec.lines(executed, summary),
        spec_left=max(0, summary["spec"]["text"].count("\n") + 1 - spec.LINES),
    )


def _facts(executed: Executed, shown: pl.DataFrame, heads: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What is said of each run behind an example: who it is, its first user text (`heads` where the plan redacts), and
    what the conditions of filters ask of it."""
    rows = executed.start.rows.join(shown, on="id", how="semi").select(*SAID).join(shown, on="id", how="left")
    found = {row["id"]: row for row in rows.iter_rows(named=True)}
    for id_, head in heads.items():
        found[id_][measures.HEAD] = head
    found = {id_: {k: v for k, v in row.items() if k in SAID or v is not None} for id_, row in found.items()}
    later = [name for name in ("failure", *dict(executed.plan.derived)) if name in executed.shared.rows.columns]
    for row in executed.shared.rows.join(shown, on="id", how="semi").select("id", *later).iter_rows(named=True):
        found[row["id"]] |= row
    return found


def _figures(measured: Measured) -> Iterator[Figure]:
    for measure in measures.MEASURES:
        values = {name: stage[measure.name] for name, stage in measured.stages.items()}
        if all(v.is_null().all() for v in values.values()):
            continue
        yield _figure(measure, values)


def _figure(measure: Measure, values: Mapping[str | None, pl.Series]) -> Figure:
    axis = measures.axis_for(list(values.values()), measure.whole)
    bins = {name: measures.counts(v, axis) for name, v in values.items()}
    top = plots.top_of(list(bins.values()))
    spreads = {name: measures.spread(v) for name, v in values.items()}
    shown = {name: own for name, own in bins.items() if name is not None and any(own)}
    labels = {name: _said(measure, name, spreads) for name in shown}
    pictures = plots.histograms(bins[None], shown, axis, top, labels)
    panels = tuple(Panel(name, spreads[name].runs, picture) for name, picture in pictures.items())
    last = axis.start + axis.step * (axis.count - 1) + (0.5 if axis.start % 1 else 0)
    return Figure(measure, panels, tuple(spreads.items()), last if axis.more else None)


def _said(measure: Measure, sink: str, spreads: Mapping[str | None, Spread]) -> str:
    """The plot in words, for who cannot see it."""
    before, after = spreads[None], spreads[sink]
    medians = (
        f"median {before.median:g} at from, {after.median:g} in {sink}"
        if before.median is not None and after.median is not None
        else "no values at from"
    )
    runs = f"{plural(after.runs, 'run')} in {sink} against {before.runs:,} at from"
    return f"Histogram, {measure.title.lower()}: {runs}; {medians}."


def _unread(executed: Executed) -> dict[str, list[tuple[str, int]]]:
    """Source → why records could not be read, most frequent first."""
    made: dict[str, list[tuple[str, int]]] = {}
    for given in executed.loaded.inputs:
        reasons = Counter(reject.reason for reject in given.parsed.rejects)
        made[given.corpus.name] = sorted(reasons.items(), key=lambda r: (-r[1], r[0]))[:REASONS]
    return made
