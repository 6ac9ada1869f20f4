"""An LALR machine that can be looked at, saved and put back: the driver's half of Lark's interactive parser.

A token that cannot stand is refused before anything is reduced, so the stacks at an error are those that a message can
be made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, Tree
from lark.parsers.lalr_analysis import Shift

from curatec.dsl.grammar import Grammar

# Every later stage walks expressions recursively; nobody writes, or can read, a spec this deep.
MAX_DEPTH = 100
MAX_STACK = 2_000

_OPENING = {"LBRACE": "RBRACE", "LPAR": "RPAR", "LSQB": "RSQB"}
_CLOSING = frozenset(_OPENING.values())


class TooDeep(Exception):
    """An expression nests deeper than `MAX_DEPTH`."""


@dataclass(frozen=True, slots=True)
class Open:
    """A bracket that is not closed yet."""

    token: Token
    head: Token  # the first token of the statement that it belongs to
    place: str | None  # what stands inside, None where it holds no statements

    @property
    def closing(self) -> str:
        return _OPENING[self.token.type]


@dataclass(frozen=True, slots=True)
class Saved:
    """The machine as it was."""

    states: tuple[int, ...]
    values: tuple[Any, ...]
    depths: tuple[int, ...]
    opens: tuple[Open, ...]
    place: str
    # Lark grows the list of a repeated rule in place, so its length belongs to what is saved.
    lengths: tuple[tuple[Any, int], ...]


class Machine:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.states: list[int] = [grammar.start]
        self.values: list[Any] = []
        self.depths: list[int] = []
        self.opens: tuple[Open, ...] = ()
        self.statement: list[Token] = []
        self.place = "file"
        self.saved = self.save()

    def save(self) -> Saved:
        grown = (v for v in self.values if isinstance(v, Tree) and str(v.data).startswith("__"))
        return Saved(
            tuple(self.states),
            tuple(self.values),
            tuple(self.depths),
            self.opens,
            self.place,
            tuple((value.children, len(value.children)) for value in grown),
        )

    def restore(self, saved: Saved) -> None:
        self.states = list(saved.states)
        self.values = list(saved.values)
        self.depths = list(saved.depths)
        self.opens, self.place = saved.opens, saved.place
        for children, length in saved.lengths:
            del children[length:]
        self.statement = []
        self.saved = saved

    def accepts(self, terminal: str) -> bool:
        return self.grammar.shifted(self.states, terminal) is not None

    @property
    def closing(self) -> str:
        """The terminal that ends where the machine stands."""
        return self.opens[-1].closing if self.opens else "$END"

    @property
    def complete(self) -> bool:
        """No statement is half said: its block may end here."""
        return (not self.opens or self.opens[-1].place is not None) and self.accepts(self.closing)

    def settle(self) -> None:
        """Finish the statement that is complete and stand ready for the next."""
        # A file's end would finish the whole file, so there the begin of another declaration stands in for it.
        self._reduce(self.closing if self.opens else "CURATE")
        self._begin()

    def feed(self, token: Token) -> None:
        """Take a token that `accepts` said yes to."""
        self._reduce(token.type)
        if self.states[-1] in self.grammar.places and token.type != "RBRACE":
            self._begin()
        target = self.grammar.states[self.states[-1]][token.type][1]
        self.states.append(target)
        self.values.append(token)
        self.depths.append(0)
        if len(self.states) > MAX_STACK:
            raise TooDeep
        self.statement.append(token)
        if token.type in _OPENING:
            inside = self.grammar.places.get(target)
            self.opens = (*self.opens, Open(token, self.statement[0], inside))
            self.place = inside or self.place
        elif token.type in _CLOSING and self.opens:
            self.opens = self.opens[:-1]
            self.place = next((o.place for o in reversed(self.opens) if o.place), "file")

    def finish(self) -> Tree[Token]:
        """The tree of the whole text; only where `$END` is accepted."""
        self._reduce("$END")
        tree: Tree[Token] = self.values[-1]
        return tree

    def _begin(self) -> None:
        self.statement = []
        self.saved = self.save()

    def _reduce(self, lookahead: str) -> None:
        """All reductions that a terminal calls for before it is shifted."""
        states, values, depths = self.states, self.values, self.depths
        table, callbacks, end = self.grammar.states, self.grammar.callbacks, self.grammar.end
        while True:
            action, rule = table[states[-1]][lookahead]
            if action is Shift:
                return
            size = len(rule.expansion)
            if size == 1 and rule.options.expand1 and rule.alias is None:
                # A level of the expression rules that only hands its operand on: nothing to build.
                del states[-1]
                states.append(table[states[-1]][rule.origin.name][1])
                continue
            children: list[Any] = []
            depth = 0
            if size:
                children = values[-size:]
                depth = max(depths[-size:])
                del states[-size:], values[-size:], depths[-size:]
            value = callbacks[rule](children)
            if isinstance(value, Tree) and not rule.origin.name.startswith("_"):
                depth += 1
                if depth > MAX_DEPTH:
                    raise TooDeep
            states.append(table[states[-1]][rule.origin.name][1])
            values.append(value)
            depths.append(depth)
            if lookahead == "$END" and states[-1] == end:
                return
