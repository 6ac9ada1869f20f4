"""One trajectory at once: the same value has the same placeholder wherever it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from curatec.runtime.redaction.finder import PLACEHOLDER, Finder, Free
from curatec.runtime.redaction.json_text import rewritten


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a trajectory. `within`: whether it is in scope. `keys`: whether names of JSON members are data too."""

    value: str
    within: bool = True
    keys: bool = True


@dataclass(frozen=True, slots=True)
class Redacted:
    """`counts`: how many values of each kind (`pii.email`) gave way."""

    value: str
    counts: Mapping[str, int]


@dataclass(slots=True)
class _Names:
    """Placeholders given so far: numbers count up for each kind, in order of first occurrence."""

    last: Counter[str]
    given: dict[tuple[str, str], str] = field(default_factory=dict)  # (kind, value without spelling) → placeholder
    written: dict[str, tuple[str, str]] = field(default_factory=dict)  # as written → (`pii.email`, placeholder)

    def name(self, kind: str, same: str) -> str:
        if (kind, same) not in self.given:
            word = kind.upper()
            self.last[word] += 1
            self.given[kind, same] = f"[{word}_{self.last[word]}]"
        return self.given[kind, same]


def redact(texts: Sequence[Text], finder: Finder) -> list[Redacted | None]:
    """For each text what it becomes, None where it stays. The order of texts is the order of placeholders' numbers.

    A value found in one text gives way in all others within scope, also where nothing else would tell it there: as
    long as it is no plain word. What stands free only when a neighbour is gone is looked for again, so that redacting
    twice is redacting once.
    """
    names = _Names(_numbers(texts))
    values = [text.value for text in texts]
    counts: list[Counter[str]] = [Counter() for _ in texts]
    within = [i for i, text in enumerate(texts) if text.within]
    while sum(_scan(values[i], texts[i].keys, finder, names) for i in within):
        places = _Places(names.written)
        for i in within:
            edit = partial(_replaced, counts=counts[i], finder=finder, names=names, places=places)
            values[i] = rewritten(values[i], edit, keys=texts[i].keys)
    return [Redacted(value, n) if n else None for value, n in zip(values, counts, strict=True)]


def _numbers(texts: Iterable[Text]) -> Counter[str]:
    """The highest number of each placeholder that is there already, from an earlier step."""
    last: Counter[str] = Counter()
    for text in texts:
        if "_" in text.value and "[" in text.value:
            for match in PLACEHOLDER.finditer(text.value):
                last[match[1]] = max(last[match[1]], int(match[2]))
    return last


def _scan(text: str, keys: bool, finder: Finder, names: _Names) -> int:
    """Names what is found; how many findings that are."""
    n = 0

    def look(value: str, member: str | None) -> str:
        nonlocal n
        for found in finder.find(value, member):
            n += 1
            placeholder = names.name(found.kind, found.same)
            names.written.setdefault(value[found.start : found.end], (found.name, placeholder))
        return value

    rewritten(text, look, keys=keys)
    return n


_WORD = re.compile(r"[A-Za-z0-9]+")
_GOES_ON = re.compile(r"[A-Za-z0-9]{2}")


class _Places:
    """Where known values stand in a text, found by their first words, however many values there are."""

    def __init__(self, written: Iterable[str]) -> None:
        self._starts: dict[str, list[tuple[int, str]]] = {}  # first word → (where it begins in the value, value)
        for value in sorted(written, key=lambda value: (-len(value), value)):
            first = _WORD.search(value)
            if first and len(value) >= 6 and not value.isalpha():
                self._starts.setdefault(first[0], []).append((first.start(), value))

    def of(self, text: str) -> Iterator[tuple[int, str]]:
        """Start and value where no letter or digit goes on, longer values first at each place."""
        for word in _WORD.finditer(text) if self._starts else ():
            for lead, value in self._starts.get(word[0], ()):
                start = word.start() - lead
                end = start + len(value)
                if start >= 0 and text.startswith(value, start) and not _GOES_ON.fullmatch(text, end - 1, end + 1):
                    yield start, value


def _replaced(
    value: str, member: str | None, *, counts: Counter[str], finder: Finder, names: _Names, places: _Places
) -> str:
    free = Free(value)
    spans: list[tuple[int, int, str, str]] = []
    for found in finder.find(value, member):
        free.take(found.start, found.end)
        spans.append((found.start, found.end, found.name, names.name(found.kind, found.same)))
    for start, known in places.of(value):
        if free.take(start, start + len(known)):
            spans.append((start, start + len(known), *names.written[known]))
    out, done = [], 0
    for start, end, name, placeholder in sorted(spans):
        out += [value[done:start], placeholder]
        done = end
        counts[name] += 1
    return "".join((*out, value[done:]))
