"""Step histograms by pygal, as inline SVG that the page's own style colours.

pygal puts a random id, today's date, a style sheet and a script into each picture. Only its geometry is taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from curatec.runtime.report.measures import Axis, nice

WIDTH, HEIGHT = 240, 150  # as shown side by side at 1280 px: ten units of text are ten pixels then
_TICKS = 5
_NUMBER = re.compile(r"-?\d+\.\d+")
_SERIES = re.compile(r"series serie-(\d+)")
_GONE = {"defs", "desc", "title", "script", "style"}
_KEPT = ("x", "y", "d", "class", "transform")


def histograms(
    before: Sequence[int], after: Mapping[str, Sequence[int]], axis: Axis, top: float, labels: Mapping[str, str]
) -> dict[str, Markup]:
    """For each sink, shares of runs in each bin: of all runs at `from` and of its own. `top` ends the vertical axis.

    One chart holds them all, since its frame is the same and costs the most; each picture shows two of its series.
    """
    from pygal import XY

    chart = XY(
        width=WIDTH,
        height=HEIGHT,
        js=[],
        css=[],
        margin=6,
        show_legend=False,
        show_dots=False,
        fill=True,
        range=(0, top),
        xrange=(axis.start, axis.end),
    )
    chart.x_labels = [{"value": at, "label": text} for at, text in _ticks(axis)]
    chart.y_labels = [{"value": at, "label": f"{100 * at:g} %"} for at in heights(top)]
    chart.add("before", _outline(_shares(before), axis))
    for name, bins in after.items():
        chart.add(name, _outline(_shares(bins), axis))
    tree = list(chart.render_tree())
    return {name: _picture(tree, number, labels[name]) for number, name in enumerate(after, 1)}


def _picture(tree: Sequence[Any], series: int, label: str) -> Markup:
    inner = "".join(_svg(child, series) for child in tree)
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
    return Markup(head + inner + "</svg>")  # made of numbers and of what is escaped here


def top_of(bins: Sequence[Sequence[int]]) -> float:
    """A round end of the vertical axis above the largest share of several histograms."""
    largest = max((max(_shares(one), default=0.0) for one in bins), default=0.0)
    step = nice(largest / 3)
    return min(1.0, step * max(1, math.ceil(largest / step - 1e-9))) if largest else 1.0


def heights(top: float) -> list[float]:
    step = nice(top / 3)
    return [round(i * step, 6) for i in range(int(top / step + 1e-9) + 1)]


def _shares(bins: Sequence[int]) -> list[float]:
    total = sum(bins)
    return [n / total for n in bins] if total else [0.0] * len(bins)


def _outline(shares: Sequence[float], axis: Axis) -> list[tuple[float, float]]:
    """The corners of a histogram, from left to right."""
    points = [(axis.start, 0.0)]
    for i, height in enumerate(shares):
        points += [(axis.start + i * axis.step, height), (axis.start + (i + 1) * axis.step, height)]
    return [*points, (axis.end, 0.0)]


def _ticks(axis: Axis) -> Iterator[tuple[float, str]]:
    """Round places on the horizontal axis; a last bin that takes all above says so."""
    first = axis.start + 0.5 if axis.step == 1.0 and axis.start % 1 else axis.start
    last = axis.start + axis.step * (axis.count - 1) + (first - axis.start)
    apart = max(axis.step, nice((axis.end - first) / _TICKS))
    at = first
    while at <= axis.end + 1e-9:
        if not (axis.more and at > last - apart * 0.6):
            yield round(at, 9), short(at)
        at += apart
    if axis.more:
        yield last, f"{short(last)}+"


def short(value: float) -> str:
    """12k for 12,000: ticks have little room."""
    value = round(value, 9)
    for unit, mark in ((1_000_000, "M"), (1_000, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{mark}"
    return f"{value:g}"


def _svg(node: Any, series: int) -> str:
    """A node of pygal's as text, without what is empty, invisible or about pygal, and of the series only 0 and one
    more, which becomes number 1."""
    tag, kind = node.tag, node.get("class", "")
    if not isinstance(tag, str) or tag in _GONE or tag == "rect" or "background" in kind:
        return ""
    number = _SERIES.match(kind)
    if number and int(number[1]) not in (0, series):
        return ""
    inner = str(escape(node.text or "")) + "".join(_svg(child, series) for child in node)
    if tag == "g" and not inner:
        return ""
    if number and int(number[1]) == series:
        node = {**node.attrib, "class": "series serie-1 color-1"}
    attributes = "".join(f' {key}="{_rounded(str(node.get(key)))}"' for key in _KEPT if node.get(key))
    return f"<{tag}{attributes}>{inner}</{tag}>"


def _rounded(text: str) -> str:
    return str(escape(_NUMBER.sub(lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), text)))
