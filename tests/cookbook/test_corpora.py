"""What the cookbook has of its own is what its program writes, and is in the form that it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cookbook.conftest import SPECS

COOKBOOK = SPECS / "cookbook"


def test_made_corpora_are_written_again_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(COOKBOOK / "make_corpora.py"), str(tmp_path)], check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(written) == 2
    assert written == {name: (COOKBOOK / "made" / name).read_bytes() for name in written}


def test_sessions_are_valid_atif() -> None:
    atif = pytest.importorskip("atif")
    for line in (COOKBOOK / "made" / "team.jsonl").read_text().splitlines():
        atif.Trajectory.model_validate(json.loads(line))
