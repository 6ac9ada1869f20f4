"""The raw formats: one adapter a file, found through one tuple and the entry-point group `curatec.formats`.

An entry point names an object with the members of `model.Adapter`. Built-in names win over added ones.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from .atif import ATIF
from .llamafactory import LLAMAFACTORY
from .model import Adapter, Match, Sample
from .openai import OPENAI
from .sharegpt import SHAREGPT
from .swe_agent import SWE_AGENT
from .tau2 import TAU2
from .tau_bench import TAU_BENCH
from .trl import TRL

ENTRY_POINTS = "curatec.formats"
ACCEPT = 0.4  # the least mean score over a sample with which a format is taken

BUILT_IN: tuple[Adapter, ...] = (TAU_BENCH, TAU2, ATIF, SWE_AGENT, LLAMAFACTORY, SHAREGPT, TRL, OPENAI)
"""More particular formats first: a tie goes to the earlier one."""


@cache
def adapters() -> dict[str, Adapter]:
    """All adapters by name, those of entry points included."""
    found: dict[str, Adapter] = {adapter.name: adapter for adapter in BUILT_IN}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value)):
        try:
            adapter: Adapter = point.load()
        except Exception as error:
            error.add_note(f"while loading the format {point.name} ({point.value}), an entry point of {ENTRY_POINTS}")
            raise
        found.setdefault(adapter.name, adapter)
    return found


def recognise(sample: Sample) -> tuple[Adapter, Match] | None:
    """The adapter that fits a sample best, or null when none fits well enough."""
    scored = near_misses(sample)
    if not scored or scored[0][1].score < ACCEPT:
        return None
    return scored[0]


def near_misses(sample: Sample) -> list[tuple[Adapter, Match]]:
    """Every adapter with its match, best first."""
    scored = [
        (adapter, adapter.recognise(sample))
        for adapter in adapters().values()
        if sample.container in adapter.containers
    ]
    return sorted(scored, key=lambda pair: -pair[1].score)
