"""Values of some arguments, such as ids, as they stand in the texts of a run, and others to stand for them.

A value is told by its core: without punctuation around it, so that `W12` is found where the arguments say `#W12`, and
in any case of ASCII letters. It stands alone where no ASCII letter, digit or `_` touches it, and neither one of `-@.+`
with a letter or digit behind, nor one of `:,` between digits: `8765` is not alone in `card_8765` or `555-8765`.

Within JSON texts are strings, names of members and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import polars as pl

from curatec.compiler.text import draw
from curatec.runtime.redaction.finder import PLACEHOLDER
from curatec.runtime.redaction.json_text import rewritten

_ALPHABET = {"lower": "abcdefghijklmnopqrstuvwxyz", "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "digit": "0123456789"}
_FOLD = str.maketrans(_ALPHABET["upper"], _ALPHABET["lower"])
_BEFORE = r"(?<!\w)(?<!\w[-@.+])(?:(?<!\d[:,])|(?!\d))"
_AFTER = r"(?!\w)(?![-@.+]\w)(?:(?![:,]\d)|(?<!\d))"
_EXPONENT = re.compile(r"[0-9.]+[eE][+-]?[0-9]+")
_ATTEMPTS = 64


def fold(text: str) -> str:
    """ASCII letters in lower case."""
    return text.translate(_FOLD)


def leaves(text: str, *, keys: bool = True) -> list[tuple[str, str | None]]:
    """Every text in a text, with the member whose value it is (or is listed in)."""
    found: list[tuple[str, str | None]] = []

    def look(value: str, member: str | None) -> str:
        found.append((value, member))
        return value

    rewritten(text, look, keys=keys)
    return found


def plain(text: str) -> str:
    """A folded text without escapes: what is found in it stands in one of its texts, unless it spans several."""
    return fold(text if "\\" not in text else "\n".join(leaf for leaf, _ in leaves(text)))


def cores(texts: Iterable[str], names: Sequence[str]) -> set[str]:
    """The cores of all values of the named members, as they are written. What a step redacted is nobody's."""
    values = (value for text in texts for value, member in leaves(text, keys=False) if member in names)
    return {_core(value) for value in values if not PLACEHOLDER.fullmatch(value)} - {""}


def _core(value: str) -> str:
    """Without what is no letter or digit around it."""
    alnum = [i for i, char in enumerate(value) if char.isalnum()]
    return value[alnum[0] : alnum[-1] + 1] if alnum else ""


def unfit(core: str) -> str | None:
    """Why a value cannot be told from other text, or none of its shape be made."""
    if sum(char.isascii() and char.isalnum() for char in core) < 3:
        return "entity_too_short"
    if core.isalpha() and not core.isupper():
        return "entity_is_word"
    if _EXPONENT.fullmatch(core):
        return "entity_is_number"
    return None


@dataclass(frozen=True, slots=True)
class Finder:
    """Looks for folded cores in texts."""

    anywhere: re.Pattern[str]
    alone: re.Pattern[str]

    @classmethod
    def of(cls, found: Iterable[str]) -> Finder:
        longest_first = sorted(found, key=lambda core: (-len(core), core))
        pattern = "|".join(map(re.escape, longest_first))
        flags = re.ASCII | re.IGNORECASE
        return cls(re.compile(pattern, flags), re.compile(f"{_BEFORE}(?:{pattern}){_AFTER}", flags))

    def holds(self, text: str) -> bool:
        """Whether any stands in a text, alone or not."""
        return self.anywhere.search(text) is not None

    def may_hold(self, text: str) -> bool:
        """Whether looking into a text may be worth it: an escape of JSON may stand for anything."""
        return "\\" in text or self.holds(text)

    def parted(self, text: str) -> bool:
        """Whether any stands in a text, or within JSON in it, and not alone."""
        return self.may_hold(text) and any(self._parts(leaf) for leaf, _ in leaves(text))

    def _parts(self, leaf: str) -> bool:
        found = [m.span() for m in self.anywhere.finditer(leaf)]
        return bool(found) and found != [m.span() for m in self.alone.finditer(leaf)]

    def replaced(self, text: str, new: Mapping[str, str]) -> str:
        """The text with others in place of all that stand alone in it, and within JSON in it."""
        if not self.may_hold(text):
            return text
        return rewritten(
            text, lambda value, _: self.alone.sub(lambda m: spelled(new[fold(m[0])], m[0]), value), keys=True
        )


def spelled(new: str, old: str) -> str:
    """A new value with upper-case letters where the old one has some."""
    return "".join(n.upper() if o.isascii() and o.isupper() else n for n, o in zip(new, old, strict=True))


def others(found: Sequence[str], seed: str, known: str) -> dict[str, str] | None:
    """Another core of the same shape for each, none of them part of `known` (a folded text), or a part of another;
    None where that fails. Letters become letters, digits digits, and a number keeps its number of digits."""
    made: dict[str, str] = {}
    for core in sorted(found):
        for attempt in range(_ATTEMPTS):
            new = _other(core, f"{seed} {core}", attempt)
            if new not in known and not any(new in other or other in new for other in chain(found, made.values())):
                made[core] = new
                break
        else:
            return None
    return made


def _other(core: str, seed: str, attempt: int) -> str:
    drawn = draw("rebind", attempt, pl.Series([f"{seed} {i}" for i in range(len(core))]))
    return "".join(_char(core, i, number) for i, number in enumerate(drawn))


def _char(core: str, i: int, number: int) -> str:
    char = core[i]
    if not (char.isascii() and char.isalnum()):
        return char
    if char.isalpha():
        return _ALPHABET["lower"][number % 26]
    if i == 0 and char != "0":
        return str(1 + number % 9)
    return str(number % 10)
