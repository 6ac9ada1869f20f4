"""Parts in memory and on disk, as in the tests of semantics."""

from tests.semantics.conftest import bench, parts

__all__ = ["bench", "parts"]
