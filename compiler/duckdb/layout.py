"""SQL for people to read: long lines are broken at what binds least, and the macros that a text uses are told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from curatec.compiler.duckdb.functions import PRELUDE

_WIDTH = 100
_QUOTED = re.compile(r"E'(?:[^'\\]|\\.)*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
# Where a line may be broken: before the name of a long expression, before these words, behind a comma.
_BREAKS = (
    re.compile(r" (?=as \")"),
    re.compile(r" (?=(?:or|and|when|else|end|filter|over) )"),
    re.compile(r"(?<=,) "),
)


def laid_out(sql: str) -> str:
    """The same statement, no line much longer than a page is wide."""
    return "\n".join(piece for line in sql.split("\n") for piece in _broken(line))


def _broken(line: str) -> Iterator[str]:
    """A line in pieces; what stands inside parentheses moves together as long as it fits."""
    if len(line) <= _WIDTH:
        yield line
        return
    indent = len(line) - len(line.lstrip())
    places = _places(line, indent)
    if not places:
        yield line
        return
    first, *rest = (line[a:b].strip() for a, b in zip([0, *places], [*places, len(line)], strict=True))
    yield from _broken(" " * indent + first)
    for piece in rest:
        yield from _broken(" " * (indent + 2) + piece)


def _places(line: str, indent: int) -> list[int]:
    """The places of the kind that binds least, where the fewest parentheses are open."""
    plain = _QUOTED.sub(lambda found: "x" * len(found[0]) if found[0][0] != '"' else '"' * len(found[0]), line)
    for kind in _BREAKS:
        found = [(plain[:at].count("(") - plain[:at].count(")"), at) for at in _starts(kind, plain, indent)]
        if found:
            depth = min(found)[0]
            return [at for own, at in found if own == depth]
    return []


def _starts(kind: re.Pattern[str], line: str, indent: int) -> Iterator[int]:
    return (found.start() for found in kind.finditer(line, indent + 1))


def macros(texts: Iterable[str]) -> list[str]:
    """The definitions of the macros that some texts use, those that they use in turn among them."""
    bodies = {head.partition("(")[0]: (head, body) for head, body in PRELUDE.items()}
    wanted = {name for text in texts for name in _called(text)} & bodies.keys()
    while more := {name for found in wanted for name in _called(bodies[found][1])} & bodies.keys() - wanted:
        wanted |= more
    return [f"create macro {bodies[name][0]} as {bodies[name][1]}" for name in bodies if name in wanted]


def _called(text: str) -> set[str]:
    return set(re.findall(r"([a-z_]+)\(", text))
