"""Checks an output against its own manifest: bytes, rows, sums, lineage. Every check runs; every fault is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime.answers.output import Output
from curatec.runtime.manifest import REJECTS, file_digest
from curatec.runtime.publish import MANIFEST


def verify(output: Output) -> tuple[list[str], list[Diagnostic]]:
    """Names of the checks made, and what is off (C0624 each)."""
    faults: list[Diagnostic] = []
    damaged: set[str] = set()
    for fault in _files(output):
        faults.append(_fault(f"`{fault[0]}` {fault[1]}"))
        damaged.add(fault[0])
    for name, check in CHECKS.items():
        try:
            faults.extend(_fault(message) for message in check(output))
        except CuratecError as error:
            # What cannot be read stands in `damaged` already, once.
            faults.extend(d for d in error.diagnostics if not any(d.place.endswith(file) for file in damaged))
        except (KeyError, TypeError, pl.exceptions.PolarsError) as error:
            faults.append(_fault(f"the {name} cannot be checked: {str(error).partition(chr(10))[0]}"))
    return ["files and digests", *CHECKS], faults


def _fault(message: str) -> Diagnostic:
    return Diagnostic("C0624", message)


def _files(output: Output) -> Iterator[tuple[str, str]]:
    listed: dict[str, Any] = dict(output.manifest["files"])
    if output.manifest["run"].get("rejects"):
        listed[REJECTS] = output.manifest["run"]["rejects"]
    for name, told in listed.items():
        path = output.root / name
        try:
            if path.stat().st_size != told["bytes"]:
                yield name, f"has {path.stat().st_size:,} bytes instead of {told['bytes']:,}"
            elif file_digest(path) != told["digest"]:
                yield name, "has been changed: its digest differs"
        except FileNotFoundError:
            yield name, "is missing"
        except OSError as error:
            yield name, f"cannot be read: {error.strerror}"
    for path in sorted(output.root.rglob("*")):
        name = path.relative_to(output.root).as_posix()
        if path.is_file() and name not in listed and name != MANIFEST and not _index(path):
            yield name, "is not in the manifest"


def _index(path: Path) -> bool:
    """Retrieval indexes are built on first use, outside the digests."""
    return any(part.endswith(".index") for part in path.parts)


# ---- rows ----


def _rows(output: Output, sink: str) -> pl.DataFrame:
    columns = ["example_id", "task", "split", "parents"]
    frames = [output.table(path.relative_to(output.root).as_posix(), columns) for _, path in output.tables(sink)]
    return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def _counts(output: Output) -> Iterator[str]:
    for sink, told in output.sinks.items():
        found = dict(_rows(output, sink).group_by("split").len().iter_rows())
        for split in sorted({*told["rows"], *found}):
            if found.get(split, 0) != told["rows"].get(split, 0):
                seen, said = found.get(split, 0), told["rows"].get(split, 0)
                yield f"`{sink}` has {seen:,} rows of {split}, the manifest says {said:,}"
        for _, path in output.tables(sink):
            lines = path.with_suffix(".jsonl")
            if (
                lines.exists()
                and _lines(lines) != output.table(path.relative_to(output.root).as_posix(), ["example_id"]).height
            ):
                yield f"`{lines.relative_to(output.root)}` and its parquet file differ in rows"


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _unique(output: Output) -> Iterator[str]:
    for sink in output.sinks:
        ids = _rows(output, sink)["example_id"]
        twice = ids.filter(ids.is_duplicated()).unique().sort()
        if len(twice):
            yield f"`{sink}` has {len(twice)} example ids more than once, such as {twice[0]}"


def _splits(output: Output) -> Iterator[str]:
    frames = [_rows(output, sink).select("task", "split") for sink in output.sinks]
    if not frames:
        return
    parted = pl.concat(frames).unique().group_by("task").agg(pl.col("split").sort())
    parted = parted.filter(pl.col("split").list.len() > 1).sort("task")
    if parted.height:
        task, splits = parted.row(0)
        yield f"{parted.height} tasks are in more than one split, such as {task} ({', '.join(splits)})"


# ---- ledger ----


def _conservation(output: Output) -> Iterator[str]:
    start = output.runs.height
    for sink, told in output.manifest["conservation"].items():
        found = _sums(output, sink, start)
        for name in ("in", "created", "out", "dropped", "replaced", "rejected"):
            if found[name] != told[name]:
                yield f"`{sink}`: the ledger has {found[name]:,} {name}, the manifest says {told[name]:,}"
        if told["in"] + told["created"] != told["out"] + told["dropped"] + told["replaced"] + told["rejected"]:
            yield f"`{sink}`: what went in is not what came out: {told}"


def _sums(output: Output, sink: str, start: int) -> dict[str, int]:
    branches = [branch for branch in output.lineage_of(sink) if branch is not None]
    own = pl.col("sink").is_in(branches) | pl.col("sink").is_null()
    unmade = (pl.col("action") == "rejected") & pl.col("step").is_not_null()  # copies that a step failed to make
    whole = output.ledger.filter(own & pl.col("turn").is_null() & ~unmade)
    counts = dict(whole.group_by("action").len().iter_rows())
    kept = whole.filter(
        (pl.col("sink") == sink) & pl.col("action").is_in(["kept", "created"]) & pl.col("example_id").is_not_null()
    )
    return {
        "in": start,
        "out": kept["example_id"].n_unique(),
        **{action: counts.get(action, 0) for action in ("created", "dropped", "replaced", "rejected")},
    }


def _steps(output: Output) -> Iterator[str]:
    whole = output.ledger.filter(pl.col("turn").is_null() & pl.col("step").is_not_null())
    counted = whole.group_by("sink", "label", "action").agg(rows=pl.len(), n=pl.col("n").sum())
    found = {(sink, label, action): (rows, n) for sink, label, action, rows, n in counted.iter_rows()}
    for step in output.steps:
        for action, (name, words) in _COUNTED.items():
            rows, n = found.get((step.get("sink"), step["label"], action), (0, 0))
            told, seen = step[name], n if name == "failed" else rows
            if told != seen:
                yield f"step `{step['label']}`: the ledger has {seen:,} {words}, the manifest says {told:,}"


# Action in the ledger → count in the manifest, and what it counts.
_COUNTED = {
    "dropped": ("dropped", "drops"),
    "created": ("created", "rows made"),
    "replaced": ("replaced", "rows replaced"),
    "rejected": ("failed", "copies not made"),
}
_COPIES = ("distractors", "rebind", "recover")


def _copies(output: Output) -> Iterator[str]:
    """No copy is ever validated."""
    made = {id_ for id_, row in output.made.items() if row.operator in _COPIES}
    copies = {id_ for copy in made for id_ in (copy, *output.below(copy))}
    for sink in output.sinks:
        validated = _rows(output, sink).filter(pl.col("split") == "validation")["example_id"]
        wrong = sorted(copies & set(validated))
        if wrong:
            yield f"`{sink}` validates {len(wrong)} copies, such as {wrong[0]}"


def _lineage(output: Output) -> Iterator[str]:
    runs = output.runs["id"].implode()
    made = output.lineage["out"].implode()
    orphans = sorted(id_ for id_, row in output.made.items() if row.operator is None)
    if orphans:
        yield f"{len(orphans)} made rows have no parent in the lineage, such as {orphans[0]}"
    lost = output.lineage.filter(~pl.col("in").is_in(runs) & ~pl.col("in").is_in(made))
    if lost.height:
        yield f"{lost.height} parents in the lineage do not exist, such as {lost['in'][0]}"
    for sink in output.sinks:
        parents = (
            _rows(output, sink).select(pl.col("parents").explode(empty_as_null=False, keep_nulls=False)).to_series()
            if output.sinks[sink]["files"]
            else pl.Series([], dtype=pl.String)
        )
        gone = parents.filter(~parents.is_in(runs))
        if len(gone):
            yield f"`{sink}` names {gone.n_unique()} parents that no run has, such as {gone[0]}"


CHECKS: dict[str, Callable[[Output], Iterator[str]]] = {
    "row counts": _counts,
    "unique example ids": _unique,
    "splits": _splits,
    "copies": _copies,
    "steps against ledger": _steps,
    "conservation": _conservation,
    "lineage": _lineage,
}
