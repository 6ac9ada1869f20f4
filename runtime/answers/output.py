"""An OUT that a compile has left, opened for reading. Everything that can be wrong with it is a diagnostic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from curatec.dsl.diagnostics import CuratecError, did_you_mean
from curatec.runtime.publish import MANIFEST

LEDGER, LINEAGE, RUNS, REJECTS = "ledger.parquet", "lineage.parquet", "runs.parquet", "rejects.jsonl"


@dataclass(frozen=True, slots=True)
class Made:
    """How a step made a row. `sink` is the branch of the step, null where all sinks share it."""

    parent: str
    operator: str
    sink: str | None
    step: int
    label: str


@dataclass(frozen=True)
class Output:
    """One OUT. Tables are read when they are first asked for."""

    root: Path
    manifest: dict[str, Any]

    @cached_property
    def ledger(self) -> pl.DataFrame:
        return self.table(LEDGER)

    @cached_property
    def runs(self) -> pl.DataFrame:
        return self.table(RUNS)

    @cached_property
    def lineage(self) -> pl.DataFrame:
        return self.table(LINEAGE)

    @cached_property
    def rejects(self) -> list[dict[str, Any]]:
        try:
            with (self.root / REJECTS).open(encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.strip()]
        except (OSError, ValueError) as error:
            raise unreadable(self.root / REJECTS, error) from None

    @property
    def sinks(self) -> dict[str, Any]:
        found: dict[str, Any] = self.manifest["sinks"]
        return found

    @property
    def steps(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.manifest["steps"]
        return found

    def table(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        """A parquet file of OUT."""
        try:
            return pl.read_parquet(self.root / name, columns=columns)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise unreadable(self.root / name, error) from None

    def tables(self, sink: str) -> Iterator[tuple[str, Path]]:
        """Split (the file's stem) and parquet file of a sink."""
        for name in self.sinks[sink]["files"]:
            path = self.root / name
            if path.suffix == ".parquet":
                yield path.stem, path

    @cached_property
    def made(self) -> dict[str, Made]:
        """Rows that steps made from others, by id."""
        created = self.ledger.filter((pl.col("action") == "created") & pl.col("step").is_not_null())
        told = created.join(self.lineage, left_on=["traj_id", "key"], right_on=["out", "in"], how="left")
        columns = ("traj_id", "key", "operator", "sink", "step", "label")
        return {row[0]: Made(*row[1:]) for row in told.select(columns).iter_rows()}

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """Rows that steps made from a run or row, by its id, in order."""
        found: dict[str, list[str]] = {}
        for id_ in self.lineage.sort("ordinal", "out")["out"].unique(maintain_order=True):
            if id_ in self.made:
                found.setdefault(self.made[id_].parent, []).append(id_)
        return found

    @cached_property
    def first_parents(self) -> dict[str, str]:
        """Of rows that steps or sinks made: the first of what each was made from."""
        return dict(self.lineage.sort("ordinal", descending=True).select("out", "in").iter_rows())

    def origin(self, id_: str) -> str:
        """The run that a made row goes back to, of a pair the chosen one; of a run itself."""
        while id_ in self.first_parents:
            id_ = self.first_parents[id_]
        return id_

    def below(self, id_: str) -> list[str]:
        """Rows that steps made from a run or row, and from these."""
        return [row for child in self.children.get(id_, ()) for row in (child, *self.below(child))]

    def made_from(self, run: str, sink: str) -> list[str]:
        """Example ids of the rows that a sink itself made from a run, in order."""
        made = self.lineage.filter(pl.col("in") == run)["out"].unique().sort()
        own = self.ledger.filter((pl.col("sink") == sink) & (pl.col("action") == "kept"))["example_id"]
        return [id_ for id_ in made.filter(made.is_in(own.implode())) if id_ not in self.made]

    def row(self, sink: str, example_id: str) -> tuple[str, dict[str, Any]] | None:
        """File (relative to OUT) and row of an example; None when the sink has none of this id."""
        for _, path in self.tables(sink):
            try:
                found = pl.scan_parquet(path).filter(pl.col("example_id") == example_id).collect()
            except (OSError, pl.exceptions.PolarsError) as error:
                raise unreadable(path, error) from None
            if found.height:
                return path.relative_to(self.root).as_posix(), found.row(0, named=True)
        return None

    def sink(self, name: str) -> str:
        """The name again, when there is such a sink."""
        if name not in self.sinks:
            help_ = did_you_mean(name, self.sinks) or (f"it has {', '.join(self.sinks) or 'none'}",)
            raise CuratecError.of("C0621", f"this output has no sink `{name}`", help=help_, place=str(self.root))
        return name

    def kind(self, sink: str) -> str:
        """sft, rl, memory or preference."""
        return next(str(branch["kind"]) for branch in self.manifest["branches"] if branch["name"] == sink)

    def lineage_of(self, sink: str) -> list[str | None]:
        """The branches whose steps a sink's rows pass: the shared one (null), stages, the sink."""
        bases = {branch["name"]: branch["base"] for branch in self.manifest["branches"]}
        chain: list[str | None] = []
        at: str | None = sink
        while at is not None:
            chain.insert(0, at)
            at = bases.get(at)
        return [None, *chain]

    def steps_of(self, sink: str) -> list[dict[str, Any]]:
        """The steps that a sink's rows pass, in order."""
        return [step for branch in self.lineage_of(sink) for step in self.steps if step.get("sink") == branch]


def open_output(out: Path) -> Output:
    """Raises CuratecError (C0620) for what is not a whole output."""
    path = out / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message, help_ = _not_an_output(out)
        raise CuratecError.of("C0620", message, help=help_, place=str(out)) from None
    except NotADirectoryError:
        help_ = "name the folder that `curatec compile` wrote"
        raise CuratecError.of("C0620", f"`{out}` is a file, not an output", help=help_, place=str(out)) from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not isinstance(manifest, dict) or not {"sinks", "steps", "branches", "files", "side"} <= manifest.keys():
        help_ = "compile again: it was written by another version, or by hand"
        raise CuratecError.of("C0620", f"`{path}` is not the manifest of this version", help=help_, place=str(out))
    return Output(out, manifest)


def _not_an_output(out: Path) -> tuple[str, str]:
    if not out.exists():
        return f"there is no `{out}`", "write one: `curatec compile SPEC -o OUT`"
    if out.is_dir():
        inside = sorted(p.parent.name for p in out.glob(f"*/{MANIFEST}"))
        if inside:
            return f"`{out}` is not an output, but holds some", f"name one: {', '.join(str(out / n) for n in inside)}"
    return f"`{out}` is not an output of `curatec compile`", f"an output holds a {MANIFEST}"


def unreadable(path: Path, error: Exception) -> CuratecError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
    help_ = "`curatec verify OUT` says what else is off; compile again to mend it"
    return CuratecError.of("C0602", f"`{path}` cannot be read: {reason}", help=help_, place=str(path))
