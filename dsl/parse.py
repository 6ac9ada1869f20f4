"""Text → AST with every syntax error of the file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from lark import Lark, Token, UnexpectedInput

from curatec.dsl import ast
from curatec.dsl.build import build
from curatec.dsl.diagnostics import Diagnostic, in_order
from curatec.dsl.source import Source, Span

GRAMMAR_FILE = "grammar.lark"


@dataclass(frozen=True)
class Parsed:
    """What one file says.

    `tokens` are all terminals in order, `comments` the ignored ones (`#` to the end of the line, without the line
    end). With errors in `diagnostics`, `file` holds the declarations that could be read and `tokens` may have holes.
    """

    source: Source
    file: ast.File
    diagnostics: tuple[Diagnostic, ...]
    tokens: tuple[Token, ...]
    comments: tuple[Token, ...]

    @property
    def ok(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)


def grammar_text() -> str:
    return (files("curatec.dsl") / GRAMMAR_FILE).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _lark() -> Lark:
    return Lark(
        grammar_text(), parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False
    )


def parse(text: str, name: str = "<text>") -> Parsed:
    source = Source(name, text)
    lark = _lark()
    try:
        tree = lark.parse(text)
    except UnexpectedInput as error:
        start = error.pos_in_stream or 0
        problem = Diagnostic("C0101", "unexpected text", Span(start, start + 1), source=source)
        return Parsed(source, ast.File(), (problem,), (), ())
    file, problems = build(tree)
    return Parsed(source, file, tuple(in_order(p.at(source) for p in problems)), (), ())
