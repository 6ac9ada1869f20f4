"""The spec with what each of its lines did in the margin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from curatec.dsl.source import Source, Span
from curatec.runtime.execute import Executed
from curatec.runtime.report.clean import clean
from curatec.runtime.report.text import number

LINES = 2_000  # that are shown
# Only for colour: a line inside a long string may be coloured as if it were code.
_TOKEN = re.compile(r'(?P<string>r?"(?:[^"\\]|\\.)*")|(?P<comment>#.*)|(?P<label>(?<=^)\s*`?[a-z_][a-z0-9_]*`?(?=:\s))')


@dataclass(frozen=True, slots=True)
class SpecLine:
    number: int
    text: Markup
    margin: str


def lines(executed: Executed, summary: Mapping[str, Any]) -> list[SpecLine]:
    text: str = summary["spec"]["text"]
    margin = _margin(executed, text, summary["expectations"])
    return [
        SpecLine(i, coloured(line), " · ".join(margin.get(i, ())))
        for i, line in enumerate(text.rstrip("\n").split("\n")[:LINES], 1)
    ]


def _margin(executed: Executed, text: str, expectations: Sequence[Mapping[str, Any]]) -> dict[int, list[str]]:
    """Line → what happened there. What stands in an imported file is not shown."""
    found: dict[int, list[str]] = {}

    def note(source: Source | None, span: Span, said: str) -> None:
        if source is not None and source.text == text:
            found.setdefault(source.position(span.start)[0], []).append(said)

    records = dict(executed.loaded.state.rows["source"].value_counts().iter_rows())
    for corpus in executed.plan.corpora:
        note(corpus.source, corpus.span, f"{number(records.get(corpus.name, 0))} runs")
    steps = {(branch, step.label): step for branch, step in executed.plan.steps()}
    for count in executed.ledger.counts:
        step = steps.get((count.sink, count.label))
        if step is None:  # a sink repeats one of the spec
            continue
        changed = count.left != count.entered
        note(
            step.source, step.span, f"{number(count.entered)} → {number(count.left)}" if changed else number(count.left)
        )
    for expectation, asked in zip(executed.plan.expectations, expectations, strict=True):
        note(expectation.source, expectation.span, "held" if asked["held"] else "not held")
    return found


def coloured(line: str) -> Markup:
    """A line with its strings, comment and label marked."""
    line = clean(line)
    made: list[str] = []
    at = 0
    for match in _TOKEN.finditer(line):
        made.append(str(escape(line[at : match.start()])))
        made.append(f'<span class="{match.lastgroup}">{escape(match[0])}</span>')
        at = match.end()
    return Markup("".join([*made, str(escape(line[at:]))]))  # every piece is escaped
