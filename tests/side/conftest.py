"""A folder to compile in; parts together and apart."""

from tests.semantics.conftest import bench, parts

__all__ = ["bench", "parts"]
