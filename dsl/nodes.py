"""The base of every AST node.

Nodes are frozen pydantic models with a `kind`, so that text, YAML and JSON are three forms of one tree. A node's
`span` says where it stood in the text; two nodes are equal when they say the same thing, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from curatec.dsl.source import Span

NOWHERE = Span(0, 0)


class Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    span: Span = Field(default=NOWHERE, exclude=True, repr=False)

    @classmethod
    def make(cls, **fields: Any) -> Self:
        """A node of what the grammar gave: its types are right by construction, so nothing is validated. Validators
        are built only for the YAML and JSON forms, which saves a third of a second at every start."""
        return cls.model_construct(**fields)

    def _said(self) -> tuple[Any, ...]:
        return tuple(value for name, value in self.__dict__.items() if name != "span")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._said()))

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in written order."""
        for name, value in self.__dict__.items():
            if name != "span":
                yield from _nodes_in(value)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)


class Name(Node):
    """An identifier as written, with its place: what it means is the checker's business."""

    name: str

    def __str__(self) -> str:
        return self.name
