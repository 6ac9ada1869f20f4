"""How far rows have come on their way, and since which kept state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from curatec.runtime.done import Done
from curatec.runtime.state import State


@dataclass(frozen=True)
class Reached:
    """A state on its way. `kept` is the key of the last state before it that was kept, which is `before`; `done` is
    what was done since, by the keys of the stops, in `seconds`."""

    state: State
    kept: str | None = None
    before: State | None = None
    done: Mapping[str, Done] = field(default_factory=dict)
    seconds: float = 0.0

    def behind(self, key: str, state: State, done: Done) -> Reached:
        """One stop further."""
        return replace(self, state=state, done={**self.done, key: done})


@dataclass(frozen=True)
class Kept:
    """A kept state, and what was done at each stop of its branch up to it."""

    reached: Reached
    passed: Sequence[Done]
