"""Parts together and apart and a folder to compile in, as in the tests of semantics."""

from tests.semantics.conftest import bench, parts

__all__ = ["bench", "parts"]
