"""Parts together and apart, as the tests of semantics have them."""

from tests.semantics.conftest import bench, parts

__all__ = ["bench", "parts"]
