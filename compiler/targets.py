"""What a sink makes of its rows: its settings, as pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from curatec.compiler.core import Core


@dataclass(frozen=True, slots=True)
class Loss:
    """Which assistant turns carry loss. `where` and `weight` are about the turn and its calls."""

    where: Core | None = None
    weight: Core | None = None
    except_reasoning: bool = False
    only_last: bool = False
    including_edited: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What is shown before a trained turn. Of results, the last `results` in full; what is further back goes with its
    call, or stays with `elide` in place of the result."""

    system: bool
    results: int
    elide: str | None


@dataclass(frozen=True, slots=True)
class Sft:
    loss: Loss
    fit_tokens: int | None = None
    format: str = "trl"
    reasoning: Literal["keep", "last", "strip"] = "keep"
    overflow: Literal["drop", "window", "cut"] = "drop"  # what becomes of a row that does not fit
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class Rl:
    """`reward` is a sum of named verifiers with their weights."""

    prompt: Literal["first", "last"]
    reward: tuple[tuple[str, float], ...]
    group: int | None = None
    format: str = "trl"


@dataclass(frozen=True, slots=True)
class Memory:
    key: Core
    value: Core
    method: str = "bm25"
    top: int = 3


@dataclass(frozen=True, slots=True)
class Preference:
    within: tuple[Core, ...]
    chosen: Core
    rejected: Core
    from_difference: bool
    margin: Core | None = None
    margin_at_least: float | None = None
    max_pairs: int | None = None
    max_per: tuple[Core, ...] = ()
    length_ratio: float | None = None
    format: str = "trl"


Target = Sft | Rl | Memory | Preference
SINKS: dict[str, type[Target]] = {"sft": Sft, "rl": Rl, "memory": Memory, "preference": Preference}
