"""Sinks: finished rows → files that a trainer takes as they are.

`write` is the only entry. Each kind of sink is one module; they share how turns become messages (`messages`), how rows
find their order across parts (`buckets`), how a row is laid out (`columns`, `files`) and how every trajectory is
accounted for (`account`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from curatec.compiler import plan
from curatec.runtime.execute import Executed
from curatec.runtime.sinks.memory import write as write_memory
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.preference import write as write_preference
from curatec.runtime.sinks.rl import write as write_rl
from curatec.runtime.sinks.sft import write as write_sft
from curatec.runtime.sinks.written import Written

_WRITERS: dict[type[plan.Target], Callable[[Place, Any], Written]] = {
    plan.Sft: write_sft,
    plan.Rl: write_rl,
    plan.Memory: write_memory,
    plan.Preference: write_preference,
}


def module_of(target: plan.Target) -> str:
    """The module that writes a kind of sink."""
    return _WRITERS[type(target)].__module__


def write(executed: Executed, branch: plan.Branch, out: Path) -> Written:
    """Write one sink's files below `out/{sink}` and its rows of the ledger.

    The bytes depend on the rows alone: not on parts, order of files, or threads. Raises CuratecError for rows that the
    target cannot mean (C0611 a weight that is neither 0 nor 1, C0619 a negative one); OSError when the disk is full.
    """
    assert branch.target is not None, branch.name
    end = executed.ends[branch.name]
    folder = out / branch.name
    folder.mkdir(parents=True)
    # Beside the output, not in the system's temporary folder: it may need as much room as the output does.
    with tempfile.TemporaryDirectory(prefix=".sink-", dir=out) as scratch:
        place = Place(executed, branch, end, folder, Path(scratch))
        written = _WRITERS[type(branch.target)](place, branch.target)
    return _with_held_out(written, executed.held.get(branch.name), executed)


def _with_held_out(written: Written, ids: pl.Series | None, executed: Executed) -> Written:
    """Runs of sealed tasks are in no sink, with no opt-out (semantics 27): dropped as by a rule of its own."""
    if ids is None or ids.is_empty():
        return written
    executed.ledger.add(ids, "dropped", sink=written.name, reason="held_out")
    dropped = dict(sorted({**written.dropped, "held_out": len(ids)}.items()))
    return replace(written, entered=written.entered + len(ids), dropped=dropped)
