"""What stands between two tokens of one line: a blank or nothing, by the rule that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from curatec.dsl.printing.shape import Branch

_TIGHT_BEFORE = frozenset(("COMMA", "DOT", "PERCENT", "RPAR", "RSQB"))
_TIGHT_AFTER = frozenset(("DOT", "LPAR", "LSQB"))
_GLUED = frozenset(("LPAR", "LSQB", "COLON"))


def _sign(branch: Branch, types: Sequence[str], blanks: list[str]) -> None:
    """`-1`, `-x`."""
    blanks[branch.start + 1] = ""


def _glued(branch: Branch, types: Sequence[str], blanks: list[str]) -> None:
    """`f(x)`, `a[0]`, `env("X")`, `"filters.py": f(x)`: what opens belongs to what stands before it."""
    for kid in branch.kids:
        if kid.__class__ is int and types[kid] in _GLUED:
            blanks[kid] = ""


def _choices(branch: Branch, types: Sequence[str], blanks: list[str]) -> None:
    """`{a, b}`: one value out of a set, unlike `{ … }`, which holds settings."""
    blanks[branch.start + 1] = blanks[branch.end - 1] = ""


def _unit(branch: Branch, types: Sequence[str], blanks: list[str]) -> None:
    """`5s`."""
    blanks[branch.end - 1] = ""


_RULES: dict[str, Callable[[Branch, Sequence[str], list[str]], None]] = {
    "neg": _sign,
    "negative": _sign,
    "negative_percent": _sign,
    "call": _glued,
    "index": _glued,
    "endpoint_env": _glued,
    "key_env": _glued,
    "use": _glued,
    "choices": _choices,
    "duration": _unit,
}


def blanks_before(types: Sequence[str], branches: Iterable[Branch]) -> list[str]:
    """For each token what stands before it when it does not begin a line."""
    blanks = [" "] * len(types)
    last = ""
    for number, kind in enumerate(types):
        if kind in _TIGHT_BEFORE or last in _TIGHT_AFTER or (kind == "RBRACE" and last == "LBRACE"):
            blanks[number] = ""
        last = kind
    for branch in branches:
        rule = _RULES.get(branch.name)
        if rule is not None:
            rule(branch, types, blanks)
    return blanks
