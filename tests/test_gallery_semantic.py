"""The gallery of semantic errors: one spec with its mistakes, beside it all that `check` says about it.

A first line `# $ curatec …` gives the arguments: `-D name=value`, and `compile [--strategy NAME]` to ask for a plan.
`UPDATE_GALLERY=1 pytest tests/test_gallery_semantic.py` writes the expected texts anew; read them before committing.
"""

from __future__ import annotations

import os
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.dsl.codes import page
from curatec.dsl.diagnostics import CuratecError, Diagnostic, render_text

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / "errors" / "semantic"
CASES = sorted(FOLDER.glob("*.curate"))
# Codes that no spec text can give, and why.
NOT_IN_THE_GALLERY: dict[str, str] = {}


def told(path: Path) -> list[Diagnostic]:
    """All that is said about a case."""
    text = path.read_text(encoding="utf-8")
    arguments = shlex.split(text.splitlines()[0].removeprefix("# $ curatec")) if text.startswith("# $") else ["check"]
    given = dict(b.split("=", 1) for a, b in pairwise(arguments) if a == "-D")
    strategy = next((b for a, b in pairwise(arguments) if a == "--strategy"), None)
    try:
        checked = check(load_text(text, path.name, FOLDER), given)
        if arguments[0] == "compile":
            checked.plan(strategy)
    except CuratecError as error:
        return list(error.diagnostics)
    return list(checked.diagnostics)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_gallery(path: Path) -> None:
    found = told(path)
    shown = "\n\n".join(map(render_text, found)) + "\n" if found else ""
    expected = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GALLERY"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")
    for problem in found:
        if problem.source is not None and problem.span is not None:
            assert 0 <= problem.span.start <= problem.span.end <= len(problem.source.text) + 1


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_message_says_what_to_do(path: Path) -> None:
    for problem in told(path):
        if not problem.code.startswith(("C00", "C01")):
            assert problem.help, problem.message


def test_every_code_is_shown_and_explained() -> None:
    used = {
        code
        for file in (ROOT / "compiler").rglob("*.py")
        for code in re.findall(r'"(C0[2-5]\d\d)"', file.read_text(encoding="utf-8"))
    }
    given = {problem.code for path in CASES for problem in told(path)}
    assert used - given == set(NOT_IN_THE_GALLERY)
    assert [code for code in sorted(used) if page(code) is None] == []


def test_gallery_holds_cases_with_several_mistakes() -> None:
    kinds = [{problem.code for problem in told(path)} for path in CASES]
    assert sum(len(codes) >= 4 for codes in kinds) >= 1
    assert any({code[:3] for code in codes} >= {"C01", "C02"} for codes in kinds)


LATER = [path for path in CASES if path.stem.startswith("later_")]


@pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)
def test_what_is_not_available_says_only_that(path: Path) -> None:
    found = told(path)
    assert {problem.code for problem in found} == {"C0501"}
    assert len({problem.message for problem in found}) == len(found)
