"""The builder makes nodes without validation; what it makes must be what the models allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatec.dsl import ast
from curatec.dsl.parse import parse

ROOT = Path(__file__).parent.parent
SPECS = sorted(
    {*ROOT.glob("specs/**/*.curate"), *ROOT.glob("tests/specs/**/*.curate"), *ROOT.glob("tests/fmt/*.curate")}
)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_parsed_file_is_a_valid_one(path: Path) -> None:
    file = parse(path.read_text(encoding="utf-8"), path.name).file
    assert ast.File.model_validate(file.model_dump()) == file
    assert ast.File.model_validate_json(file.model_dump_json()) == file


def test_nodes_are_frozen_and_equal_by_what_they_say() -> None:
    one, other = parse("curate 1").file, parse("\n\n  curate   1").file
    assert one == other
    assert hash(one) == hash(other)
    assert one.span != other.span or one.declarations[0].span != other.declarations[0].span
    with pytest.raises(ValueError, match="frozen"):
        one.declarations = ()  # type: ignore[misc]
