"""What `curatec why` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from curatec.runtime.answers.why import short
from curatec.runtime.cli.console import table, wrapped
from curatec.runtime.cli.summary import sinks_table, steps_table

if TYPE_CHECKING:
    from curatec.runtime.answers.lookup import Found
    from curatec.runtime.answers.output import Output
    from curatec.runtime.answers.why import Account, Fate, Label, SinkFate
    from curatec.runtime.answers.why_turn import TurnFate


def overview(output: Output, steps: list[dict[str, Any]], sinks: Mapping[str, Any]) -> Iterator[str]:
    yield f"{output.root}: strategy {output.manifest['strategy']}"
    yield ""
    yield steps_table(steps)
    yield ""
    yield sinks_table(sinks)
    yield ""
    yield f"One step: `curatec why {output.root} --label LABEL`. One run: `curatec why {output.root} ID`."


def reject(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['file']}:{found['line']} could not be read (source {found['source']})"
    yield f"  {found['reason']}"
    yield ""
    yield wrapped(str(found["raw"])[:400])


def accounts(found: Found, told: Sequence[Account]) -> Iterator[str]:
    if found.example is not None and found.runs != (found.example,):
        yield f"{found.example} of {', '.join(found.sinks)} is made from:"
        yield ""
    for number, one in enumerate(told):
        if number:
            yield ""
        yield from account(one)
    if len(found.runs) > len(told):
        yield f"and {len(found.runs) - len(told)} more runs: `--sample N` shows more"


def account(told: Account) -> Iterator[str]:
    """The run, then the shared steps once, then each sink with its own steps."""
    yield f"run {told.id}" if told.parent is None else f"row {told.id}, made from {told.parent} by {told.operator}"
    yield wrapped(_facts(told.facts))
    shared = [fate for fate in told.sinks[0].steps if fate.branch is None] if told.sinks else []
    if shared:
        yield ""
        yield "shared"
        yield from _steps(shared)
    if shared and shared[-1].action in ("dropped", "replaced"):
        yield f"→ {shared[-1].action} by {shared[-1].label}, so it is in no sink"
        return
    for sink in told.sinks:
        yield ""
        yield sink.sink
        yield from _steps([fate for fate in sink.steps if fate.branch is not None])
        yield wrapped(_outcome(sink), "")


def _facts(facts: Mapping[str, Any]) -> str:
    words = []
    for name, value in facts.items():
        shown = (
            f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
        )
        words.append(f"{name} {shown}")
    return " · ".join(words)


def _steps(fates: Sequence[Fate]) -> Iterator[str]:
    rows = [(fate.label, fate.action, fate.detail) for fate in fates]
    if rows:
        yield "\n".join(table(("", "", ""), rows).split("\n")[1:])
    last = fates[-1] if fates else None
    if last is not None and last.action in ("dropped", "replaced"):
        yield wrapped(last.text, "    ")
        if last.because:
            yield wrapped(f"because {last.because}", "    ")


def _outcome(fate: SinkFate) -> str:
    notes = f" ({'; '.join(fate.notes)})" if fate.notes else ""
    if fate.outcome == "kept":
        return f"→ kept as {', '.join(fate.examples[:4])}{' …' if len(fate.examples) > 4 else ''}{notes}"
    if fate.outcome == "unknown":
        return f"→ {fate.reason}"
    reason = f": {fate.reason}" if fate.reason and fate.reason != fate.by else ""
    return f"→ {fate.outcome} by {fate.by}{reason}"


def turns(fates: Mapping[str, Sequence[TurnFate]], number: int) -> Iterator[str]:
    for run, own in fates.items():
        yield f"turn {number} of run {run}"
        for fate in own:
            verdict = {True: "trained", False: "not trained", None: "-"}[fate.trained]
            yield ""
            yield wrapped(
                f"{fate.sink}: {verdict}: {fate.because}"
                if fate.trained is not None
                else f"{fate.sink}: {fate.because}",
                "",
            )
            for edit in fate.edits:
                done = "removed" if edit.action == "dropped" else f"{edit.detail or edit.action} changed"
                yield f"  {edit.label}: {done}"
                yield wrapped(edit.text, "    ")


def labels(found: Sequence[Label]) -> Iterator[str]:
    for number, one in enumerate(found):
        if number:
            yield ""
        yield f"{one.label} ({one.branch or 'shared'}): {_counted(one)}"
        yield wrapped(one.text)
        if one.because:
            yield wrapped(f"because {one.because}")
        rows = [
            (short(r["traj_id"]), str(r.get("task") or "-"), str(r.get("outcome") or "-"), _about(r))
            for r in one.sample
        ]
        if rows:
            yield ""
            yield table(("run", "task", "outcome", ""), rows)
        if one.count > len(one.sample):
            yield f"  and {one.count - len(one.sample):,} more"


def _counted(one: Label) -> str:
    """How many it is about; what happened to them, where that is more than one thing or not a loss."""
    words = {"rejected": "not made"} if one.actions.get("created") or "replaced" in one.actions else {}
    if set(one.actions) <= {"dropped"} or set(one.actions) in ({"edited"}, {"rejected"}):
        return f"{one.count:,} {'run' if one.count == 1 else 'runs'}"
    return ", ".join(f"{n:,} {words.get(action, action)}" for action, n in one.actions.items())


def _about(row: Mapping[str, Any]) -> str:
    if row["survivor"]:
        return f"{short(row['survivor'])} stands for it"
    if row["action"] == "created":
        return f"made from {' and '.join(map(short, row['parents']))}"
    if row["action"] == "replaced":
        return f"replaced by {row['n']:,} {'row' if row['n'] == 1 else 'rows'}"
    if row["action"] == "rejected":
        return f"not made: {row['reason']}" if row["n"] else str(row["key"] or row["reason"])
    if row["predicate_null"]:
        return "no answer (null)"
    return str(row["key"] or "")
