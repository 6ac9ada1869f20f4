"""A folder to compile in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.parts import apart
from tests.semantics.tools import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="module", params=["together", "apart"])
def parts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Parts put together in memory, then apart and on disk."""
    with apart(kept=4096) if request.param == "apart" else nullcontext():
        yield
