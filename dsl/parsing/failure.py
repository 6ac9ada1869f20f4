"""An error as the driver sees it: all that a message may be made from; and what a message may suggest."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from lark import Token

from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.grammar import Grammar
from curatec.dsl.parsing.machine import Open
from curatec.dsl.parsing.recover import CONTINUATIONS, first_on_line, indent_at
from curatec.dsl.source import Source, Span

_STARTS = re.compile(r"[ \t]*([a-z_]\w*)([ \t]*:)?")


@dataclass(frozen=True, slots=True)
class Told:
    """A message, and what to read `instead` of or `before` the bad token where its meaning is plain.

    `instead` and `before` are (terminal, text) pairs; `upto` is where reading goes on after `instead`. `restart` leaves
    out what was read of the statement. What is `sure` is no guess: errors right behind it are worth telling too.
    """

    problem: Diagnostic
    instead: tuple[tuple[str, str], ...] | None = None
    before: tuple[tuple[str, str], ...] | None = None
    upto: int | None = None
    restart: bool = False
    sure: bool = False


@dataclass(frozen=True)
class Failure:
    """A token that cannot stand where it does."""

    source: Source
    grammar: Grammar
    token: Token
    states: tuple[int, ...]  # of the parser, before the token
    begin: tuple[int, ...]  # of the parser, before the statement
    statement: tuple[Token, ...]  # what was read of the statement
    opens: tuple[Open, ...]
    place: str  # what the innermost block holds
    complete: bool  # the statement before could end here
    before: Token | None

    @cached_property
    def span(self) -> Span:
        return span_of(self.token)

    @cached_property
    def first(self) -> bool:
        """The token is the first on its line."""
        return first_on_line(self.source.text, self.span.start)

    @cached_property
    def expected(self) -> frozenset[str]:
        """The terminals that could have stood here."""
        return frozenset(self.grammar.choices(list(self.states)))

    def takes(self, terminal: str) -> bool:
        return self.grammar.accepts(list(self.states), terminal)

    def after(self, terminal: str) -> frozenset[str]:
        """What could stand behind a terminal that stands here; nothing if it cannot."""
        states = self.grammar.shifted(list(self.states), terminal)
        return frozenset(self.grammar.choices(states)) if states else frozenset()

    @cached_property
    def end_before(self) -> Span:
        """The place right behind the last token."""
        end = (self.before.end_pos or 0) if self.before else self.span.start
        return Span(end, end)

    @cached_property
    def caret(self) -> Span:
        """Where to point: at the token, or behind what came before when the token stands on a line of its own."""
        return self.end_before if self.first or self.token.type == "$END" else self.span

    @cached_property
    def before_statement(self) -> bool:
        """Right behind the token a statement begins, as if the token were not there."""
        found = _STARTS.match(self.source.text, self.span.end)
        return found is not None and (bool(found[2]) or found[1] in self.grammar.starter_words[self.place])

    @property
    def bracket(self) -> Open | None:
        """The innermost bracket, when this statement opened it and it holds no statements."""
        if self.opens and self.opens[-1].place is None:
            return self.opens[-1]
        return None

    def untaken(self) -> Failure:
        """The same failure at the line where it began.

        `keep where` at the end of a line takes the next line's `limit` for a field. The parser stumbles behind it;
        what is wrong is that the statement before has no end.
        """
        if not self.statement:
            return self
        if self._operator_taken():
            return self._back_to(len(self.statement) - 1) or self
        text = self.source.text
        indent = indent_at(text, self.statement[0].start_pos or 0)
        for index, token in enumerate(self.statement[1:], 1):
            at = token.start_pos or 0
            if first_on_line(text, at) and indent_at(text, at) <= indent and self._starts(index):
                back = self._back_to(index)
                if back:
                    return back
        return self

    def _back_to(self, index: int) -> Failure | None:
        """The failure as it would be at an earlier token of the statement, if the statement cannot end before it."""
        token = self.statement[index]
        states: list[int] | None = list(self.begin)
        for earlier in self.statement[:index]:
            states = self.grammar.shifted(states, earlier.type) if states else None
        opens = tuple(o for o in self.opens if (o.token.start_pos or 0) < (token.start_pos or 0))
        closing = opens[-1].closing if opens else "$END"
        if not states or self.grammar.accepts(states, closing):
            return None
        return replace(
            self,
            token=token,
            states=tuple(states),
            statement=self.statement[:index],
            opens=opens,
            complete=False,
            before=self.statement[index - 1],
        )

    def _operator_taken(self) -> bool:
        """`reward > and success`: the `and` was read as a field."""
        last = self.statement[-1]
        operand = self.token.type in ("NAME", "NUMBER", "STRING", "LPAR") or str(self.token) in self.grammar.keywords
        return len(self.statement) > 1 and last.type == "NAME" and str(last) in CONTINUATIONS and operand

    def _starts(self, index: int) -> bool:
        """A token of the statement could rather be the first of the next one."""
        token = self.statement[index]
        words = self.grammar.starter_words
        if token.type == "LABEL" or str(token) in words[self.place] | words["file"]:
            return True
        last = index == len(self.statement) - 1
        wordy = self.token.type[0] not in "?$" and (str(self.token)[:1].isalnum() or self.token.type == "COLON")
        return last and wordy and token.type == "NAME" and str(token) not in CONTINUATIONS


def span_of(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def shown_span(source: Source, span: Span) -> str:
    """A stretch of a source on one line."""
    return " ".join(source.excerpt(span).split())


def shown(token: Token | None, limit: int = 40) -> str:
    """A token's text on one line."""
    text = " ".join(str(token).split()) if token is not None else ""
    return text if len(text) <= limit else text[: limit - 1] + "…"
