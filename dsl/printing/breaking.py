"""Where a statement that is too long for its line, or has comments inside, may be broken.

A group is a list, a chain of `and` or a row of clauses: it stands on one line, or breaks at all of its places. Outer
groups break first. A comment breaks every group around it, since the line ends with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from curatec.dsl.printing.shape import Branch, first_of
from curatec.dsl.printing.sheet import STEP, WIDTH, Sheet

NOTES = frozenset(("because", "see"))
STATEMENTS = frozenset(("statement", "sink_statement", "setting"))
_CHAINS = {"or_": 0, "and_": 0, "conditional": 5}  # rule → which of its parts is read by the same rule, and goes on
_COMMA_LISTS = frozenset(("exprs", "names", "strings", "orders", "workflows"))
_BRACKETED = frozenset(("call", "list", "choices", "shares", "budget", "columns", "context_clause"))
_CLAUSES = frozenset(("best", "order", "where"))
_OPENING = frozenset(("LPAR", "LSQB", "LBRACE"))
_CLOSING = frozenset(("RPAR", "RSQB", "RBRACE"))


@dataclass(slots=True)
class Group:
    """`places` says before which tokens it may break, and how much deeper the new line then is."""

    start: int
    end: int
    places: dict[int, int]
    deepens: bool = True  # what is inside stands deeper than the group's own lines
    broken: bool = field(default=False, init=False)
    base: int = field(default=0, init=False)
    order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.order = sorted(self.places)

    def next_place(self, token: int) -> int | None:
        """The first place at or behind a token."""
        found = bisect_left(self.order, token)
        return self.order[found] if found < len(self.order) else None


# ---- groups of a statement ----


def groups_of(parts: Sequence[Branch], sheet: Sheet) -> list[Group]:
    """Of a statement, with the `context` that belongs to it where there is one; outer groups first."""
    groups = list(_seams(parts))
    for part in parts:
        _collect(part, sheet, groups)
    return sorted(groups, key=lambda group: (group.start, -group.end))


def _seams(parts: Sequence[Branch]) -> Iterator[Group]:
    """Notes, and the `context` of a `decompose`, go to the next line; the notes stay together where they fit."""
    places: dict[int, int] = {}
    for number, part in enumerate(parts):
        if number:
            places[part.start] = STEP
        notes = [kid.start for kid in part.branches() if kid.name in NOTES] if part.name in STATEMENTS else []
        if notes:
            places[notes[0]] = STEP
            yield Group(notes[0], part.end, dict.fromkeys(notes[1:], 0), deepens=False)
    yield Group(parts[0].start, parts[-1].end, places, deepens=False)


def _collect(branch: Branch, sheet: Sheet, groups: list[Group], *, inside: bool = False) -> None:
    """`inside`: the operator above is the same, and its group has the places of this one too."""
    if not inside:
        places = _places(branch, sheet)
        if places:
            start = _opening(branch, sheet) if branch.name in _BRACKETED else branch.start
            groups.append(Group(start, branch.end, places))
    for number, kid in enumerate(branch.kids):
        if isinstance(kid, Branch):
            _collect(kid, sheet, groups, inside=kid.name == branch.name and _CHAINS.get(kid.name) == number)


def _places(branch: Branch, sheet: Sheet) -> dict[int, int]:
    name, kids = branch.name, branch.kids
    if name in _BRACKETED:
        return _bracketed(branch, sheet)
    if name in _COMMA_LISTS:
        return {kid + 1: STEP for kid in kids if kid.__class__ is int and sheet.types[kid] == "COMMA"}
    if name in _CHAINS:
        return dict.fromkeys(_elses(branch) if name == "conditional" else _operators(branch), STEP)
    if name == "pair":
        return {kid.start: STEP for kid in branch.branches()[1:]}
    return {kid.start: STEP for kid in branch.branches() if kid.name in _CLAUSES or kid.name.startswith("loss_")}


def _operators(branch: Branch) -> Iterator[int]:
    """`a and b and c` is read as `(a and b) and c`, and is one chain."""
    left = branch.kids[0]
    if isinstance(left, Branch) and left.name == branch.name:
        yield from _operators(left)
    yield branch.kids[1]


def _elses(branch: Branch) -> Iterator[int]:
    """`if a then b else if c then d else e` is one chain too."""
    yield branch.kids[4]
    last = branch.kids[5]
    if isinstance(last, Branch) and last.name == branch.name:
        yield from _elses(last)


def _opening(branch: Branch, sheet: Sheet) -> int:
    return next(kid for kid in branch.kids if kid.__class__ is int and sheet.types[kid] in _OPENING)


def _bracketed(branch: Branch, sheet: Sheet) -> dict[int, int]:
    """One item a line between brackets that stand at the margin."""
    places: dict[int, int] = {}
    opened = False
    for kid in branch.kids:
        kind = sheet.types[kid] if kid.__class__ is int else ""
        if kind in _CLOSING:
            if places:
                places[kid] = 0
            break
        if opened and kind != "COMMA":
            places[first_of(kid)] = STEP
        opened = opened or kind in _OPENING
    return places


# ---- one statement over several lines ----


def broken(parts: Sequence[Branch], sheet: Sheet, indent: int) -> str:
    """The statement, which begins at a column of `indent`, in as few lines as its groups allow."""
    return _Breaker(sheet, parts[0].start, parts[-1].end, groups_of(parts, sheet), indent).text()


def head(start: int, end: int, sheet: Sheet, indent: int) -> str:
    """Tokens with no place to break but at a comment."""
    return _Breaker(sheet, start, end, [], indent).text()


class _Breaker:
    def __init__(self, sheet: Sheet, start: int, end: int, groups: list[Group], indent: int) -> None:
        self.sheet, self.start, self.end, self.indent = sheet, start, end, indent
        self.waiting = groups[::-1]
        self.owner = {place: group for group in groups for place in group.places}
        self.open: list[Group] = []
        self.line = indent  # the indentation of the current line
        self.column = indent
        self.out: list[str] = []

    def text(self) -> str:
        for token in range(self.start, self.end):
            while self.open and self.open[-1].end <= token:
                self.open.pop()
            if token > self.start:
                self._gap(token)
            while self.waiting and self.waiting[-1].start == token:
                self._enter(self.waiting.pop(), token)
            self._put(self.sheet.texts[token])
        return "".join(self.out)

    def _gap(self, token: int) -> None:
        group = self.owner.get(token)
        comments = self.sheet.comments.get(token)
        if comments is None and (group is None or not group.broken):
            self._put(self.sheet.blanks[token])
            return
        indent = group.base + group.places[token] if group and group.broken else self._deeper()
        for comment in comments or ():
            self.out.append("  " if comment.trailing else "\n" + " " * indent)
            self.out.append(comment.text)
        self.out.append("\n" + " " * indent)
        self.line = self.column = indent

    def _deeper(self) -> int:
        """The indentation of a line that a comment forces where no group breaks."""
        return max((g.base + STEP for g in self.open if g.deepens), default=self.indent + STEP)

    def _enter(self, group: Group, token: int) -> None:
        inner = [g.base + STEP for g in self.open if g.broken and g.deepens]
        group.base = max([self.line, *inner])
        group.broken = not self.sheet.quiet(group.start, group.end) or not self._fits(token, self._limit(group))
        self.open.append(group)

    def _limit(self, group: Group) -> int:
        """Where the line that the group ends on ends itself, if the group does not break."""
        around = (g.next_place(group.end) for g in self.open if g.broken)
        return min(self.end, self.sheet.next_comment(group.end), *(place for place in around if place is not None))

    def _fits(self, start: int, limit: int) -> bool:
        column = self.column
        for token in range(start, limit):
            blank = self.sheet.blanks[token] if token > start else ""
            first, line_end, rest = self.sheet.texts[token].partition("\n")
            column += len(blank) + len(first)
            if column > WIDTH:
                return False
            if line_end:
                column = len(rest) - rest.rfind("\n") - 1
        return True

    def _put(self, text: str) -> None:
        self.out.append(text)
        line_end = text.rfind("\n")
        self.column = self.column + len(text) if line_end < 0 else len(text) - line_end - 1
