"""A folder to run in, and parts together or apart."""

from tests.semantics.conftest import bench, parts
from tests.sinks.conftest import made

__all__ = ["bench", "made", "parts"]
