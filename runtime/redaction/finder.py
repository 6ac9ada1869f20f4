"""All findings of a text, each place in at most one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from curatec.runtime.redaction import pii, secrets
from curatec.runtime.redaction.finding import Finding, Recogniser

# Secrets first: the address in `https://user:password@host` is none.
_FAMILIES = {"secrets": secrets.recognisers, "pii": pii.recognisers}
PLACEHOLDER = re.compile(r"\[([A-Z][A-Z_]*)_([1-9][0-9]*)\]")


class Free:
    """Which code points of a text belong to no finding yet."""

    def __init__(self, text: str) -> None:
        self._taken = bytearray(len(text))

    def take(self, start: int, end: int) -> bool:
        """Takes a span if it is free as a whole."""
        if 1 in self._taken[start:end]:
            return False
        self._taken[start:end] = b"\1" * (end - start)
        return True


class RecogniserFailed(Exception):
    """A library raised; which one is in the cause."""


class Finder:
    """Finds what belongs to some families. Equal texts are looked at once. Raises ImportError where the libraries of
    the extra `redact` are not installed."""

    def __init__(self, families: Iterable[str]) -> None:
        wanted = set(families)
        self._recognisers: tuple[Recogniser, ...] = tuple(
            recogniser for family, made in _FAMILIES.items() if family in wanted for recogniser in made()
        )
        self._known: dict[tuple[str, str | None], tuple[Finding, ...]] = {}

    def find(self, text: str, member: str | None = None) -> tuple[Finding, ...]:
        """Findings in order, without overlaps. `member`: the name of the JSON member whose whole value the text is."""
        key = (text, member)
        if key not in self._known:
            self._known[key] = self._found(text, member)
        return self._known[key]

    def forget(self) -> None:
        """Lets go of the texts that were seen."""
        self._known.clear()

    def _found(self, text: str, member: str | None) -> tuple[Finding, ...]:
        if len(text) < 6:
            return ()
        free = Free(text)
        for match in PLACEHOLDER.finditer(text):
            free.take(*match.span())
        kept: list[Finding] = []
        for recogniser in self._recognisers:
            try:
                found = list(recogniser(text, member))
            except Exception as error:
                raise RecogniserFailed(type(error).__name__) from error
            kept += [one for one in found if free.take(one.start, one.end)]
        return tuple(sorted(kept, key=lambda one: one.start))
