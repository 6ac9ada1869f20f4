"""Operations of a plan: what one step does, as pure data. `plan` puts them into steps, branches and sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from curatec.compiler.core import Core, Order
from curatec.compiler.targets import Context, Sft
from curatec.compiler.types import Type

# ---- rows ----


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the trajectories where it is true, or drops those where it is true. `stages`: the terms of the condition in
    the order in which they are asked (`passes.cheap_first`); none: all at once."""

    verb: Literal["keep", "drop"]
    where: Core
    stages: tuple[tuple[Core, ...], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Dedup:
    """One row for each key; the best by `best`, then by trajectory id. A null in the key is never a duplicate."""

    on: tuple[Core, ...]
    best: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` rows for each key, first ones by `order`. No keys: of all."""

    count: int
    per: tuple[Core, ...]
    order: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class LimitEach:
    """`each` is a list: a row stays while any of its elements has been kept less than `count` times."""

    count: int
    each: Core
    order: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class DedupNear:
    """One row for each connected component of texts whose likeness is `threshold` or more, within equal `over`."""

    on: Core
    threshold: float
    over: tuple[Core, ...]
    best: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Mix:
    """Rows of each source in given shares, which sum to 1. `to`: how many rows (or trained tokens) in all; `loss` and
    the like of the sink's `target` say what is trained, null where rows are counted."""

    shares: tuple[tuple[str, float], ...]
    to: int | None
    at_most: bool
    target: Sft | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """By draw: below a threshold (`share`), or the `count` lowest of each key."""

    count: int | None
    share: float | None
    per: tuple[Core, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Derive:
    name: str
    value: Core


@dataclass(frozen=True, slots=True)
class Tag:
    """`failure` becomes the name of the first family that holds, else null."""

    families: tuple[tuple[str, Core], ...]


@dataclass(frozen=True, slots=True)
class Sort:
    by: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Parts with their shares, which sum to 1; `by` is a key that never parts one task. Rows whose text `near` is alike
    at `near_threshold` or more are drawn together."""

    by: Core
    shares: tuple[tuple[str, float], ...]
    seed: int
    near: Core | None = None
    near_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Columns of a side table under `table.column`, null where `on` is no key of it."""

    table: str
    on: Core
    required: bool
    columns: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Decontaminate:
    """Rows that leak an item of a sealed set go; `ngram` words in a row are a leak."""

    against: str
    ngram: int


# ---- turns and tools ----


@dataclass(frozen=True, slots=True)
class TurnsFilter:
    verb: Literal["keep", "drop"]
    where: Core
    repair: bool


@dataclass(frozen=True, slots=True)
class TurnsSet:
    field: str
    value: Core
    where: Core | None


@dataclass(frozen=True, slots=True)
class ToolsFilter:
    verb: Literal["keep", "drop"]
    where: Core


@dataclass(frozen=True, slots=True)
class TurnsCut:
    """What stands after (or before) the first (or last) turn where it is true goes; system turns stay."""

    side: Literal["after", "before"]
    pick: Literal["first", "last"]
    where: Core
    repair: bool


@dataclass(frozen=True, slots=True)
class View:
    """Whose side is trained. The other actor's calls and their results go; `user` changes roles."""

    side: Literal["agent", "user"]


@dataclass(frozen=True, slots=True)
class Redact:
    families: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class Render:
    """Whose tokens are counted. Paths are relative to `base`, which is outside the digest."""

    tokenizer: str
    template: str | None
    base: str = field(default="", compare=False)


# ---- rows that multiply ----


@dataclass(frozen=True, slots=True)
class Decompose:
    """One row for each turn where `at` is true, which ends with it and trains nothing else."""

    at: Core
    context: Context | None


@dataclass(frozen=True, slots=True)
class Distractors:
    """Copies that show `n` more tools, which the run had no use for. `pool`: where they are from."""

    n: int
    pool: Literal["all", "source"]
    copies: int


@dataclass(frozen=True, slots=True)
class Rebind:
    """Copies in which the values of these arguments are others, everywhere alike."""

    entities: tuple[str, ...]
    copies: int


@dataclass(frozen=True, slots=True)
class Recover:
    """A row for each failed call that a call of the same tool puts right, at most `max_gap` assistant turns later."""

    max_gap: int


Operation = (
    Filter
    | TurnsFilter
    | TurnsSet
    | TurnsCut
    | ToolsFilter
    | View
    | Redact
    | Render
    | Dedup
    | DedupNear
    | Limit
    | LimitEach
    | Mix
    | Sample
    | Derive
    | Tag
    | Sort
    | Split
    | Join
    | Decontaminate
    | Decompose
    | Distractors
    | Rebind
    | Recover
)
