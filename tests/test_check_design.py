"""The design pages and their examples: what they say can be said, and what is not built yet is the only complaint."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load, load_text
from curatec.dsl.diagnostics import Diagnostic, render_text
from curatec.dsl.parse import parse

SHARED = Path(os.environ.get("CURATEC_SHARED", Path(__file__).parents[2] / "shared"))
DESIGN = SHARED / "design"
pytestmark = pytest.mark.skipif(not DESIGN.is_dir(), reason="the design pages are not here")

PAGES = ("language.md", "synthesis.md", "evolution.md")
_FENCE = re.compile(r"^```(?:curate)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Fences that hold something else than the language.
_OTHER = ("reset(seed, config)",)


def snippets(page: str) -> list[str]:
    text = (DESIGN / page).read_text(encoding="utf-8") if DESIGN.is_dir() else ""
    return [found for found in _FENCE.findall(text) if not any(other in found for other in _OTHER)]


SNIPPETS = [pytest.param(page, text, id=f"{page}-{n}") for page in PAGES for n, text in enumerate(snippets(page))]
EXAMPLES = sorted((DESIGN / "examples").glob("*.curate"))


def unexplained(found: tuple[Diagnostic, ...]) -> list[str]:
    return [render_text(d) for d in found if d.code != "C0501" and d.severity == "error"]


@pytest.mark.parametrize(("page", "text"), SNIPPETS)
def test_snippets_parse(page: str, text: str) -> None:
    assert [render_text(d) for d in parse(text, page).diagnostics] == []


@pytest.mark.parametrize(("page", "text"), SNIPPETS)
def test_snippets_check(page: str, text: str) -> None:
    found = check(load_text(text, page, DESIGN)).diagnostics
    if text.startswith("curate 1"):
        assert unexplained(found) == []
        return
    # A fragment may name what stands elsewhere, and has no first line.
    other = [d for d in found if d.code not in ("C0415", "C0201")]
    assert unexplained(tuple(other)) == []
    assert [d.message for d in other if d.code != "C0501"] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_check(path: Path) -> None:
    found = check(load(str(path))).diagnostics
    assert unexplained(found) == []
    assert {d.code for d in found} <= {"C0501"}
