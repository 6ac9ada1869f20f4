"""What names mean where an expression stands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from curatec.compiler.core import Const
from curatec.compiler.types import Level, Type

# Words with a meaning of their own before a dot: no column or parameter may be called so.
RESERVED = ("trajectory", "turn", "signal", "prev", "next", "caller", "reply")


@dataclass(frozen=True, slots=True)
class Scope:
    """`levels` are the rows in reach, innermost last. Derived columns belong to the trajectory."""

    levels: tuple[Level, ...] = (Level.TRAJECTORY,)
    derived: dict[str, Type] = field(default_factory=dict)
    params: dict[str, Const] = field(default_factory=dict)
    tables: dict[str, dict[str, Type]] = field(default_factory=dict)  # joined ones: column → type
    listed: dict[str, dict[str, Type]] = field(default_factory=dict)  # all declared tables, with their keys
    tagged: bool = False  # `failure` is set
    windows: bool = True
    signals: bool = False  # under `evolve`
    family: bool = False  # in a failure family
    judged: dict[str, Type] = field(default_factory=dict)  # columns of turns, from `judge turns`
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # all values of a text field: `source`, `failure`
    frozen: frozenset[str] | None = None  # in a source: the only fields in reach

    @property
    def level(self) -> Level:
        return self.levels[-1]

    def inside(self, level: Level) -> Scope:
        """The scope of a quantifier's `where`. A call inside a trajectory also sees its turn."""
        between = (Level.TURN,) if level is Level.CALL and self.level is Level.TRAJECTORY else ()
        return replace(self, levels=(*self.levels, *between, level), windows=False)

    def at(self, level: Level) -> Scope:
        """The scope of a statement that speaks about one level, with what encloses it."""
        levels = {
            Level.TRAJECTORY: (Level.TRAJECTORY,),
            Level.TURN: (Level.TRAJECTORY, Level.TURN),
            Level.CALL: (Level.TRAJECTORY, Level.TURN, Level.CALL),
            Level.TOOL: (Level.TRAJECTORY, Level.TOOL),
        }[level]
        return replace(self, levels=levels, windows=level is Level.TRAJECTORY and self.windows)

    def with_derived(self, name: str, type_: Type) -> Scope:
        return replace(self, derived={**self.derived, name: type_})
