"""Types of the language and the levels that an expression can stand at."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Type(StrEnum):
    """What a value is. Every value may also be null."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    TEXTS = "list of text"
    JSON = "json"  # a scalar at the end of a path; read as text or as a number by its use
    TIME = "time"
    COLLECTION = "collection"  # `calls` of a turn: only for quantifiers and `is empty`
    NULL = "null"
    UNKNOWN = "unknown"  # after an error: agrees with everything, so that one mistake is one message

    @property
    def is_number(self) -> bool:
        return self in (Type.INT, Type.FLOAT)


class Level(StrEnum):
    """The row that an expression is about."""

    TRAJECTORY = "trajectory"
    TURN = "turn"
    CALL = "call"
    TOOL = "tool"


NUMBERS = (Type.INT, Type.FLOAT)


def article(type_: Type) -> str:
    """`a text`, `a whole number`: for messages."""
    words = {
        Type.BOOL: "a condition",
        Type.INT: "a whole number",
        Type.FLOAT: "a number",
        Type.TEXTS: "a list of texts",
        Type.JSON: "a JSON value",
        Type.NULL: "null",
    }
    return words.get(type_, f"a {type_}")


def kinds(types: Iterable[Type]) -> str:
    """`a number or a text`: the types that a place takes."""
    given = list(dict.fromkeys(types))
    return " or ".join(article(type_) for type_ in given if type_ is not Type.INT or Type.FLOAT not in given)
