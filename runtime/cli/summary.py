"""What a compile did, on one screen."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from curatec.runtime.cli.console import count, table, width, wrapped

if TYPE_CHECKING:
    from curatec.runtime.compile import Compiled


def summary(manifest: Mapping[str, Any]) -> str:
    """Sources, steps, sinks and expectations of a manifest."""
    parts = [
        _sources(manifest),
        steps_table(manifest["steps"]),
        sinks_table(manifest["sinks"]),
        _expectations(manifest),
        _cached(manifest),
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
    lines += [f"  test set {name}: {_items(given['records'])} kept out" for name, given in sealed.items()]
    if manifest["render"] is not None:
        lines.append(f"  tokens of {manifest['render']['tokenizer']}")
    return "\n".join(lines)


def _items(number: int) -> str:
    return f"{count(number)} {'item' if number == 1 else 'items'}"


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
    if step.get("again"):
        yield "once more, for what was made or changed since"
    elif step.get("because"):
        yield str(step["because"])


def sinks_table(sinks: Mapping[str, Any]) -> str:
    """One line a sink; below it what it made of rows, and what its own rules took out."""
    splits = {name: _splits(sink) for name, sink in sinks.items()}
    head, *lines = _sink_lines(sinks, splits)
    below = max(map(len, (head, *lines))) > width()  # numbers are too wide: splits stand below
    if below:
        totals = {name: count(sum(sink["rows"].values())) for name, sink in sinks.items()}
        head, *lines = _sink_lines(sinks, totals)
    told = [head]
    for line, (name, sink) in zip(lines, sinks.items(), strict=True):
        lost = [f"{rule} {count(n)}" for part in ("dropped", "rejected") for rule, n in sink[part].items() if n]
        more = [splits[name]] if below and sink["rows"] else []
        if sink["created"]:
            more.append(f"made: {count(sink['created'])} from {count(sink['replaced'])}")
        more += [f"dropped: {', '.join(lost)}"] if lost else []
        told += [line, *(wrapped(text, "      ") for text in more)]
    return "\n".join(told)


def _sink_lines(sinks: Mapping[str, Any], rows: Mapping[str, str]) -> list[str]:
    """The head, and one line for each sink."""
    about = " ~" if any(not sink["exact"] for sink in sinks.values()) else ""  # an estimate
    heads = ("sink", "rows", f"tokens{about}", f"trained{about}", "dropped")
    cells = []
    for name, sink in sinks.items():
        lost = sum(sink["dropped"].values()) + sum(sink["rejected"].values())
        tokens = (count(sink["tokens"] or None), count(sink["trained_tokens"] or None))
        cells.append((name, rows[name], *tokens, count(lost)))
    return table(heads, cells, right=(2, 3, 4)).split("\n")


def _splits(sink: Mapping[str, Any]) -> str:
    return " + ".join(f"{count(n)} {part}" for part, n in sink["rows"].items()) or "0"


def _expectations(manifest: Mapping[str, Any]) -> str:
    lines = []
    for e in manifest["expectations"]:
        measured = f" ({e['measured']})" if e["measured"] else ""
        lines.append(f"  {'holds' if e['held'] else 'FAILS'}  {e['text']}{measured}")
    return "\n".join(lines)


def _cached(manifest: Mapping[str, Any]) -> str:
    """How much was not computed again, and by name what was."""
    kept = manifest["run"].get("cached")
    if kept is None or not (kept["steps"] or kept["sinks"]):
        return ""
    held = {tuple(step) for step in kept["steps"]}
    steps = [step["label"] for step in manifest["steps"] if (step.get("sink"), step["label"]) not in held]
    sinks = [name for name in manifest["sinks"] if name not in kept["sinks"]]
    ran = ", ".join([*steps, *(f"sink {name}" for name in sinks)])
    n_steps, n_sinks = len(manifest["steps"]), len(manifest["sinks"])
    told = f"{n_steps - len(steps)} of {n_steps} steps, {n_sinks - len(sinks)} of {n_sinks} sinks"
    return wrapped(f"from the cache: {told}" + (f"; ran: {ran}" if ran else ""))


def next_commands(compiled: Compiled) -> str:
    """Where everything went, and what one would ask next."""
    out = shlex.quote(str(compiled.out))
    lines = [f"written to {compiled.out} in {compiled.manifest['run']['seconds']:.1f} s"]
    most = [_most(compiled.manifest["steps"], what) for what in ("dropped", "created")]
    lines += [f"  curatec why {out} --label {label}" for label in dict.fromkeys(most) if label is not None]
    lines.append(f"  curatec show {out}{' --tokens' if _hold_tokens(compiled.manifest) else ''}")
    lines.append(f"  curatec verify {out}")
    return "\n".join(lines)


def _most(steps: Sequence[Mapping[str, Any]], what: str) -> str | None:
    """The label of the step that did the most of something."""
    found = max(steps, key=lambda step: int(step[what]), default=None)
    return str(found["label"]) if found is not None and found[what] else None


def _hold_tokens(manifest: Mapping[str, Any]) -> bool:
    """Whether the first row that `show` shows holds tokens."""
    first = next((branch for branch in manifest["branches"] if branch["name"] in manifest["sinks"]), None)
    return (
        manifest["render"] is not None
        and first is not None
        and first["kind"] == "sft"
        and first["format"] in ("trl", "openai")
    )
