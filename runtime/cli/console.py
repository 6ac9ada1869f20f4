"""What the commands print: plain text that reads well at 80 columns and in a pipe; colour only on a terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import click

from curatec.dsl.diagnostics import Diagnostic, render_text, to_json
from curatec.runtime.report.clean import clean

_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_HEADER = re.compile(r"^(error|warning|note)(\[[^\]]+\])?: (.*)$")


def say(text: str = "") -> None:
    """A line of the answer. What runs hold is shown, and does nothing to a terminal."""
    sys.stdout.write(_harmless(text) + "\n")


def tell(text: str) -> None:
    """A line beside the answer: what went wrong, how far it is."""
    sys.stdout.flush()
    sys.stderr.write(_harmless(text) + "\n")
    sys.stderr.flush()


def _harmless(text: str) -> str:
    """Without control characters, colours apart."""
    return "".join(part if i % 2 else clean(part) for i, part in enumerate(_COLOUR.split(text)))


def say_json(value: Any) -> None:
    """One JSON value; only ASCII where the stream has nothing else."""
    import json

    plain = "utf" not in (sys.stdout.encoding or "").lower()
    sys.stdout.write(_whole(json.dumps(value, ensure_ascii=plain, indent=1, default=str), plain) + "\n")


def _whole(text: str, plain: bool) -> str:
    # A name of a file may hold bytes that are not UTF-8: Python keeps them as lone surrogates.
    return text if plain else re.sub(r"[\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", text)


def coloured(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user did not ask for plain text (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_diagnostics(diagnostics: Iterable[Diagnostic], *, as_json: bool = False) -> None:
    """On stderr as text, or on stdout as `{"diagnostics": […]}`."""
    found = list(diagnostics)
    if as_json:
        say_json({"diagnostics": [to_json(d) for d in found]})
        return
    for number, diagnostic in enumerate(found):
        text = render_text(diagnostic)
        tell(("\n" if number else "") + (paint(text) if coloured(sys.stderr) else text))


def paint(text: str) -> str:
    """A rendered diagnostic with colours."""
    first, *rest = text.split("\n")
    header = _HEADER.match(first)
    colour = _COLOURS[header[1]] if header else "red"
    head = (
        click.style(f"{header[1]}{header[2] or ''}", fg=colour, bold=True) + click.style(f": {header[3]}", bold=True)
        if header
        else first
    )
    return "\n".join([head, *(_paint_line(line, colour) for line in rest)])


def _paint_line(line: str, colour: str) -> str:
    bar, sign, behind = line.partition(" | ")
    if line.lstrip().startswith(("-->", "=")):
        return click.style(line, fg="cyan")
    if sign and behind.lstrip().startswith("^"):
        return click.style(bar + sign, fg="cyan") + click.style(behind, fg=colour, bold=True)
    return click.style(bar + sign, fg="cyan") + behind if sign else line


def width() -> int:
    """Columns of the terminal, 80 where there is none; never so wide that lines are hard to follow."""
    return max(40, min(shutil.get_terminal_size((80, 24)).columns, 120))


def count(number: int | float | None) -> str:
    """`12,345`; a dash stands for nothing at all."""
    if number is None:
        return "-"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.3g}"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = (), indent: str = "  ") -> str:
    """Aligned columns. What is too long in the last one goes on in the next line, and a name that would take half the
    line has one of its own: nothing is cut."""
    lines = [list(headers), *(list(row) for row in rows)]
    if len(lines) == 1:
        return ""
    numbers = set(right)
    wide = width() // 2
    widths = [max(len(line[i]) for line in lines) for i in range(len(headers))]
    if len(headers) > 1:
        widths[0] = max(len(line[0]) for line in lines if len(line[0]) <= wide)
    before = len(indent) + sum(w + 2 for w in widths[:-1])
    last = max(20, width() - before)
    done: list[str] = []
    for whole in lines:
        line = list(whole)
        if len(headers) > 1 and len(line[0]) > wide:
            done.append(f"{indent}{line[0]}")
            line[0] = ""
        cells = [
            cell.rjust(w) if i in numbers else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        tail = line[-1] if len(headers) - 1 not in numbers else cells[-1]
        pieces = _pieces(tail, last)
        done.append((indent + "".join(f"{cell}  " for cell in cells[:-1]) + pieces[0]).rstrip())
        done += [" " * before + piece for piece in pieces[1:]]
    return "\n".join(done)


def _pieces(text: str, room: int) -> list[str]:
    found = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) if len(text) > room else [text]
    return found or [""]


def wrapped(text: str, indent: str = "  ") -> str:
    """A paragraph at the width of the terminal."""
    return textwrap.fill(text, width(), initial_indent=indent, subsequent_indent=indent, break_long_words=False)
