"""Parse tree → AST: one method for each rule or alias of the grammar.

What the grammar cannot say (a setting given twice, a bad escape, a `context` without a `decompose`) is collected in
`problems`; the tree is built all the same, so that the checker can report the rest of the file in the same pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from lark import Token, Transformer, Tree
from lark.tree import Meta

from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.nodes import NOWHERE, Name, Node
from curatec.dsl.source import Span

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r", "/": "/", "b": "\b", "f": "\f", "0": "\0"}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|.)", re.DOTALL)

N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True)
class Given:
    """A setting on its way into its block: field, value, place."""

    field: str
    value: Any
    span: Span
    adds: bool = False  # may be given more than once


class Builder(Transformer[Token, Any]):
    """Not thread-safe: one builder for one parse."""

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)
        self.problems: list[Diagnostic] = []

    def problem(self, code: str, message: str, span: Span, note: str = "", help: str = "") -> None:
        self.problems.append(Diagnostic(code, message, span, note, (help,) if help else ()))

    def _call_userfunc(self, tree: Tree[Token], new_children: list[Any] | None = None) -> Any:
        children = tree.children if new_children is None else new_children
        return build_rule(self, str(tree.data), _span(tree.meta), children)

    # ---- shared pieces ----

    def block(self, node: Callable[..., N], name: Name | None, given: Iterable[Any], span: Span) -> N:
        fields: dict[str, Any] = {} if name is None else {"name": name}
        for setting in given:
            assert isinstance(setting, Given), setting
            if setting.adds:
                fields[setting.field] = (*fields.get(setting.field, ()), *setting.value)
            elif setting.field in fields:
                self.problem(
                    "C0112",
                    f"`{setting.field.replace('_', ' ')}` is given twice",
                    setting.span,
                    "the second one",
                    "keep one of the two",
                )
            else:
                fields[setting.field] = setting.value
        return node(span=span, **fields)

    def text(self, token: Token) -> str:
        # A prompt must not depend on the line ends of the file on disk.
        raw = str(token).replace("\r\n", "\n")
        if token.type == "RAW_STRING":
            return raw[2:-1]
        if token.type == "LONG_STRING":
            return _dedent(self._unescape(raw[3:-3], token, 3))
        return self._unescape(raw[1:-1], token, 1)

    def _unescape(self, body: str, token: Token, offset: int) -> str:
        def one(match: re.Match[str]) -> str:
            code = match.group(1)
            if code[0] == "u" and len(code) > 1:
                point = int(code.strip("u{}"), 16)
                if point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
                    return chr(point)
            elif code in _ESCAPES:
                return _ESCAPES[code]
            start = (token.start_pos or 0) + offset + match.start()
            self.problem(
                "C0006",
                f"unknown escape `\\{code}`",
                Span(start, start + len(match.group())),
                help='use r"…" for a pattern, or `\\\\` for a backslash',
            )
            return match.group()

        return _ESCAPE.sub(one, body)

    def number(self, token: Token, span: Span, *, percent: bool = False, negative: bool = False) -> ast.Number:
        text = str(token).replace("_", "")
        # Python refuses to read whole numbers of some thousand digits; 20 are too many here already.
        whole = not re.search(r"[.eE]", text)
        value: int | float = int(text if len(text.lstrip("0")) < 20 else "9" * 20) if whole else float(text)
        if isinstance(value, int) and value > 2**63 - 1:
            self.problem("C0007", "this number does not fit in 64 bits", span)
            value = 0
        if value in (float("inf"),):
            self.problem("C0007", "this number is too large for a 64-bit float", span)
            value = 0.0
        return ast.Number.make(value=-value if negative else value, percent=percent, span=span)

    def whole(self, token: Token) -> int:
        node = self.number(token, _token_span(token))
        if isinstance(node.value, float):
            self.problem("C0113", f"`{token}` is not a whole number", node.span, help="write a whole number here")
        return int(node.value)


# A rule's function takes the builder, the span and the children that the grammar left in the tree.
Rule = Callable[[Builder, Span, list[Any]], Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names or (function.__name__.rstrip("_"),):
            RULES[name] = function
        return function

    return register


def build_rule(builder: Builder, name: str, span: Span, children: list[Any]) -> Any:
    return RULES[name](builder, span, children)


def _span(meta: Meta) -> Span:
    return NOWHERE if meta.empty else Span(meta.start_pos, meta.end_pos)


def _token_span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def label(token: Token) -> Name:
    """`name:` with its colon → the name; the span leaves the colon out."""
    text = str(token)[:-1].rstrip(" \t\r\n")
    start = token.start_pos or 0
    return Name.make(name=text.strip("`"), span=Span(start, start + len(text)))


def _dedent(text: str) -> str:
    """A long string's common indentation goes, and so do an empty first and last line."""
    lines = text.split("\n")
    if len(lines) == 1:
        return text
    margins = [len(line) - len(line.lstrip(" \t")) for line in lines[1:] if line.strip()]
    margin = min(margins, default=0)
    kept = [lines[0], *(line[margin:] for line in lines[1:])]
    if not kept[0].strip():
        kept = kept[1:]
    if kept and not kept[-1].strip():
        kept = kept[:-1]
    return "\n".join(kept)


# ---- words ----


@rule("name")
def _name(builder: Builder, span: Span, children: list[Any]) -> Name:
    return Name.make(name=str(children[0]).strip("`"), span=span)


@rule("string")
def _string(builder: Builder, span: Span, children: list[Any]) -> ast.Text:
    return ast.Text.make(value=builder.text(children[0]), span=span)


@rule("names", "strings", "exprs", "orders")
def _many(builder: Builder, span: Span, children: list[Any]) -> tuple[Any, ...]:
    return tuple(children)


for _alias, _options in {
    "number": {},
    "percent": {"percent": True},
    "negative": {"negative": True},
    "negative_percent": {"percent": True, "negative": True},
}.items():
    RULES[_alias] = lambda b, s, c, options=_options: b.number(c[0], s, **options)  # type: ignore[misc]


def constant(value: Any) -> Rule:
    return lambda builder, span, children: value


RULES |= {f"unit_{unit}": constant(unit) for unit in ("ms", "s", "m", "h", "mb", "gb")}
RULES |= {word: constant(word) for word in ("after", "before", "first", "last")}


@rule("duration")
def _duration(builder: Builder, span: Span, children: list[Any]) -> ast.Duration:
    return ast.Duration.make(amount=builder.number(children[0], _token_span(children[0])), unit=children[1], span=span)


@rule("word")
def _word(builder: Builder, span: Span, children: list[Any]) -> ast.Word:
    return ast.Word.make(value=children[0].name, span=span)


RULES["true"] = lambda b, s, c: ast.Flag.make(value=True, span=s)
RULES["false"] = lambda b, s, c: ast.Flag.make(value=False, span=s)
RULES["null"] = lambda b, s, c: ast.Null.make(span=s)


@rule("range")
def _range(builder: Builder, span: Span, children: list[Any]) -> ast.Range:
    return ast.Range.make(low=children[0], high=children[1], span=span)


@rule("choices")
def _choices(builder: Builder, span: Span, children: list[Any]) -> ast.Choices:
    return ast.Choices.make(values=tuple(children), span=span)


@rule("share")
def _share(builder: Builder, span: Span, children: list[Any]) -> ast.Share:
    name, token = children
    return ast.Share.make(name=name, percent=builder.number(token, _token_span(token), percent=True), span=span)


@rule("shares")
def _shares(builder: Builder, span: Span, children: list[Any]) -> tuple[ast.Share, ...]:
    return tuple(children)


@rule("start")
def _start(builder: Builder, span: Span, children: list[Any]) -> ast.File:
    return ast.File.make(declarations=tuple(children), span=span)
