"""What a compile did, on one screen."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from curatec.runtime.cli.console import count, table, wrapped

if TYPE_CHECKING:
    from curatec.runtime.compile import Compiled


def summary(manifest: Mapping[str, Any]) -> str:
    """Sources, steps, sinks and expectations of a manifest."""
    parts = [
        _sources(manifest),
        steps_table(manifest["steps"]),
        sinks_table(manifest["sinks"]),
        _expectations(manifest),
    ]
    return "\n\n".join(part for part in parts if part)


def _sources(manifest: Mapping[str, Any]) -> str:
    lines = [f"strategy {manifest['strategy']}" + (" (partial: --limit)" if manifest["partial"] else "")]
    for name, given in manifest["inputs"].items():
        formats = ", ".join(given["formats"]) or "no format"
        rejected = f", {count(given['rejected'])} records could not be read" if given["rejected"] else ""
        lines.append(f"  from {name}: {count(given['records'])} runs ({formats}){rejected}")
    tables, sealed = manifest["side"]["tables"], manifest["side"]["test_sets"]
    lines += [f"  table {name}: {count(given['records'])} rows" for name, given in tables.items()]
    lines += [f"  test set {name}: {count(given['records'])} items kept out" for name, given in sealed.items()]
    return "\n".join(lines)


def steps_table(steps: Sequence[Mapping[str, Any]], only: str | None = None) -> str:
    """One line a step: what came in, what was dropped, what went on, and what else there is to say."""
    rows: list[tuple[str, ...]] = []
    branch: object = ""
    for step in steps:
        if only is not None and step.get("sink") not in (None, only):
            continue
        if step.get("sink") != branch:
            branch = step.get("sink")
            rows.append((str(branch) if branch else "shared", "", "", "", ""))
        numbers = (count(step["entered"]), count(step["dropped"]), count(step["left"]))
        rows.append((f"  {step['label']}", *numbers, "; ".join(_notes(step))))
    return table(("step", "in", "dropped", "out", ""), rows, right=(1, 2, 3))


def _notes(step: Mapping[str, Any]) -> Iterator[str]:
    if step.get("edited"):
        yield f"{count(step['edited'])} edited"
    if step.get("replaced"):
        yield f"{count(step['replaced'])} replaced"
    if step.get("created"):
        yield f"{count(step['created'])} created"
    if step.get("failed"):
        yield f"{count(step['failed'])} could not be made"
    if step.get("predicate_null"):
        yield f"{count(step['predicate_null'])} without an answer"
    if step.get("null_key"):
        yield f"{count(step['null_key'])} without a key"
    if step.get("unmatched"):
        yield f"{count(step['unmatched'])} without a row"
    if step.get("because"):
        yield str(step["because"])


def sinks_table(sinks: Mapping[str, Any]) -> str:
    """One line a sink; below it what its own rules took out."""
    rows = [_sink_row(name, sink) for name, sink in sinks.items()]
    about = " ~" if any(not sink["exact"] for sink in sinks.values()) else ""  # an estimate
    head, *lines = table(("sink", "rows", f"tokens{about}", f"trained{about}", "dropped"), rows, right=(2, 3, 4)).split(
        "\n"
    )
    told = [head]
    for line, sink in zip(lines, sinks.values(), strict=True):
        lost = [f"{rule} {count(n)}" for part in ("dropped", "rejected") for rule, n in sink[part].items() if n]
        told += [line, *([wrapped(f"dropped: {', '.join(lost)}", "      ")] if lost else [])]
    return "\n".join(told)


def _sink_row(name: str, sink: Mapping[str, Any]) -> tuple[str, ...]:
    split = " + ".join(f"{count(n)} {part}" for part, n in sink["rows"].items()) or "0"
    lost = sum(sink["dropped"].values()) + sum(sink["rejected"].values())
    return name, split, count(sink["tokens"] or None), count(sink["trained_tokens"] or None), count(lost)


def _expectations(manifest: Mapping[str, Any]) -> str:
    lines = []
    for e in manifest["expectations"]:
        measured = f" ({e['measured']})" if e["measured"] else ""
        lines.append(f"  {'holds' if e['held'] else 'FAILS'}  {e['text']}{measured}")
    return "\n".join(lines)


def next_commands(compiled: Compiled) -> str:
    """Where everything went, and what one would ask next."""
    out = shlex.quote(str(compiled.out))
    dropping = max(compiled.manifest["steps"], key=lambda s: s["dropped"], default=None)
    lines = [f"written to {compiled.out} in {compiled.manifest['run']['seconds']:.1f} s"]
    if dropping is not None and dropping["dropped"]:
        lines.append(f"  curatec why {out} --label {dropping['label']}")
    lines += [f"  curatec show {out}", f"  curatec verify {out}"]
    return "\n".join(lines)
