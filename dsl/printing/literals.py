"""Values → the text of names, numbers and strings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from lark import Token

from curatec.dsl import ast
from curatec.dsl.building.rules import Builder
from curatec.dsl.nodes import Name

PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_QUOTABLE = re.compile(r"[^`\n]+")
_RAW = re.compile(r'([^"\\\n]|\\[^\n])*')
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\0": "\\0"}
# Not printable by themselves, but without them some scripts and emoji cannot be written.
_JOINERS = "\u200c\u200d"


def name(value: Name | str) -> str:
    """Always in back-quotes: whether they are needed depends on the place, which only the whole text shows."""
    text = str(value)
    if not _QUOTABLE.fullmatch(text):
        raise ValueError(f"not a name: {text!r}")
    return f"`{text}`"


def names(values: Iterable[Name | str]) -> str:
    return ", ".join(name(value) for value in values)


def label(value: Name | str) -> str:
    """With its colon, which is why no keyword can stand in its way."""
    text = str(value)
    return f"{text}:" if PLAIN_NAME.fullmatch(text) else f"{name(text)}:"


def number(node: ast.Number) -> str:
    """Thousands are set apart from five digits on."""
    amount = abs(node.value)
    grouped = isinstance(amount, int) and amount >= 10_000
    text = f"{amount:_}" if grouped else repr(amount)
    sign = "-" if math.copysign(1, node.value) < 0 else ""
    return f"{sign}{text}%" if node.percent else sign + text


def string(value: str) -> str:
    """Plain, or raw where that saves doubling backslashes."""
    return pattern(value) if "\\" in value else _plain(value)


def strings(values: Iterable[ast.Text]) -> str:
    return ", ".join(string(value.value) for value in values)


def pattern(value: str) -> str:
    """Raw where it can be."""
    return f'r"{value}"' if _RAW.fullmatch(value) and all(map(_shown, value)) else _plain(value)


def prompt(value: str, indent: int) -> str:
    """A text of many lines as such, between its quotes at `indent`; plain where the dedent would change it."""
    if "\n" in value:
        margin = " " * (indent + 2)
        lines = [margin + line if line else "" for line in _escaped(value, keep="\n\t").split("\n")]
        text = "\n".join(['"""', *lines, " " * indent + '"""'])
        if '"""' not in text[3:-3] and Builder().text(Token("LONG_STRING", text)) == value:
            return text
    return string(value)


def _plain(value: str) -> str:
    return '"' + _escaped(value).replace('"', '\\"') + '"'


def _escaped(value: str, keep: str = "") -> str:
    return "".join(char if char in keep else _escape(char) for char in value)


def _escape(char: str) -> str:
    if char == "\\":
        return "\\\\"
    return char if _shown(char) else _ESCAPES.get(char, f"\\u{{{ord(char):x}}}")


def _shown(char: str) -> bool:
    """Whether a reader sees that it is there."""
    return char.isprintable() or char in _JOINERS
