"""What one compile takes from the cache and leaves in it.

A state is kept where the work since the last kept one took longer than keeping it does: much longer between the steps
of a branch, just longer at its end, from where others begin.
A cache that cannot be written is read only; an entry that is damaged or does not hold what it should is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curatec.compiler import plan
from curatec.compiler.core import Core
from curatec.runtime import arrow_file
from curatec.runtime.cache import Cache, CacheError, DamagedEntry, hash_file
from curatec.runtime.done import Done
from curatec.runtime.execute import expressions
from curatec.runtime.formats.counts import COUNTS
from curatec.runtime.inputs import Input
from curatec.runtime.memo.checkpoint import Places, Saved, Unreadable, save
from curatec.runtime.memo.keys import Keys, keys_of, names_of, table_key
from curatec.runtime.memo.reached import Kept, Reached
from curatec.runtime.memo.written import Sunk, lent
from curatec.runtime.memo.written import save as save_sink
from curatec.runtime.side import Side
from curatec.runtime.sinks.written import Written
from curatec.runtime.state import State

_TABLE = "table.arrow"
_WORTH = 4.0  # times that the work must have taken longer than keeping its result, between the steps of a branch
_WRITTEN = 1.5e-9  # seconds for each byte that is written

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer


@dataclass
class Memo:
    """`names`: what the plan may ask of measured expressions, and the columns that they are kept in."""

    cache: Cache
    keys: Keys
    names: Mapping[Core, str]
    writable: bool = True
    kept: set[str] = field(default_factory=set)  # keys of results that this compile found or put in the cache
    _places: Places = field(init=False)
    _saved: dict[str, tuple[Saved, ...]] = field(default_factory=dict)
    _done: dict[str, dict[str, Done]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = Places(self.cache.root)

    @contextmanager
    def scratch(self, beside: Path) -> Iterator[Path | None]:
        """A folder in the cache for what steps write, where files of the folder `beside` cannot be linked into it."""
        if self.cache.beside(beside):
            yield None
            return
        try:
            made = self.cache.scratch()
        except CacheError:
            self.writable = False
            yield None
            return
        with made as folder:
            yield folder

    # ---- states ----

    def last(self, keys: Sequence[str], like: State) -> Kept | None:
        """The last of some states on a way that the cache holds. `like` has what is not kept of a state."""
        for at in reversed(range(len(keys))):
            with suppress(DamagedEntry, Unreadable, KeyError):
                chain = self._chain(keys[at])
                done = {key: one for saved in chain for key, one in self._what(saved).items()}
                passed = [done[key] for key in keys[: at + 1]]
                state = self._state(chain, like)
                self.kept.add(keys[at])
                return Kept(Reached(state, keys[at], state), passed)
        return None

    def passed(self, keys: Sequence[str]) -> int:
        """How many stops of a way a compile would not run."""
        for at in reversed(range(len(keys))):
            with suppress(DamagedEntry, Unreadable, KeyError):
                done = {key for saved in self._chain(keys[at]) for key in saved.keys}
                if done.issuperset(keys[: at + 1]):
                    return at + 1
        return 0

    def _chain(self, key: str) -> tuple[Saved, ...]:
        """The entries from the first state to this one. Raises DamagedEntry and Unreadable."""
        if key not in self._saved:
            entry = self.cache.find(key)
            if entry is None:
                raise Unreadable(key)
            saved = Saved.open(entry)
            self._saved[key] = (*(self._chain(saved.base) if saved.base is not None else ()), saved)
        return self._saved[key]

    def _what(self, saved: Saved) -> dict[str, Done]:
        key = saved.entry.key
        if key not in self._done:
            self._done[key] = saved.done()
        return self._done[key]

    def _state(self, chain: Sequence[Saved], like: State) -> State:
        toolsets = {name: text for saved in chain for name, text in saved.toolsets().items()}
        return chain[-1].state(like, toolsets, {name: core for core, name in self.names.items()})

    def keep(self, key: str, reached: Reached, *, end: bool) -> Reached:
        """Keeps a state if that is worth its time, more readily at the `end` of a branch. Where it stands then."""
        self.cache.stay()
        worth = 1.0 if end else _WORTH
        if not self.writable or reached.seconds < worth * self._cost(reached.state):
            return reached
        if not self._put(key, lambda folder: save(folder, key, reached, self.names, self._places)):
            return reached
        return Reached(reached.state, key, reached.state)

    def _cost(self, state: State) -> float:
        """About how many seconds keeping it takes."""
        new = [part for part in state.turns.parts if self._places.of(part) is None]
        memory = sum(part.estimated_size() for part in new if isinstance(part, pl.DataFrame))
        return (state.rows.estimated_size() + memory) * _WRITTEN

    def _put(self, key: str, fill: Callable[[Path], None], digests: Mapping[str, str] | None = None) -> bool:
        """Whether the entry is there now."""
        try:
            self.cache.put(key, fill, digests)
        except CacheError:
            self.writable = False
            return False
        self.kept.add(key)
        return True

    # ---- tables ----

    def table(self, of: str, what: Sequence[str], compute: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """A small table that is computed of a state, whose key is `of`; `what` says how it is computed."""
        key = table_key(of, what)
        entry = self.cache.find(key)
        if entry is not None:
            with suppress(DamagedEntry, KeyError, OSError):
                return arrow_file.read(entry.file(_TABLE))
        made = compute()
        if self.writable:
            self._put(key, lambda folder: arrow_file.write(made, folder / _TABLE))
        return made

    # ---- sinks ----

    def lend(self, sink: str, out: Path, former: Path) -> Sunk | None:
        """What a sink wrote once, put below `out`, which takes the place of `former`; null where it is not kept."""
        key = self.keys.sinks[sink].key
        entry = self.cache.find(key)
        with suppress(DamagedEntry, Unreadable):
            found = lent(entry, out, former) if entry is not None else None
            self.kept.update([key] if found is not None else ())
            return found
        return None

    def keep_sink(self, written: Written, ledger: Sequence[pl.DataFrame], folder: Path) -> Mapping[str, str]:
        """Keeps what a sink has written below its folder; the digests of its files, relative to OUT."""
        digests = {file: hash_file(folder.parent / file) for file in written.files}
        if self.writable:
            key, named = self.keys.sinks[written.name].key, {Path(file).name: d for file, d in digests.items()}
            self._put(key, lambda empty: save_sink(empty, folder, written, ledger), named)
        return digests


def memo_for(
    whole: plan.Plan, inputs: Sequence[Input], side: Side, renderer: Renderer | None, limit: int | None, cache: Cache
) -> Memo:
    """The memo of a compile. `cache` is the one that the inputs were parsed into."""
    keys = keys_of(whole, inputs, side, renderer, limit, cache.root)
    return Memo(cache, keys, names_of(whole, [*expressions(whole), *COUNTS], side))
