"""`curatec fmt`: a text in the one layout, or a reason why not. Never a changed meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import zip_longest

from lark import Token

from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.parse import Parsed, parse
from curatec.dsl.printing.layout import lay_out
from curatec.dsl.printing.shape import reread
from curatec.dsl.printing.sheet import tidy, written
from curatec.dsl.source import Span


@dataclass(frozen=True, slots=True)
class Formatted:
    """`text` is the given one, untouched, when there are diagnostics."""

    text: str
    diagnostics: tuple[Diagnostic, ...] = ()
    changed: bool = False


def format_text(text: str, name: str = "<text>") -> Formatted:
    """The same tokens and comments with the white space of the house style. Raises nothing."""
    parsed = parse(text, name)
    if not parsed.ok:
        return Formatted(text, parsed.diagnostics)
    if "\r\n" in text:
        # In a string of several lines they may be part of the value, and then they stay.
        plain = parse(text.replace("\r\n", "\n"), name)
        parsed = plain if plain.file == parsed.file else parsed
    laid = lay_out(parsed.source.text, parsed.tokens, parsed.comments)
    if laid == text:
        return Formatted(text)
    problem = altered(parsed, laid)
    return Formatted(text, (problem,)) if problem else Formatted(laid, (), changed=True)


def altered(parsed: Parsed, laid: str) -> Diagnostic | None:
    """C0117 where the new text does not say what the old one says, token by token and comment by comment.

    The tree follows from the types of the tokens alone and the AST from the tree and the tokens' texts, so equal
    tokens are an equal AST, and no second one has to be built.
    """
    read = reread(laid)
    if read is None:
        return _refusal(parsed, parsed.tokens[:1])
    token = _first_difference(parsed.tokens, read.tokens)
    comment = _first_difference(parsed.comments, read.comments)
    return None if token is None and comment is None else _refusal(parsed, token or comment or ())


def _first_difference(old: Sequence[Token], new: Sequence[Token]) -> Sequence[Token] | None:
    """The first old token that is not in the new text, as one element; none where the new text goes on instead."""
    for before, after in zip_longest(old, new):
        if before is None or after is None or _said(before) != _said(after):
            return () if before is None else (before,)
    return None


def _said(token: Token) -> tuple[str, str]:
    return token.type, tidy(token) if token.type == "COMMENT" else written(token)


def _refusal(parsed: Parsed, place: Sequence[Token]) -> Diagnostic:
    end = len(parsed.source.text)
    span = Span(place[0].start_pos or 0, place[0].end_pos or 0) if place else Span(end, end)
    way_out = "the file is left as it is; this is a fault of the formatter: please report it with the file"
    return Diagnostic("C0117", "the formatter would change the meaning", span, "here", (way_out,), source=parsed.source)


def diff(old: str, new: str, name: str) -> str:
    """The change as a unified diff; empty where there is none."""
    lines = unified_diff(_lines(old), _lines(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends a line: the other characters that Python splits at are text."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
