"""An error as the driver sees it: all that a message may be made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lark import Token

from curatec.dsl.grammar import Grammar
from curatec.dsl.machine import Open
from curatec.dsl.recover import first_on_line
from curatec.dsl.source import Source, Span


@dataclass(frozen=True)
class Failure:
    """A token that cannot stand where it does."""

    source: Source
    grammar: Grammar
    token: Token
    states: tuple[int, ...]  # of the parser, before the token
    statement: tuple[Token, ...]  # what was read of the statement
    opens: tuple[Open, ...]
    place: str  # what the innermost block holds
    complete: bool  # the statement before could end here
    first: bool  # the token is the first on its line
    before: Token | None

    @property
    def span(self) -> Span:
        return Span(self.token.start_pos or 0, self.token.end_pos or 0)

    @cached_property
    def expected(self) -> frozenset[str]:
        """The terminals that could have stood here."""
        return frozenset(self.grammar.choices(list(self.states)))

    @cached_property
    def taken(self) -> Token | None:
        """A statement's first word that was read as a name: after `keep where`, the `limit` of the next line."""
        last = self.statement[-1] if len(self.statement) > 1 else None
        if last is None or last.type != "NAME" or not first_on_line(self.source.text, last.start_pos or 0):
            return None
        words = self.grammar.starter_words
        return last if self.token.type == "COLON" or str(last) in words[self.place] | words["file"] else None

    @property
    def resume_from(self) -> int:
        """Where the search for the next statement begins."""
        return (self.taken or self.token).start_pos or 0
