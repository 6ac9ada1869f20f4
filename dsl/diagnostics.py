"""One `Diagnostic` value, many renderers. An error is data (code, span, help); text is added at the outermost layer.

Codes by stage: C00 characters, C01 syntax, C02 names, C03 types, C04 policy and lint, C05 lowering and what is not
available yet, C06 data. Each has a page in `codes.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

from curatec.dsl.source import Source, Span

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What is wrong, where, and what to do next.

    `note` stands behind the caret; each `help` is one line that says a way out. `span` is None for what has no place
    in a spec (a file on disk, a running step); `place` then says where.
    """

    code: str
    message: str
    span: Span | None = None
    note: str = ""
    help: tuple[str, ...] = ()
    severity: Severity = "error"
    source: Source | None = field(default=None, compare=False)
    place: str = ""

    def at(self, source: Source) -> Diagnostic:
        return self if self.source else replace(self, source=source)


class CuratecError(Exception):
    """Carries diagnostics from where a thing cannot go on to where they are shown. Never shown as a traceback."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))

    @classmethod
    def of(cls, code: str, message: str, *, help: str | Sequence[str] = (), place: str = "") -> CuratecError:
        lines = (help,) if isinstance(help, str) else tuple(help)
        return cls([Diagnostic(code, message, help=lines, place=place)])


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a mistyped one most likely meant, or None."""
    names = list(dict.fromkeys(known))
    found = get_close_matches(word, names, n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> tuple[str, ...]:
    close = nearest(word, known)
    return (f"did you mean `{close}`?",) if close else ()


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By file and place; what has no place comes first."""
    # Two files may hold the same mistake at the same place.
    once = {(d.source.name if d.source else "", d): d for d in diagnostics}
    return sorted(
        once.values(),
        key=lambda d: (d.source.name if d.source else "", d.span or (-1, -1), d.code, d.message),
    )


def render_text(diagnostic: Diagnostic) -> str:
    """The terminal form: header, place, line with carets, help lines."""
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    gutter = ""
    if diagnostic.source and diagnostic.span is not None:
        row, column = diagnostic.source.position(diagnostic.span.start)
        shown, offset, width = _window(diagnostic.source, diagnostic.span, row, column)
        gutter = " " * len(str(row))
        carets = " " * offset + "^" * width
        lines += [
            f"{gutter} --> {diagnostic.source.name}:{row}:{column}",
            f"{gutter} |",
            f"{row} | {shown}",
            f"{gutter} | {carets} {diagnostic.note}".rstrip(),
        ]
    elif diagnostic.place:
        lines.append(f" --> {diagnostic.place}")
        if diagnostic.note:
            lines.append(f" = {diagnostic.note}")
    lines += [f"{gutter} = help: {line}" for line in diagnostic.help]
    return "\n".join(lines)


def _window(source: Source, span: Span, row: int, column: int) -> tuple[str, int, int]:
    """The shown part of a line, where its carets begin and how many there are. Long lines are cut around the place."""
    line = source.line(row).replace("\t", " ")
    width = max(1, min(span.end - span.start, len(line) - column + 1))
    start = max(0, column - 1 - 60) if len(line) > 140 else 0
    shown = line[start : start + 140]
    head = "…" if start else ""
    tail = "…" if start + 140 < len(line) else ""
    return head + shown + tail, column - 1 - start + len(head), min(width, 140)


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The machine form: places as line and column from 1, offsets in code points."""
    place: dict[str, Any] | None = None
    if diagnostic.source and diagnostic.span is not None:
        line, column = diagnostic.source.position(diagnostic.span.start)
        end_line, end_column = diagnostic.source.position(diagnostic.span.end)
        place = {
            "file": diagnostic.source.name,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "start": diagnostic.span.start,
            "end": diagnostic.span.end,
        }
    elif diagnostic.place:
        place = {"file": diagnostic.place}
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "note": diagnostic.note,
        "help": list(diagnostic.help),
        "at": place,
    }
