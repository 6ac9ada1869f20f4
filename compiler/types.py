"""Types of the language and the levels that an expression can stand at."""

from __future__ import annotations

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
SCALARS = (Type.BOOL, Type.INT, Type.FLOAT, Type.TEXT, Type.TIME)


def article(type_: Type) -> str:
    """`a text`, `an int`: for messages."""
    word = {Type.TEXTS: "list of texts", Type.JSON: "JSON value", Type.FLOAT: "number"}.get(type_, str(type_))
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"
