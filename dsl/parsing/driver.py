"""Token by token through the machine, over every error to the end of the file.

At an error one diagnostic is recorded. Then, in this order: a block that was left open is closed, one that was closed
too early is opened again, a token whose meaning is plain is replaced by the right one, a block whose head is wrong is
entered all the same; else the statement is left out and reading goes on where the next one begins.
"""

from __future__ import annotations

import re

from lark import Token, Tree

from curatec.dsl.diagnostics import Diagnostic, nearest
from curatec.dsl.grammar import PLACES, grammar
from curatec.dsl.parsing import brackets, syntax
from curatec.dsl.parsing.failure import Failure, Told
from curatec.dsl.parsing.machine import Machine, Open, Saved, TooDeep
from curatec.dsl.parsing.recover import first_on_line, indent_at, resume
from curatec.dsl.parsing.scan import Scanner, made
from curatec.dsl.parsing.words import likely
from curatec.dsl.source import Source, Span

# Past these a file is not a spec with errors but something else, and each error costs a search.
MAX_PROBLEMS = 100


def _heads() -> dict[str, tuple[str, ...]]:
    """First terminal → the terminals that open a block with it: `EMIT NAME LBRACE`."""
    heads = {}
    for opening in PLACES.values():
        if opening:
            *_, head = " ".join(opening[:-1]).split(" LBRACE ")
            heads[head.split()[0]] = (*head.split(), "LBRACE")
    return heads


HEADS = _heads()
_REST_OF_HEAD = re.compile(r"[^\n#\"{}]*\{")
_NAME = re.compile(r"\b(?!from\b)[a-z_][a-z0-9_]*\b(?!\s*:)")


class Driver:
    """One run over one source. After `run`: problems, tokens, comments, and the spans that were left out."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.grammar = grammar()
        self.machine = Machine(self.grammar)
        self.scanner = Scanner(self.text, self.grammar)
        self.problems: list[Diagnostic] = []
        self.tokens: list[Token] = []
        self.skipped: list[Span] = []
        self.quiet = False  # this statement was already complained about
        self.doubt = 0  # how many more tokens must fit before a guess is believed
        self.closed: tuple[Saved, Token] | None = None  # before the last `}` of a declaration, and that `}`
        self.spare = 0  # closing braces that an assumed one makes superfluous
        self.lacking = False  # a closing brace was undone, so the last may be missing
        self.suspect: Open | None = None  # the first block that ends on a column left of its head

    def run(self) -> Tree[Token]:
        while len(self.problems) < MAX_PROBLEMS:
            token = self.scanner.next(self.machine.states)
            if self.machine.accepts(token.type):
                if token.type == "$END":
                    return self.machine.finish()
                self._feed(token)
            elif token.type == "$END":
                self._end(token)
            else:
                self._failed(token)
        self.problems.append(syntax.too_many(MAX_PROBLEMS, Span(self.scanner.position, self.scanner.position)))
        self._close_all()
        return self.machine.finish()

    # ---- one token ----

    def _feed(self, token: Token, *, real: bool = True) -> None:
        machine = self.machine
        before = machine.saved
        closing = token.type == "RBRACE" and len(machine.opens) == 1 and machine.complete
        if closing:
            machine.settle()
            before = machine.saved
        if token.type == "RBRACE" and real:
            self._suspect(token)
        try:
            machine.feed(token)
        except TooDeep:
            self._report(syntax.too_deep(token))
            self._leave(token, token.end_pos or 0)
            return
        self.closed = (before, token) if closing and real else None
        if real:
            # Behind a guess the next token shows whether it was right, unless it only begins another statement.
            self.doubt -= 1
            if self.quiet and self.doubt <= 0:
                self.quiet = machine.saved is not before and not first_on_line(self.text, token.start_pos or 0)
            self.tokens.append(token)

    def _report(self, problem: Diagnostic) -> None:
        if not self.quiet:
            self.problems.append(problem)
        self.quiet = True

    def _again(self, token: Token) -> None:
        """Read a token once more, as the machine now stands."""
        self.scanner.move(token.start_pos or 0)

    # ---- errors ----

    def _failed(self, token: Token) -> None:
        failure = self._failure(token)
        if failure.complete and (self._close_open(failure) or self._brace_too_many(failure)):
            return
        failure = failure.untaken()
        # A long string that is not closed has eaten the braces behind it.
        self.lacking |= token.type == "?text"
        told = syntax.explain(failure)
        self._report(told.problem)
        if failure.token is token and self._mended(told, token):
            return
        if self._enter(failure):
            return
        if failure.complete:
            self.machine.settle()
            self._leave(token, token.end_pos or 0)
        else:
            self._leave(token, failure.token.start_pos or 0)

    def _mended(self, told: Told, token: Token) -> bool:
        """Read on with what was meant, if it is plain."""
        if told.restart:
            self.machine.restore(self.machine.saved)
            self.quiet = False
            self._again(token)
            return True
        for terminal, text in told.instead or told.before or ():
            if not self.machine.accepts(terminal):
                return False
            self._feed(made(terminal, text, token), real=False)
        self.quiet = not told.sure
        self.doubt = 1 if told.before is None else 2
        if told.instead is not None:
            if told.upto is not None:
                self.scanner.move(told.upto)
            return True
        if told.before:
            self._again(token)
        return bool(told.before)

    def _failure(self, token: Token) -> Failure:
        machine = self.machine
        return Failure(
            source=self.source,
            grammar=self.grammar,
            token=token,
            states=tuple(machine.states),
            begin=machine.saved.states,
            statement=tuple(machine.statement),
            opens=machine.opens,
            place=machine.place,
            complete=machine.complete,
            before=self.tokens[-1] if self.tokens else None,
        )

    def _close_open(self, failure: Failure) -> bool:
        """A line that fits outside, and stands no deeper than the block's head, says that a `}` is missing."""
        if not failure.first or failure.token.type == "RBRACE":
            return False
        column = indent_at(self.text, failure.token.start_pos or 0)
        states: list[int] | None = list(failure.states)
        for count, block in enumerate(reversed(failure.opens), 1):
            if self._indent(block) < column or states is None:
                return False
            states = self.grammar.shifted(states, "RBRACE")
            if states is not None and self.grammar.accepts(states, failure.token.type):
                self._report(brackets.unclosed(failure.opens[-1], failure))
                for _ in range(count):
                    self._feed(made("RBRACE", "}", failure.token), real=False)
                self.spare += count
                self._again(failure.token)
                return True
        return False

    def _indent(self, block: Open) -> int:
        return indent_at(self.text, block.head.start_pos or 0)

    def _brace_too_many(self, failure: Failure) -> bool:
        if failure.place != "file":
            return False
        token, closed = failure.token, self.closed
        if token.type == "RBRACE":
            if self.spare:
                self.spare -= 1
            else:
                self._report(brackets.closes_nothing(failure, self._early(closed)))
                self.quiet = False
            return True
        if closed is None or token.type not in self.grammar.starters[closed[0].place]:
            return False
        saved, brace = closed
        self._report(brackets.goes_on(failure, saved.opens[-1], brace, self._early(closed)))
        self.machine.restore(saved)
        self.closed, self.lacking, self.quiet = None, True, False
        self._again(token)
        return True

    def _early(self, closed: tuple[Saved, Token] | None) -> Token | None:
        """The last `}` when its column says that it was not meant to end its declaration."""
        if closed is None:
            return None
        saved, brace = closed
        at = brace.start_pos or 0
        return (
            brace if first_on_line(self.text, at) and indent_at(self.text, at) > self._indent(saved.opens[-1]) else None
        )

    def _enter(self, failure: Failure) -> bool:
        """Read on inside a block whose head is wrong, when it is clear what block it is."""
        token = failure.token
        start = token.start_pos or 0
        head = self._head(failure)
        rest = _REST_OF_HEAD.match(self.text, start)
        if head is None or rest is None:
            return False
        if failure.complete:
            self.machine.settle()
        states: list[int] | None = self.machine.states if failure.complete else list(failure.begin)
        for terminal in HEADS[head]:
            states = self.grammar.shifted(states, terminal) if states else None
        if states is None:
            # The word opens a block elsewhere: `tools shop` is a setting of a benchmark.
            return False
        begin = (token if failure.complete else failure.statement[0]).end_pos or 0
        if not failure.complete:
            self.machine.restore(self.machine.saved)
        names = list(_NAME.finditer(self.text, begin, rest.end()))
        for terminal in HEADS[head]:
            like = token
            text = self.grammar.words.get(terminal, "_")
            if terminal == "NAME" and names:
                found = names.pop(0)
                text, like = found.group(), self.scanner.token("NAME", found.start(), found.end())
            self._feed(made(terminal, text, like), real=False)
        self.scanner.move(rest.end())
        self.quiet = False
        return True

    def _head(self, failure: Failure) -> str | None:
        if not failure.complete:
            first = failure.statement[0].type
            opened = any(block.head is failure.statement[0] for block in failure.opens)
            return first if first in HEADS and not opened else None
        starters = self.grammar.starters[failure.place]
        words = {self.grammar.words[t]: t for t in HEADS if t in starters}
        close = nearest(str(failure.token), words)
        return words[close] if close and likely(str(failure.token), close) else None

    def _leave(self, token: Token, position: int) -> None:
        """Put the machine back to where the statement began and go on where the next one does."""
        machine = self.machine
        start = machine.statement[0] if machine.statement else token
        braces = sum(o.token.type == "LBRACE" for o in machine.opens)
        machine.restore(machine.saved)
        braces -= sum(o.token.type == "LBRACE" for o in machine.opens)
        known = self.grammar.starter_words
        at = resume(
            self.text,
            position,
            starters=known[machine.place],
            known=known[""],
            indent=indent_at(self.text, start.start_pos or 0),
            depth=max(0, braces) + (token.type == "LBRACE" and position > (token.start_pos or 0)),
            top=machine.place == "file",
        )
        self.skipped.append(Span(start.start_pos or 0, at))
        self.scanner.move(at)
        self.quiet = False

    # ---- the end ----

    def _end(self, token: Token) -> None:
        failure = self._failure(token)
        if not failure.complete:
            self._report(syntax.explain(failure).problem)
            start = failure.statement[0].start_pos or 0
            self.skipped.append(Span(start, len(self.text)))
            self.machine.restore(self.machine.saved)
            self.quiet = False
        if self.machine.opens and not self.lacking:
            self._report(brackets.unclosed(self.suspect or self.machine.opens[-1], failure))
        self._close_all()

    def _suspect(self, brace: Token) -> None:
        """A block whose `}` stands left of its head has most likely taken the `}` of the block around it."""
        at = brace.start_pos or 0
        block = self.machine.opens[-1]
        if self.suspect is None and first_on_line(self.text, at) and indent_at(self.text, at) < self._indent(block):
            self.suspect = block

    def _close_all(self) -> None:
        if not self.machine.complete:
            self.machine.restore(self.machine.saved)
        end = self.scanner.token("RBRACE", len(self.text), len(self.text))
        while self.machine.opens:
            self._feed(made("RBRACE", "}", end), real=False)
