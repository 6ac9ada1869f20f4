"""The terminals of the grammar as one small lexer.

What Lark's contextual lexer gives, without a compiled pattern for each set of terminals: a word is read whole and is a
keyword where the parser's state takes that keyword, else a name. Building Lark's own lexers costs more than reading a
whole spec.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from lark.lexer import PatternStr, TerminalDef

_BLANK = ("COMMENT", "SPACE")
_NAME = "NAME"


class Lexicon:
    """Shapes (terminals with a pattern) are tried in the order of Lark: the longer pattern first."""

    def __init__(self, terminals: Iterable[TerminalDef]) -> None:
        named = {terminal.name: terminal.pattern for terminal in terminals}
        fixed = {p.value: name for name, p in named.items() if isinstance(p, PatternStr)}
        shapes = sorted((name for name in named if name not in fixed.values()), key=lambda n: -len(named[n].value))
        self._blank = re.compile("(?:" + "|".join(named[name].to_regexp() for name in _BLANK) + ")*")
        self._name = re.compile(named[_NAME].to_regexp())
        self._shapes = [(n, re.compile(named[n].to_regexp())) for n in shapes if n not in (*_BLANK, _NAME)]
        self._words = {text: name for text, name in fixed.items() if self._name.fullmatch(text)}
        self._signs = sorted(((t, n) for t, n in fixed.items() if t not in self._words), key=lambda s: -len(s[0]))

    def behind_blanks(self, text: str, position: int) -> int:
        """Where the next token begins, or the end of the text."""
        found = self._blank.match(text, position)
        assert found is not None
        return found.end()

    def read(self, text: str, start: int, taken: Container[str]) -> tuple[str, int] | None:
        """The terminal at a place and where it ends: one that the parser takes, else any; None where there is none."""
        return self._taken(text, start, taken) or self._taken(text, start, _Everything())

    def _taken(self, text: str, start: int, taken: Container[str]) -> tuple[str, int] | None:
        for name, shape in self._shapes:
            if name in taken and (found := shape.match(text, start)):
                return name, found.end()
        if word := self._name.match(text, start):
            keyword = self._words.get(word.group())
            if keyword is not None and keyword in taken:
                return keyword, word.end()
            return (_NAME, word.end()) if _NAME in taken else None
        sign = next((s for s in self._signs if s[1] in taken and text.startswith(s[0], start)), None)
        return (sign[1], start + len(sign[0])) if sign else None


class _Everything:
    """Contains every terminal."""

    def __contains__(self, name: object) -> bool:
        return True
