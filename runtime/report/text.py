"""Text and numbers as report and card show them. Whatever a trajectory holds is shown, and does nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from curatec.runtime.cache import default_root
from curatec.runtime.report.clean import clean

EXCERPT = 300  # code points

_HERE = Path(__file__).parent
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")


def excerpt(text: str | None, limit: int = EXCERPT) -> str:
    """At most `limit` code points, runs of white space made one space; an ellipsis says that something is missing."""
    if text is None:
        return ""
    short = " ".join(text[: limit + 1].split())
    return f"{short[:limit].rstrip()}…" if len(text) > limit else short


def short_id(id_: str) -> str:
    """The beginning of a run's id; of a row that was made, also what tells it from its siblings. A pair's whole."""
    run, mark, made = id_.partition("#")
    return (run if run.startswith("pair-") else run[:12]) + mark + made


def number(value: float | None, digits: int = 2) -> str:
    """12,345 · 0.25 · –"""
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")


def share(part: float, whole: float) -> str:
    """A percentage that never rounds something to nothing, nor almost all to all."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %" if percent < 10 and not percent.is_integer() else f"{percent:.0f} %"


def plural(count: int, noun: str) -> str:
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def markdown(value: object) -> str:
    """One line of plain text inside Markdown, also inside a table."""
    return _inline(" ".join(str(value).split()))


def _inline(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", clean(re.sub(r"\s", " ", text)))


def code(value: object) -> str:
    """A code span inside Markdown, also inside a table, whatever backquotes and bars the text has."""
    text = clean(" ".join(str(value).split())).replace("|", "\\|")
    marks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def prose(text: str) -> str:
    """A message whose `names` stand in backquotes, as Markdown."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return markdown(text)
    return "".join(code(part) if i % 2 else _inline(part) for i, part in enumerate(parts) if part)


def prose_html(text: str) -> Markup:
    """The same as HTML."""
    parts = [escape(clean(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(clean(text))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def environment(*, for_markdown: bool = False) -> Environment:
    """Templates of this folder. HTML is escaped throughout; Markdown says at each place what it needs."""
    made = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=not for_markdown,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=_compiled_templates(),
    )
    made.filters |= {"n": number, "share": share, "excerpt": excerpt, "plural": plural, "id": short_id}
    made.filters |= {"md": markdown, "code": code, "prose": prose} if for_markdown else {"prose": prose_html}
    return made


def _compiled_templates() -> FileSystemBytecodeCache | None:
    """Where compiled templates are kept: a tenth of a second saved a compile. None where there is no private place."""
    folder = default_root() / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = folder.stat()
    except OSError:
        return None
    # What lies there is run, so nobody else may be able to write it.
    private = facts.st_uid == os.getuid() and not facts.st_mode & 0o022
    return FileSystemBytecodeCache(str(folder)) if private and os.access(folder, os.W_OK) else None


def _shown(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
