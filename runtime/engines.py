"""The engine that a compile asks for, opened for as long as it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curatec.compiler import plan
from curatec.compiler.core import Apply, walk
from curatec.compiler.engine import POLARS, Engine, Polars
from curatec.compiler.frames import KEY
from curatec.compiler.functions import FUNCTIONS
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime.execute import expressions

# Of the memory that is given, DuckDB has half; the batches that it reads and what polars makes of them the rest.
_SHARE = 2


@contextmanager
def opened(name: str, memory: int | None, threads: int | None, folder: Path) -> Iterator[Engine]:
    """`memory` in bytes. DuckDB spills below `folder`, and is closed in the end."""
    if name == "polars":
        yield Polars(memory) if memory is not None else POLARS
        return
    from curatec.compiler.duckdb.engine import DuckDB

    with DuckDB(memory, memory // _SHARE if memory is not None else None, threads, folder / "duckdb") as engine:
        yield engine


def refuse_missing(whole: plan.Plan, engine: str) -> None:
    """CuratecError (C0504) at the first step with a function that an engine does not have."""
    for _, step in whole.steps():
        used = (node.function for core in expressions(step.operation) for node in walk(core) if isinstance(node, Apply))
        lacking = next((name for name in used if name != KEY and not has(engine, name)), None)
        if lacking is not None:
            message, help_ = (
                f"the engine `{engine}` has no `{lacking}`",
                "leave `--engine` out: polars has every function",
            )
            raise CuratecError(
                [Diagnostic("C0504", message, step.span, f"step `{step.label}`", (help_,), source=step.source)]
            )


def has(engine: str, function: str) -> bool:
    """Whether an engine computes a function."""
    entry = FUNCTIONS[function]
    return (entry.polars if engine == "polars" else entry.duckdb) is not None
