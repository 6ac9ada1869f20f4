"""Parts in memory and on disk as in the tests of semantics, and the runs of the cookbook."""

from tests.cookbook.conftest import kitchen
from tests.semantics.conftest import bench, parts

__all__ = ["bench", "kitchen", "parts"]
