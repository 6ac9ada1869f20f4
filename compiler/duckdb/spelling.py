"""How SQL is spelled: literals, names, and parentheses only where they are needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from curatec.compiler.core import Const
from curatec.compiler.types import Type

# How tightly an operator binds, from loose to tight.
OR: Final = 1
AND: Final = 2
NOT: Final = 3
IS: Final = 4
COMPARE: Final = 5
CONCAT: Final = 6
SUM: Final = 7
PRODUCT: Final = 8
CAST: Final = 9
ATOM: Final = 10

SQL_TYPES: Final[dict[Type, str]] = {
    Type.BOOL: "BOOLEAN",
    Type.INT: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.JSON: "VARCHAR",
    Type.TEXTS: "VARCHAR[]",
    Type.TIME: "TIMESTAMP",
}


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL and how tightly it binds."""

    text: str
    binds: int = ATOM

    def inside(self, binds: int) -> str:
        """As an operand of an operator that binds so."""
        return self.text if self.binds >= binds else f"({self.text})"

    def __str__(self) -> str:
        return self.text


def call(function: str, *args: Sql | str) -> Sql:
    return Sql(f"{function}({', '.join(map(str, args))})")


def binary(operator: str, binds: int, a: Sql, b: Sql) -> Sql:
    """Operators of equal strength go from left to right."""
    return Sql(f"{a.inside(binds)} {operator} {b.inside(binds + 1)}", binds)


def when(condition: Sql | str, then: Sql | str, otherwise: Sql | str | None = None) -> Sql:
    rest = "" if otherwise is None else f" else {otherwise}"
    return Sql(f"case when {condition} then {then}{rest} end")


def cast(a: Sql, type_: str) -> Sql:
    return Sql(f"{a.inside(CAST)}::{type_}", CAST)


def all_of(conditions: Sequence[Sql]) -> Sql:
    """All of them; one at least."""
    return conditions[0] if len(conditions) == 1 else Sql(" and ".join(c.inside(AND) for c in conditions), AND)


# ---- literals ----

_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
_WHOLE: Final = re.compile(r"\(?(-?[0-9]+)\)?::BIGINT")
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")
# Words that DuckDB reserves and a column may be called.
_RESERVED: Final = """
all analyse analyze and any array as asc asymmetric at both case cast check collate column constraint create default
deferrable desc describe distinct do else end except false fetch first for foreign from group having in initially
intersect into is lambda last lateral leading limit not null offset on only or order pivot position primary qualify
references returning row rows select show some summarize symmetric table then time timestamp to trailing true union
unique unpivot using values variadic when where window with
"""
_KEYWORDS: Final = frozenset(_RESERVED.split())


def name(text: str) -> str:
    """A column or table, quoted where it has to be."""
    if _PLAIN_NAME.fullmatch(text) and text not in _KEYWORDS:
        return text
    return '"' + text.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    # NUL has no escape, and stands in a plain literal as well as any character.
    if "\0" not in text and any(char in text for char in "\n\r\t"):
        return "E'" + "".join(_ESCAPES.get(char, char) for char in text) + "'"
    return "'" + text.replace("'", "''") + "'"


def whole(value: int) -> Sql:
    return Sql(f"({value})::BIGINT" if value < 0 else f"{value}::BIGINT", CAST)


def number_of(a: Sql) -> int | None:
    """The whole number that a literal is."""
    found = _WHOLE.fullmatch(a.text)
    return int(found[1]) if found else None


def bare(a: Sql) -> Sql:
    """A literal number without its type, where the other side gives it one."""
    number = number_of(a)
    return a if number is None else Sql(str(number), ATOM if number >= 0 else SUM)


def literal(core: Const) -> Sql:
    """A constant in its type: DuckDB reads `0.1` as a decimal and `1` as 32 bits."""
    value = core.value
    match core.type, value:
        case _, None:
            return cast(Sql("null"), SQL_TYPES[core.type]) if core.type in SQL_TYPES else Sql("null")
        case _, bool():
            return Sql("true" if value else "false")
        case Type.INT, int():
            return whole(value)
        case Type.FLOAT, int() | float():
            # The sign stands before the typed number: as a decimal, -0.0 has none.
            spelled = f"{float(value)!r}::DOUBLE"
            return Sql(spelled, PRODUCT if spelled.startswith("-") else CAST)
        case Type.TIME, str():
            when_ = datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None)
            return Sql(f"timestamp '{when_.isoformat(' ')}'")
        case Type.TEXTS, tuple():
            items = ", ".join(map(text_literal, value))
            return Sql(f"[{items}]") if items else cast(Sql("[]"), "VARCHAR[]")
        case _, str():
            return Sql(text_literal(value))
    raise AssertionError(core)
