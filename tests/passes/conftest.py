"""Parts together and apart, as the tests of semantics have them."""

from tests.semantics.conftest import parts

__all__ = ["parts"]
