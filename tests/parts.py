"""Parts as a large corpus has them: apart, and on disk. Small corpora are put together and stay in memory otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from curatec.runtime import corpus, turns
from curatec.runtime.steps import created


@contextmanager
def apart(kept: int = 0) -> Iterator[None]:
    """Every parsed part is a part of its own, and what decisions make as well; `kept` bytes of them stay in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "_TOGETHER", 0)
        patch.setattr(turns, "KEPT", kept)
        patch.setattr(created, "_PORTION", 1024)
        yield
