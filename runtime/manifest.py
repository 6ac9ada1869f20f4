"""The manifest: what went in, what was said, what came out. All but `run` is the same on every machine."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import xxhash

from curatec.compiler import plan
from curatec.dsl.diagnostics import Diagnostic, to_json
from curatec.runtime.ledger import SCHEMA
from curatec.runtime.side import Side, side_of

if TYPE_CHECKING:
    from curatec.runtime.execute import Executed
    from curatec.runtime.expectations import Outcome
    from curatec.runtime.inputs import Input
    from curatec.runtime.sinks.written import Written

MANIFEST_VERSION = 1
REJECTS = "rejects.jsonl"


def input_digest(given: Input, digests: pl.Series) -> str:
    """Over the sorted digests of the records and the files that settings name; never over paths (semantics 34)."""
    hasher = xxhash.xxh3_128()
    for digest in digests.sort():
        hasher.update(digest.encode())
    hasher.update(given.files_digest.encode())
    return hasher.hexdigest()


def file_digest(path: Path) -> str:
    hasher = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            hasher.update(block)
    return hasher.hexdigest()


def build(
    executed: Executed,
    *,
    spec_name: str,
    spec_text: str,
    modules: Sequence[tuple[str, str]],
    written: Mapping[str, Written],
    expectations: Sequence[Outcome],
    lints: Sequence[Diagnostic],
    partial: bool,
    started: datetime,
) -> dict[str, Any]:
    """The whole manifest as JSON-ready data. `modules` are (name, text) of the spec and its imports."""
    whole = executed.plan
    return {
        "manifest": MANIFEST_VERSION,
        "curatec": version("curatec"),
        "strategy": whole.strategy,
        "partial": partial,
        "spec": {
            "text": spec_text,
            "digest": _text_digest(spec_text),
            "imports": [_text_digest(text) for _, text in modules[1:]],
        },
        "plan_digest": plan.digest(whole),
        "params": dict(whole.params),
        "inputs": inputs(executed),
        "side": side(executed.plan, side_of(executed.start)),
        "render": rendering(executed),
        "steps": steps(executed),
        "redacted": redacted(executed),
        "branches": branches(whole.as_written),
        "sinks": {name: _sink(w) for name, w in written.items()},
        "conservation": conservation(executed, written),
        "expectations": [
            {"label": o.expectation.label, "text": o.expectation.text, "held": o.held, "measured": o.measured}
            for o in expectations
        ],
        "lints": [_lint(d) for d in lints],
        "effects": [],
        "costs": {"model_calls": 0, "usd": 0.0},
        "versions": {name: version(name) for name in ("polars", "pyarrow")},
        "run": {
            "spec": spec_name,
            "started": started.isoformat(timespec="seconds"),
            "host": platform.node(),
            "python": sys.version.split()[0],
            "engine": executed.start.engine.name,
            "files": {i.corpus.name: list(i.parsed.files) for i in executed.loaded.inputs},
        },
    }


def seal(summary: dict[str, Any], made: Path, started: datetime, known: Mapping[str, str]) -> None:
    """Adds what is known only when every other file is written: digests (some are `known` already), and the time it
    took."""
    files = _files(made, known)
    # It names files of the corpus, so it alone follows a renamed one.
    summary["run"]["rejects"] = files.pop(REJECTS, None)
    summary["files"] = files
    summary["run"]["seconds"] = round((datetime.now(UTC) - started).total_seconds(), 3)


def inputs(executed: Executed) -> dict[str, Any]:
    """Each source: records read and rejected, formats, digest, licence."""
    rows = executed.loaded.state.rows
    found: dict[str, Any] = {}
    for given in executed.loaded.inputs:
        own = rows.filter(pl.col("source") == given.corpus.name)
        found[given.corpus.name] = {
            "digest": input_digest(given, own["digest"]),
            "settings": plan.digest(given.corpus),
            "records": own.height,
            "rejected": len(given.parsed.rejects),
            "formats": given.parsed.formats,
            "licenses": own["license"].drop_nulls().unique().sort().to_list(),
        }
    return found


def side(whole: plan.Plan, given: Side) -> dict[str, dict[str, Any]]:
    """Side tables and test sets by name: rows or items, and the digest of what was taken from their files."""
    tables = {t.name: (t, given.tables[t.name].frame, given.tables[t.name].digest) for t in whole.tables}
    sets = {s.name: (s, given.sealed[s.name].items, given.sealed[s.name].digest) for s in whole.sealed}
    return {
        kind: {
            name: {"digest": digest, "settings": plan.digest(declared), "records": rows.height}
            for name, (declared, rows, digest) in found.items()
        }
        for kind, found in (("tables", tables), ("test_sets", sets))
    }


def rendering(executed: Executed) -> dict[str, str | None] | None:
    """Whose tokens are counted, as the spec names them; null where they are estimated."""
    renderer = executed.shared.renderer
    if renderer is None:
        return None
    said = next(s.operation for s in executed.plan.shared if isinstance(s.operation, plan.Render))
    return {
        "tokenizer": said.tokenizer,
        "template": said.template,
        "digest": renderer.digest,
        "template_digest": renderer.template_digest,
    }


def redacted(executed: Executed) -> list[dict[str, Any]]:
    """What each `redact` found: family (`pii.email`) → values that gave way, and rows that they stood in."""
    found = []
    for branch, step in executed.plan.steps():
        if isinstance(step.operation, plan.Redact):
            own = pl.col("sink").eq_missing(pl.lit(branch, dtype=pl.String)) & (pl.col("label") == step.label)
            edits = [frame.filter(own & (pl.col("action") == "edited")) for frame in executed.ledger.frames]
            rows = pl.concat([pl.DataFrame(schema=SCHEMA), *edits])
            by_family = rows.group_by("key").agg(pl.col("n").sum(), pl.col("traj_id").n_unique())
            families = {key: {"values": n, "rows": runs} for key, n, runs in by_family.sort("key").iter_rows()}
            found.append({"sink": branch, "label": step.label, "families": families})
    return found


def steps(executed: Executed) -> list[dict[str, Any]]:
    """What each step did; its digest says what it is, so that `plan` can tell a changed one from a renamed one."""
    digests = {(branch, step.label): plan.digest(step.operation) for branch, step in executed.plan.as_written.steps()}
    found = []
    for count in executed.ledger.counts:
        told = _drop_none(asdict(count))
        if not told.pop("again"):
            found.append(told | {"digest": digests[count.sink, count.label]})
        else:  # no step of the spec
            found.append(told | {"again": True})
    return found


def branches(whole: plan.Plan) -> list[dict[str, Any]]:
    """Stages and sinks, each with the branch that it starts from (null: the shared rows) and its settings."""
    return [
        {
            "name": branch.name,
            "base": branch.base,
            "kind": "stage" if branch.target is None else type(branch.target).__name__.lower(),
            "format": getattr(branch.target, "format", None),
            "digest": plan.digest(branch.target),
        }
        for branch in (*whole.stages, *whole.sinks)
    ]


def _text_digest(text: str) -> str:
    return xxhash.xxh3_128_hexdigest(text.encode())


def _drop_none(row: dict[str, Any]) -> dict[str, Any]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in row.items() if v is not None and v != ()}


def _sink(written: Written) -> dict[str, Any]:
    return {
        "rows": written.rows,
        "entered": written.entered,
        "created": written.created,
        "replaced": written.replaced,
        "dropped": written.dropped,
        "rejected": written.rejected,
        "tokens": written.tokens,
        "trained_tokens": written.trained_tokens,
        "exact": written.exact,
        "files": list(written.files),
        "notes": list(written.notes),
    }


def conservation(executed: Executed, written: Mapping[str, Written]) -> dict[str, Any]:
    """Each sink from `from` to its rows: every trajectory is written, dropped, replaced or rejected."""
    start = executed.start.rows.height
    sums: dict[str, Any] = {}
    for branch in executed.plan.sinks:
        names = {b.name for b in executed.plan.lineage(branch)}
        counts = [c for c in executed.ledger.counts if c.sink is None or c.sink in names]
        w = written[branch.name]
        sums[branch.name] = {
            "in": start,
            "created": sum(c.created for c in counts) + w.created,
            "out": sum(w.rows.values()),
            "dropped": sum(c.dropped for c in counts) + sum(w.dropped.values()),
            "replaced": sum(c.replaced for c in counts) + w.replaced,
            "rejected": sum(w.rejected.values()),
        }
        s = sums[branch.name]
        if s["in"] + s["created"] != s["out"] + s["dropped"] + s["replaced"] + s["rejected"]:
            raise AssertionError(f"conservation broken for {branch.name}: {s}")
    return sums


def _lint(diagnostic: Diagnostic) -> dict[str, Any]:
    made = to_json(diagnostic)
    place = made.pop("at")
    return made | ({"line": place["line"]} if place and "line" in place else {})


def _files(stage: Path, known: Mapping[str, str]) -> dict[str, Any]:
    """Every file of OUT but the manifest: size and digest."""
    names = {path.relative_to(stage).as_posix(): path for path in sorted(stage.rglob("*")) if path.is_file()}
    return {
        name: {"bytes": path.stat().st_size, "digest": known.get(name) or file_digest(path)}
        for name, path in names.items()
    }


def write(manifest: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
