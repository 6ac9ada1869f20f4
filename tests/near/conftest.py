"""Parts together and apart, as in the tests of semantics."""

from tests.semantics.conftest import parts

__all__ = ["parts"]
