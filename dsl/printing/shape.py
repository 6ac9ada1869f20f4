"""Where statements, blocks and lists begin and end, counted in tokens.

The same LALR tables as the parser's, run over tokens that are known already, without a lexer and without a tree for
every level of precedence: a rule with one child stands for its child. What is left is what a layout can act on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from lark import Token
from lark.parsers.lalr_analysis import Shift

from curatec.dsl.grammar import Grammar, grammar
from curatec.dsl.parsing.scan import Scanner

Kid = Any  # a Branch, or a token's number


class Branch:
    """The tokens `start` to `end` (not in), read by one rule. `kids` are branches and token numbers in order."""

    __slots__ = ("end", "kids", "name", "start")

    def __init__(self, name: str, kids: list[Kid]) -> None:
        self.name = name
        self.kids = kids
        self.start: int = first_of(kids[0])
        self.end: int = end_of(kids[-1])

    def __repr__(self) -> str:
        return f"{self.name}[{self.start}:{self.end}]"

    def branches(self) -> list[Branch]:
        return [kid for kid in self.kids if isinstance(kid, Branch)]


def first_of(kid: Kid) -> int:
    return kid.start if isinstance(kid, Branch) else int(kid)


def end_of(kid: Kid) -> int:
    return kid.end if isinstance(kid, Branch) else int(kid) + 1


@dataclass(frozen=True, slots=True)
class _Reduction:
    size: int
    origin: str
    name: str
    helper: bool  # one of Lark's own rules for `*` and `+`: its children belong to the rule that repeats


_Row = dict[str, Any]  # symbol → the state to go to, or a _Reduction


class _Shaper:
    """Reads the tables as far as they are used, and remembers where each chain of one-child rules ends."""

    def __init__(self, tables: Grammar) -> None:
        self._tables = tables
        self._rows: dict[int, _Row] = {}
        self._ends: dict[tuple[int, str, str], int] = {}
        self._reductions: dict[int, _Reduction] = {}

    def run(self, types: Iterable[str], states: list[int]) -> tuple[list[Branch], list[Branch]]:
        values: list[Kid] = []
        made: list[Branch] = []
        states.append(self._tables.start)
        rows, ends, last = self._rows, self._ends, self._tables.end
        for number, terminal in enumerate(chain(types, ("$END",))):
            while True:
                state = states[-1]
                row = rows.get(state) or self._row(state)
                action = row[terminal]
                if action.__class__ is int:
                    states.append(action)
                    values.append(number)
                    break
                size = action.size
                if size == 1:
                    states.pop()
                elif size:
                    kids = values[-size:]
                    del states[-size:], values[-size:]
                    values.append(_join(action, kids, made))
                below = states[-1]
                key = (below, action.origin, terminal)
                target = ends.get(key) or self._end(key)
                states.append(target)
                if target == last and terminal == "$END":
                    return [value for item in values for value in _spread(item)], made
        raise AssertionError("the end of the text is a token of its own")

    def _row(self, state: int) -> _Row:
        row = self._rows.get(state)
        if row is None:
            found = self._tables.states[state].items()
            row = {symbol: goal if action is Shift else self._reduction(goal) for symbol, (action, goal) in found}
            self._rows[state] = row
        return row

    def _reduction(self, rule: Any) -> _Reduction:
        found = self._reductions.get(id(rule))  # the tables keep the rules alive
        if found is None:
            origin = str(rule.origin.name)
            found = _Reduction(len(rule.expansion), origin, str(rule.alias or origin), origin.startswith("_"))
            self._reductions[id(rule)] = found
        return found

    def _end(self, key: tuple[int, str, str]) -> int:
        """The state in which `origin` stands above `below`, once all one-child rules that follow are reduced."""
        below, origin, terminal = key
        row = self._row(below)
        target: int = row[origin]
        while target != self._tables.end:
            action = self._row(target).get(terminal)
            if not isinstance(action, _Reduction) or action.size != 1:
                break
            target = row[action.origin]
        self._ends[key] = target
        return target


def _join(action: _Reduction, kids: list[Kid], made: list[Branch]) -> Kid:
    if action.helper:
        grown = kids[0] if isinstance(kids[0], list) else [kids[0]]
        for kid in kids[1:]:
            grown.extend(_spread(kid))
        return grown
    if any(kid.__class__ is list for kid in kids):
        kids = [part for kid in kids for part in _spread(kid)]
    branch = Branch(action.name, kids)
    made.append(branch)
    return branch


def _spread(kid: Kid) -> list[Kid]:
    return kid if isinstance(kid, list) else [kid]


@lru_cache(maxsize=1)
def _shaper() -> _Shaper:
    return _Shaper(grammar())


def shape(types: Iterable[str], states: list[int] | None = None) -> tuple[list[Branch], list[Branch]]:
    """The declarations of a text by the types of its tokens, and every branch, inner ones first.

    `states` is filled with the parser's stack as it goes, for a lexer that must know where it stands. A KeyError says
    that the text does not parse.
    """
    return _shaper().run(types, [] if states is None else states)


@dataclass(frozen=True, slots=True)
class Read:
    """The tokens and comments of a text, without its tree."""

    tokens: list[Token]
    comments: list[Token]
    states: list[int]  # of the parser, in which each token was read
    declarations: list[Branch]
    branches: list[Branch]


def reread(text: str) -> Read | None:
    """What `parse` would read, in a third of the time; None where it would complain about the syntax."""
    scanner = Scanner(text, grammar())
    states: list[int] = []
    tokens: list[Token] = []
    places: list[int] = []

    def types() -> Iterator[str]:
        while True:
            place = states[-1]
            token = scanner.next(states)
            if token.type == "$END":
                return
            tokens.append(token)
            places.append(place)
            yield token.type

    try:
        declarations, branches = shape(types(), states)
    except KeyError:
        return None
    return Read(tokens, scanner.comments, places, declarations, branches)
