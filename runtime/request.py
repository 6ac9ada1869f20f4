"""What is asked of a compile, and the plan that it asks for. Reads no data.

The compiler is loaded when a plan is asked for: where nothing changed since the last compile, none is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curatec.compiler import plan
    from curatec.compiler.check.program import Checked
    from curatec.runtime.ingest import Progress as ReadProgress


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    spec: str
    strategy: str | None = None
    out: Path | None = None
    params: dict[str, str] = field(default_factory=dict)
    allowed: tuple[Path, ...] = ()
    limit: int | None = None
    only: tuple[str, ...] = ()  # sinks; all when empty
    no_cache: bool = False
    trial: bool = False  # a failing expectation is told in the manifest, and stops nothing
    fleeting: bool = False  # the output is gone afterwards: nobody will ask whether it changed
    engine: str = "polars"  # this and what follows never change what is written
    memory: int | None = None  # bytes
    threads: int | None = None


@dataclass(frozen=True)
class Watch:
    """How far it has come, for whoever shows it."""

    reading: Callable[[str, ReadProgress], None] = lambda source, progress: None
    phase: Callable[[str], None] = lambda name: None


def checked(request: Request) -> Checked:
    """Load and check the spec; CuratecError with every error when there is one."""
    from curatec.compiler.check.program import check
    from curatec.compiler.load import load
    from curatec.dsl.diagnostics import CuratecError

    program = load(request.spec, request.allowed)
    found = check(program, request.params, request.allowed)
    if not found.ok:
        raise CuratecError(found.diagnostics)
    return found


def chosen_plan(found: Checked, request: Request) -> plan.Plan:
    """The optimised plan of the asked strategy, with only the asked sinks."""
    from curatec.compiler.passes import optimise
    from curatec.dsl.diagnostics import CuratecError

    whole = found.plan(request.strategy)
    if not request.only:
        return optimise(whole)
    known = [sink.name for sink in whole.sinks]
    for name in request.only:
        if name not in known:
            raise CuratecError.of("C0213", f"the strategy emits no `{name}`", help=f"its sinks: {', '.join(known)}")
    kept = tuple(sink for sink in whole.sinks if sink.name in request.only)
    asked = tuple(e for e in whole.expectations if all(s is None or s in request.only for s in _sinks_of(e.condition)))
    return optimise(replace(whole, sinks=kept, expectations=asked))


def _sinks_of(test: plan.Test) -> Iterator[str | None]:
    from curatec.compiler import plan

    match test:
        case plan.Measure(sink=sink):
            yield sink
        case plan.Compare(left=left, right=right):
            yield from _sinks_of(left)
            yield from _sinks_of(right)


def default_out(strategy: str) -> Path:
    return Path("out") / strategy
