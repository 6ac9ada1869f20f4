"""Finders for tests; the sinks' `made` carries records through a whole strategy."""

from __future__ import annotations

import pytest

from curatec.runtime.redaction import Finder
from tests.sinks.conftest import made, parts

__all__ = ["made", "parts"]


@pytest.fixture(scope="session")
def finder() -> Finder:
    return Finder(("pii", "secrets"))
