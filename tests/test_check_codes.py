"""The pages of the codes that the checker gives: what they show as wrong is wrong, what they show as right is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from curatec.compiler.check.program import check
from curatec.compiler.fields import FIELDS
from curatec.compiler.load import load_text
from curatec.dsl import codes

_SNIPPET = re.compile(r"(Not so:|But so:)?\n?```curate\n(.*?)```", re.DOTALL)
_DECLARATION = re.compile(r"^(curate|import|source|param|failure|strategy|table|model) ", re.MULTILINE)
PAGES = [code for code in codes.titles() if code.startswith(("C02", "C03", "C04", "C05", "C06"))]


def whole_file(snippet: str, code: str) -> str:
    """A snippet with what must stand around it."""
    if code == "C0415":
        return snippet
    if not _DECLARATION.match(snippet):
        emit = "" if "emit" in snippet else "  emit sft { won: keep where success loss on assistant }\n"
        snippet = f"strategy s {{\n  from runs\n{snippet}{emit}}}\n"
    source = "" if "source " in snippet else 'source runs { path "runs/*.jsonl" }\n'
    return f"curate 1\n{source}{snippet}"


def told(text: str, folder: Path) -> dict[str, str]:
    return {d.code: d.severity for d in check(load_text(text, "page.curate", folder)).diagnostics}


@pytest.mark.parametrize("code", PAGES)
def test_snippets_of_a_page(code: str, tmp_path: Path) -> None:
    page = codes.page(code)
    assert page is not None
    assert 2 <= len([line for line in page.splitlines() if line.strip()]) <= 36
    for kind, snippet in _SNIPPET.findall(page):
        found = told(whole_file(snippet, code), tmp_path)
        if kind == "Not so:":
            assert code in found
        else:
            assert code not in found
            assert "error" not in found.values(), found


def test_the_page_of_fields_names_them_all() -> None:
    page = codes.page("C0203")
    assert page is not None
    for fields in FIELDS.values():
        for name in fields:
            assert f"`{name}`" in page


def test_every_code_that_a_run_gives_has_a_page() -> None:
    root = Path(__file__).parent.parent
    used = {
        code
        for folder in ("compiler", "runtime")
        for file in (root / folder).rglob("*.py")
        for code in re.findall(r'"(C0[0-9]{3})"', file.read_text(encoding="utf-8"))
    }
    assert sorted(used - codes.titles().keys()) == []
