"""The page of each code: what it means, a bad example, the good one. `codes.md` is printed and published as it is."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

_HEADING = re.compile(r"^## (?P<code>C\d{4}): (?P<title>.+)$", re.MULTILINE)


def page(code: str) -> str | None:
    """The section of a code in Markdown, its heading included; None for an unknown code."""
    return _pages().get(code.upper())


def titles() -> dict[str, str]:
    """Code → title, in the order of the codes."""
    return {found["code"]: found["title"] for found in _HEADING.finditer(_text())}


@lru_cache(maxsize=1)
def _text() -> str:
    return (files("curatec.dsl") / "codes.md").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _pages() -> dict[str, str]:
    text = _text()
    found = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in found[1:]] + [len(text)]
    return {h["code"]: text[h.start() : end].rstrip() + "\n" for h, end in zip(found, ends, strict=True)}
