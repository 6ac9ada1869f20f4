"""What a recogniser finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A value inside a text: code points `start` to `end`. `same` is the value without its spelling, so that
    `+1 650-555-0123` and `(650) 555-0123` are one."""

    start: int
    end: int
    family: str
    kind: str
    same: str

    @property
    def name(self) -> str:
        """As the ledger has it: `pii.email`."""
        return f"{self.family}.{self.kind}"


# A text, and the name of the JSON member whose whole value it is.
Recogniser = Callable[[str, str | None], Iterable[Finding]]
