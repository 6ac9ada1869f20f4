"""Expressions of the language. The text form of each is in the docstring."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curatec.dsl.nodes import Name, Node


class Number(Node):
    """`12`, `1_000`, `0.25`, `3e-3`, `-1` (in literals); `10%` keeps 10 and says so."""

    kind: Literal["number"] = "number"
    value: int | float
    percent: bool = False

    @property
    def amount(self) -> int | float:
        """What it counts as in an expression: `10%` is 0.1."""
        return self.value / 100 if self.percent else self.value


class Text(Node):
    """`"…"`, `r"…"`, `\"\"\"…\"\"\"`: the value without quotes and escapes; the printer picks the form."""

    kind: Literal["text"] = "text"
    value: str


class Flag(Node):
    """`true`, `false`."""

    kind: Literal["flag"] = "flag"
    value: bool


class Null(Node):
    """`null`; only legal where a value may be absent, never in a comparison."""

    kind: Literal["null"] = "null"


class Word(Node):
    """A bare word where a literal stands: an option (`keep: ends`) or a choice (`in {a, b}`)."""

    kind: Literal["word"] = "word"
    value: str


Literal_ = Annotated[Number | Text | Flag | Word, Field(discriminator="kind")]


class Reference(Node):
    """A name in scope."""

    kind: Literal["reference"] = "reference"
    name: str


class Attribute(Node):
    """`base.name`: a neighbour's field, an outer level's field, a column of a table, a JSON key."""

    kind: Literal["attribute"] = "attribute"
    base: Expr
    name: Name


class Index(Node):
    """`base["key"]`, `base[0]`: a JSON path step."""

    kind: Literal["index"] = "index"
    base: Expr
    key: str | int


class Argument(Node):
    """One argument of a call; `name` when written `name: value`, `descending` when written `value desc`."""

    kind: Literal["argument"] = "argument"
    name: str | None = None
    value: Expr
    descending: bool = False


class Call(Node):
    """`fn(a, b, keep: ends)`, and window aggregates with `over (k, …)`."""

    kind: Literal["call"] = "call"
    function: Name
    arguments: tuple[Argument, ...] = ()
    over: tuple[Expr, ...] | None = None


class Quantifier(Node):
    """`any(turns where E)`; `count(calls)` has no `where`."""

    kind: Literal["quantifier"] = "quantifier"
    quantifier: Literal["any", "all", "none", "count", "first", "last"]
    collection: Name
    where: Expr | None = None


class ListOf(Node):
    """`["a", "b"]`."""

    kind: Literal["list"] = "list"
    items: tuple[Expr, ...] = ()


class Unary(Node):
    """`not a`, `-a`."""

    kind: Literal["unary"] = "unary"
    operator: Literal["not", "-"]
    operand: Expr


class Binary(Node):
    """`a + b`, `a and b`, `a <= b`."""

    kind: Literal["binary"] = "binary"
    operator: Literal["or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "**"]
    left: Expr
    right: Expr


class Between(Node):
    """`a between low and high`, both ends in."""

    kind: Literal["between"] = "between"
    operand: Expr
    low: Expr
    high: Expr


class In(Node):
    """`a in {…}`, `a not in {…}`."""

    kind: Literal["in"] = "in"
    operand: Expr
    choices: tuple[Literal_, ...]
    negated: bool = False


class InColumn(Node):
    """`a in table.column`."""

    kind: Literal["in_column"] = "in_column"
    operand: Expr
    table: Name
    column: Name
    negated: bool = False


class Is(Node):
    """`a is null`, `a is not empty`."""

    kind: Literal["is"] = "is"
    operand: Expr
    state: Literal["null", "empty"]
    negated: bool = False


class Match(Node):
    """`a ~ r"…"`, `a !~ r"…"`."""

    kind: Literal["match"] = "match"
    operand: Expr
    pattern: Text
    negated: bool = False


class Conditional(Node):
    """`if c then a else b`."""

    kind: Literal["if"] = "if"
    condition: Expr
    then: Expr
    otherwise: Expr


class Cast(Node):
    """`meta.n as int`."""

    kind: Literal["cast"] = "cast"
    operand: Expr
    type: Name


class OrderKey(Node):
    """`E`, `E desc`."""

    kind: Literal["order_key"] = "order_key"
    value: Expr
    descending: bool = False


Expr = Annotated[
    Number
    | Text
    | Flag
    | Null
    | Word
    | Reference
    | Attribute
    | Index
    | Call
    | Quantifier
    | ListOf
    | Unary
    | Binary
    | Between
    | In
    | InColumn
    | Is
    | Match
    | Conditional
    | Cast,
    Field(discriminator="kind"),
]
