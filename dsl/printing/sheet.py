"""The tokens and comments of a text as a layout sees them: numbered, each with what may stand before it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lark import Token

from curatec.dsl.printing.shape import Branch
from curatec.dsl.printing.spacing import blanks_before

WIDTH = 100
STEP = 2


@dataclass(frozen=True, slots=True)
class Comment:
    text: str
    lines: int  # line ends between it and what stands before it

    @property
    def trailing(self) -> bool:
        return self.lines == 0


class Sheet:
    """Gap `n` is what stands before token `n`; the last one is the end of the text."""

    def __init__(
        self, text: str, tokens: Sequence[Token], comments: Sequence[Token], branches: Iterable[Branch]
    ) -> None:
        self.types = [token.type for token in tokens]
        self.texts = [written(token) for token in tokens]
        self.blanks = blanks_before(self.types, branches)
        self._text = text
        self._starts = [_start(token) for token in tokens]
        self._ends = [_end(token) for token in tokens]
        self._parts = [part for pair in zip(self.blanks, self.texts, strict=True) for part in pair]
        self.comments: dict[int, list[Comment]] = {}
        # Where what stands last before a token ends, in the gaps that have comments.
        self._commented: dict[int, int] = {}
        for comment in comments:
            self._note(comment)
        self._gaps = sorted(self.comments)

    def __len__(self) -> int:
        return len(self.texts)

    def _note(self, comment: Token) -> None:
        start = _start(comment)
        gap = bisect_left(self._starts, start)
        before = self._before(gap)
        # The first line of a text has nothing that a comment could trail.
        lines = self._text.count("\n", before, start) if gap or gap in self._commented else 1
        self.comments.setdefault(gap, []).append(Comment(tidy(comment), lines))
        self._commented[gap] = _end(comment)

    def _before(self, gap: int) -> int:
        """Where what stands before a token ends: a comment, the token before, or the begin of the text."""
        return self._commented.get(gap) or (self._ends[gap - 1] if gap else 0)

    def lines_before(self, token: int) -> int:
        """Line ends between a token and the token or comment before it."""
        return self._text.count("\n", self._before(token), self._starts[token])

    def one_line(self, first: int, last: int) -> bool:
        """Whether the two tokens stand on one line in the text."""
        return self._text.find("\n", self._starts[first], self._starts[last]) < 0

    def quiet(self, start: int, end: int) -> bool:
        """No comment stands between the tokens from `start` to `end`, the latter not in."""
        found = bisect_right(self._gaps, start)
        return found == len(self._gaps) or self._gaps[found] >= end

    def next_comment(self, gap: int) -> int:
        """The first gap with comments from one on, or the end of the text."""
        found = bisect_left(self._gaps, gap)
        return self._gaps[found] if found < len(self._gaps) else len(self)

    def flat(self, start: int, end: int) -> str:
        """The tokens on one line, strings that have lines of their own apart."""
        return "".join(self._parts[2 * start + 1 : 2 * end])


def written(token: Token) -> str:
    """A token's text. A label may have white space before its colon, the only white space inside a token."""
    text = str(token)
    return text[:-1].rstrip(" \t\r\n") + ":" if token.type == "LABEL" else text


def tidy(comment: Token) -> str:
    return str(comment).rstrip()


def fits(text: str, column: int) -> bool:
    """Whether the lines that a layout is responsible for are short enough; those inside a string are not its own."""
    first, _, rest = text.partition("\n")
    return column + len(first) <= WIDTH and len(rest) - rest.rfind("\n") - 1 <= WIDTH


def _start(token: Token) -> int:
    return token.start_pos or 0


def _end(token: Token) -> int:
    return token.end_pos or 0
