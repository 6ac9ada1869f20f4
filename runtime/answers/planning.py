"""What a compile would do, compared with what an output says of the last one. Runs no step and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import xxhash

from curatec.compiler import plan
from curatec.compiler.check.program import Checked
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime import arrow_file
from curatec.runtime.answers import growth
from curatec.runtime.answers.output import Output, open_output
from curatec.runtime.answers.work import Work, work
from curatec.runtime.cache import Cache
from curatec.runtime.inputs import Input
from curatec.runtime.manifest import input_digest
from curatec.runtime.manifest import side as manifest_side
from curatec.runtime.memo.memo import memo_for
from curatec.runtime.redaction import Finder
from curatec.runtime.side import Side
from curatec.runtime.steps.render import read_renderer

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

_KINDS = {"tables": "table", "test_sets": "test set"}


@dataclass(frozen=True)
class Change:
    """One source, step or sink. `state` is same, changed, new or after (what stands before it changed). `runs`: whether
    a compile would run it, null where that is not known, and `because` of what it would or need not."""

    branch: str | None
    name: str
    state: str
    why: str = ""
    rows: int | None = None  # of a source: runs now; of a sink: rows last time
    runs: bool | None = None
    because: str = ""


@dataclass(frozen=True)
class Planned:
    """`compared` is None where there is no output to compare with. `nothing`: the same bytes would be written."""

    strategy: str
    out: Path
    compared: bool
    sources: tuple[Change, ...]
    side: tuple[Change, ...]  # tables and test sets
    steps: tuple[Change, ...]
    sinks: tuple[Change, ...]
    other: tuple[str, ...]
    notes: tuple[str, ...]  # what it would cost
    nothing: bool
    seconds: float | None  # of the last run

    def data(self) -> dict[str, Any]:
        parts = {name: [asdict(c) for c in getattr(self, name)] for name in ("sources", "side", "steps", "sinks")}
        return {
            "strategy": self.strategy,
            "out": str(self.out),
            "compared": self.compared,
            "changes": not self.nothing,
            **parts,
            "other": list(self.other),
            "notes": list(self.notes),
            "model_calls": 0,
            "usd": 0.0,
            "last_seconds": self.seconds,
        }


def compare(
    optimised: plan.Plan,
    found: Checked,
    inputs: Sequence[Input],
    side: Side,
    renderer: Renderer | None,
    out: Path,
    cache: Cache,
) -> Planned:
    """Compare a plan, its parsed inputs, its side data and its tokenizer with an output, if there is one, and with what
    the cache holds."""
    output, damage = _last(out)
    whole = optimised.as_written
    rendered = renderer.digest if renderer is not None else None
    sources = tuple(_source(given, output) for given in inputs)
    beside = tuple(
        _beside(kind, name, now, output)
        for kind, found_now in manifest_side(whole, side).items()
        for name, now in found_now.items()
    )
    dirty = output is None or any(c.state != "same" for c in (*sources, *beside))
    steps = tuple(_steps(whole, output, dirty, rendered))
    sinks = tuple(_sinks(whole, output, steps, dirty))
    other = (*damage, *(_other(whole, found, output, steps) if output is not None else ()))
    moved = dirty or any(c.state != "same" for c in (*steps, *sinks))
    seconds = output.manifest["run"].get("seconds") if output is not None else None
    notes = tuple(growth.told(whole, inputs))
    nothing = not moved and not other
    compared = output is not None
    if renderer is not None or not any(isinstance(step.operation, plan.Render) for step in whole.shared):
        memo = memo_for(optimised, inputs, side, renderer, None, cache)
        told = {(w.branch, w.stop): w for w in work(optimised, memo, output.manifest if output is not None else None)}
        steps = tuple(_with_work(c, told[c.branch, c.name]) for c in steps)
        sinks = tuple(_with_work(c, told[c.branch, None]) for c in sinks)
    return Planned(whole.strategy, out, compared, sources, beside, steps, sinks, other, notes, nothing, seconds)


def _with_work(change: Change, found: Work) -> Change:
    return replace(change, runs=found.runs, because=found.why)


def lacking(whole: plan.Plan, project: Path, allowed: tuple[Path, ...]) -> tuple[Renderer | None, list[Diagnostic]]:
    """The tokenizer that the plan names, and what its steps need and do not find here, as warnings."""
    found: list[Diagnostic] = []
    renderer = None
    try:
        renderer = read_renderer(whole, project, allowed)
    except CuratecError as error:
        found += [replace(d, severity="warning") for d in error.diagnostics]
    for _, step in whole.steps():
        if isinstance(step.operation, plan.Redact):
            try:
                Finder(step.operation.families)
            except ImportError as error:
                message = f"`redact` needs a library that is not installed: {error.name}"
                help_ = ("install it: pip install 'curatec[redact]'",)
                label = f"step `{step.label}`"
                found.append(Diagnostic("C0502", message, step.span, label, help_, "warning", source=step.source))
    return renderer, found


def _last(out: Path) -> tuple[Output | None, tuple[str, ...]]:
    try:
        output = open_output(out)
    except CuratecError as error:
        return None, () if not out.exists() else tuple(d.message for d in error.diagnostics)
    for name, told in output.manifest["files"].items():
        path = output.root / name
        if not path.is_file() or path.stat().st_size != told["bytes"]:
            return output, (f"`{name}` is not as it was written: the output is made anew",)
    return output, ()


def _source(given: Input, output: Output | None) -> Change:
    name, runs = given.corpus.name, sum(part.n_runs for part in given.parsed.parts)
    old = output.manifest["inputs"].get(name) if output is not None else None
    if old is None:
        return Change(None, name, "new", "" if output is None else "not in the last run", runs)
    if old["digest"] != input_digest(given, _digests(given)):
        moved = runs - old["records"]
        return Change(None, name, "changed", f"{moved:+,} runs" if moved else "other runs or settings files", runs)
    if old["settings"] != plan.digest(given.corpus):
        return Change(None, name, "changed", "its settings", runs)
    return Change(None, name, "same", "", runs)


def _beside(kind: str, name: str, now: dict[str, Any], output: Output | None) -> Change:
    """A table or test set as it is now, against what the last run read."""
    called, rows = f"{_KINDS[kind]} {name}", now["records"]
    old = output.manifest["side"][kind].get(name) if output is not None else None
    if old is None:
        return Change(None, called, "new", "" if output is None else "not in the last run", rows)
    if old["settings"] != now["settings"]:
        return Change(None, called, "changed", "its settings", rows)
    if old["digest"] != now["digest"]:
        moved = rows - old["records"]
        return Change(None, called, "changed", f"{moved:+,} rows" if moved else "other rows", rows)
    return Change(None, called, "same", "", rows)


def _digests(given: Input) -> pl.Series:
    parts = [arrow_file.read(part.runs, ["digest"])["digest"] for part in given.parsed.parts]
    return pl.concat(parts) if parts else pl.Series([], dtype=pl.String)


def _steps(whole: plan.Plan, output: Output | None, dirty: bool, rendered: str | None) -> Iterator[Change]:
    """Step by step along each branch: the first one that differs changes all behind it."""
    render = (output.manifest["render"] or {}).get("digest") if output is not None else None
    touched: dict[str | None, bool] = {}
    for branch in (None, *whole.stages, *whole.sinks):
        name = branch.name if branch is not None else None
        moved = dirty if branch is None else touched.get(branch.base, touched[None])
        old = [s for s in output.steps if s.get("sink") == name and "again" not in s] if output is not None else []
        steps = whole.shared if branch is None else branch.steps
        for i, step in enumerate(steps):
            change = _step(name, step, i, old, moved)
            if isinstance(step.operation, plan.Render) and change.state == "same" and render != rendered:
                change = Change(name, step.label, "changed", "the files of the tokenizer or its template")
            moved = moved or change.state != "same"
            yield change
        touched[name] = moved or len(old) > len(steps)


def _step(branch: str | None, step: plan.Step, at: int, old: list[dict[str, Any]], moved: bool) -> Change:
    digest = plan.digest(step.operation)
    here = old[at] if at < len(old) else None
    if here is not None and here["digest"] == digest and not moved:
        renamed = f"was called {here['label']}" if here["label"] != step.label else ""
        return Change(branch, step.label, "same", renamed)
    named = next((s for s in old if s["label"] == step.label), None)
    if named is not None and named["digest"] != digest:
        return Change(branch, step.label, "changed", f"was: {named['text']}")
    if named is None and not any(s["digest"] == digest for s in old):
        return Change(branch, step.label, "new")
    if not moved:
        return Change(branch, step.label, "changed", "stands at another place")
    return Change(branch, step.label, "after", "what comes in may differ")


def _sinks(whole: plan.Plan, output: Output | None, steps: Sequence[Change], dirty: bool) -> Iterator[Change]:
    known = {b["name"]: b for b in output.manifest["branches"]} if output is not None else {}
    for sink in whole.sinks:
        old = known.get(sink.name)
        if old is None or output is None:
            yield Change(sink.name, sink.name, "new")
            continue
        rows = sum(output.sinks[sink.name]["rows"].values())
        branches = {None, *(b.name for b in whole.lineage(sink))}
        gone = _gone(whole, output, branches)
        if old["digest"] != plan.digest(sink.target) or old["base"] != sink.base:
            yield Change(sink.name, sink.name, "changed", "its settings", rows)
        elif gone:
            yield Change(sink.name, sink.name, "changed", f"without {', '.join(gone)}", rows)
        elif dirty or any(c.state != "same" for c in steps if c.branch in branches):
            yield Change(sink.name, sink.name, "after", "its rows may differ", rows)
        else:
            yield Change(sink.name, sink.name, "same", "", rows)


def _gone(whole: plan.Plan, output: Output, branches: set[str | None]) -> list[str]:
    """Labels of steps that the last run had and the plan has not, a renamed one apart."""
    now = [(branch, plan.digest(step.operation)) for branch, step in whole.steps()]
    labels = {(branch, step.label) for branch, step in whole.steps()}
    old = [s for s in output.steps if s.get("sink") in branches and "again" not in s]
    return [
        s["label"] for s in old if (s.get("sink"), s["digest"]) not in now and (s.get("sink"), s["label"]) not in labels
    ]


def _other(whole: plan.Plan, found: Checked, output: Output, steps: Sequence[Change]) -> Iterator[str]:
    """What changes the output beside steps and sinks."""
    manifest = output.manifest
    if manifest["curatec"] != version("curatec"):
        yield f"curatec {manifest['curatec']} wrote it, this is {version('curatec')}"
    if manifest["strategy"] != whole.strategy:
        yield f"it holds strategy `{manifest['strategy']}`"
    if manifest["partial"]:
        yield "it was made with --limit"
    yield from (f"sink `{name}` goes" for name in output.sinks if name not in {sink.name for sink in whole.sinks})
    if [e["text"] for e in manifest["expectations"]] != [e.text for e in whole.expectations]:
        yield "other expectations"
    for kind, now in (("tables", whole.tables), ("test_sets", whole.sealed)):
        gone = sorted(manifest["side"][kind].keys() - {declared.name for declared in now})
        yield from (f"{_KINDS[kind]} {name} is no longer read" for name in gone)
    if manifest["params"] != dict(whole.params):
        changed = sorted(k for k, v in whole.params if manifest["params"].get(k) != v)
        yield f"parameters: {', '.join(changed) or 'fewer'}"
    modules = [m.parsed.source.text for m in found.program.modules]
    told = [manifest["spec"]["digest"], *manifest["spec"]["imports"]]
    if told != [xxhash.xxh3_128_hexdigest(text.encode()) for text in modules] and all(c.state == "same" for c in steps):
        yield "words of the spec that change no row (labels, reasons, comments, layout): card, report and manifest"
