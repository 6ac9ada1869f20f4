"""Text → tokens, as the parser's state reads them. What is no token at all comes out as one with a `?…` type.

`?string` and `?text` are strings that are not closed, `?quote` text in the wrong quotes, `?number` a number that
touches letters, `?word` a word with letters that names do not have, `?blank` characters that cannot be seen, `?sign`
the rest.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import Any

from lark import Token

from curatec.dsl.grammar import Grammar

UNITS = ("MS", "S", "M", "H", "MB", "GB")

_COMMENT = re.compile(r"#[^\n]*")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(
    r"([\u2018\u201a\u201b\u2019])[^\n\u2018\u2019'\"]*[\u2018\u2019]|[\u201c-\u201f\u00ab][^\n\u201c-\u201f\u00bb\"]*[\u201c-\u201f\u00bb\"]|'[^'\n]*'"
)
_QUOTES = frozenset("'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb")
_SIGNS = re.compile(r"&&|\|\||<>|=>|=<|===|!==|//|/\*|\+\+|\.\.\.|::|.", re.DOTALL)
_NAME = re.compile(r"[a-z_][a-z0-9_]*")


class Scanner:
    """Reads one text from any position, for whatever state the parser is in."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text = text
        self.grammar = grammar
        self.comments: list[Token] = []
        self.position = 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def move(self, position: int) -> None:
        """Go on reading at a position, before or behind."""
        self.position = position

    def next(self, states: list[int]) -> Token:
        """The next token for a parser with these states on its stack; at the end one of type `$END`."""
        lexicon = self.grammar.lexicon
        start = lexicon.behind_blanks(self.text, self.position)
        if start == len(self.text):
            token = self.token("$END", start, start)
        elif found := lexicon.read(self.text, start, self.grammar.states[states[-1]]):
            token = self.token(found[0], start, found[1])
        else:
            token = self._strange(start)
        self._note_comments(token.start_pos or 0)
        token = self._whole(token, states)
        self.position = token.end_pos or 0
        return token

    def _note_comments(self, end: int) -> None:
        last = self.comments[-1].end_pos or 0 if self.comments else 0
        for found in _COMMENT.finditer(self.text, max(self.position, last), end):
            value = found.group().rstrip("\r")
            self.comments.append(self.token("COMMENT", found.start(), found.start() + len(value)))

    def token(self, kind: str, start: int, end: int) -> Token:
        line, end_line = bisect_right(self._lines, start), bisect_right(self._lines, end)
        column, end_column = start - self._lines[line - 1] + 1, end - self._lines[end_line - 1] + 1
        return Token(kind, self.text[start:end], start, line, column, end_line, end_column, end)

    def _whole(self, token: Token, states: list[int]) -> Token:
        """A token, or the bad one that it is only the begin of."""
        start, end = token.start_pos or 0, token.end_pos or 0
        after = self.text[end : end + 1]
        if token.type == "STRING" and end - start == 2 and after == '"':
            return self.token("?text", start, len(self.text))
        if not token[:1].isalnum() and token.type != "$END" and (sign := _SIGNS.match(self.text, start)):
            return self._sign(start, sign.group()) if len(sign.group()) > end - start else token
        last = token[-1:]
        if not (last.isalnum() or last == "_") or not (after.isalnum() or after == "_"):
            return token
        rest = _WORD.match(self.text, end)
        assert rest is not None
        if token.type != "NUMBER":
            word = token + rest.group()
            # Where no name may stand `exactly` is read as `exact` and a rest.
            if _NAME.fullmatch(word):
                return self.token(self.grammar.keywords.get(word, "NAME"), start, rest.end())
            return self.token("?word", start, rest.end())
        unit = rest.group().upper()
        inside = self.grammar.shifted(states, "NUMBER")
        if unit in UNITS and rest.group().islower() and inside and self.grammar.accepts(inside, unit):
            return token
        return self.token("?number", start, rest.end())

    def _strange(self, start: int) -> Token:
        char = self.text[start]
        if char == '"' or self.text.startswith('r"', start):
            if self.text.startswith('"""', start):
                return self.token("?text", start, len(self.text))
            return self.token("?string", start, self._line_end(start))
        if char in _QUOTES:
            found = _QUOTED.match(self.text, start)
            return self.token("?quote", start, found.end() if found else self._line_end(start))
        if char.isalpha():
            found = _WORD.match(self.text, start)
            return self.token("?word", start, found.end() if found else start + 1)
        if is_blank(char):
            end = start + 1
            while end < len(self.text) and is_blank(self.text[end]):
                end += 1
            return self.token("?blank", start, end)
        sign = _SIGNS.match(self.text, start)
        assert sign is not None
        return self._sign(start, sign.group())

    def _sign(self, start: int, sign: str) -> Token:
        end = start + len(sign)
        if sign == "//":
            end = self._line_end(start)
        elif sign == "/*":
            closed = self.text.find("*/", end)
            end = closed + 2 if closed >= 0 else self._line_end(start)
        return self.token("?sign", start, end)

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > start + 1 and self.text[end - 1] == "\r" else end


def is_blank(char: str) -> bool:
    """A character that takes no ink and is not the white space of the language."""
    return char not in " \t\r\n" and unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp")


def made(kind: str, text: str, like: Token) -> Token:
    """A token that stands in for one that is missing or wrong, at the place of another."""
    fresh: Any = Token.new_borrow_pos(kind, text, like)
    return fresh  # type: ignore[no-any-return]
