"""The specs that people copy are laid out, and check without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load
from curatec.dsl.fmt import format_text

SPECS = sorted((Path(__file__).parent.parent / "specs").rglob("*.curate"))


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_a_spec_is_laid_out(spec: Path) -> None:
    assert not format_text(spec.read_text(), spec.name).changed


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_a_spec_checks_without_a_word(spec: Path) -> None:
    assert check(load(str(spec))).diagnostics == ()


def test_there_are_specs() -> None:
    assert len(SPECS) >= 2
