"""Why a run or a turn is in each sink or not: read from the ledger, in the words of the spec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from curatec.dsl.diagnostics import CuratecError, did_you_mean
from curatec.runtime.answers.output import Made, Output
from curatec.runtime.reasons import REASONS

FACTS = (
    "source",
    "task",
    "model",
    "trial",
    "reward",
    "success",
    "outcome",
    "attempts",
    "pass_rate",
    "split",
    "record_id",
)


@dataclass(frozen=True)
class Fate:
    """What one step did with a run. `action` is passed, edited, copied (rows were made from it), dropped, replaced, or
    made (the step made this row); `turns` as in the source."""

    branch: str | None
    label: str
    text: str
    because: str | None
    action: str
    detail: str = ""
    turns: tuple[int, ...] = ()


@dataclass(frozen=True)
class SinkFate:
    """`outcome` is kept, dropped, replaced, rejected or unknown; `by` the label or rule that decided it."""

    sink: str
    outcome: str
    by: str | None
    reason: str | None
    steps: tuple[Fate, ...]
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Account:
    """All about one run, or about one row that a step made: then `parent` and `operator` say from what and how, and
    facts are those of the run at the root."""

    id: str
    facts: dict[str, Any]
    sinks: tuple[SinkFate, ...]
    parent: str | None = None
    operator: str | None = None


def account(output: Output, run: str, sinks: tuple[str, ...] = ()) -> Account:
    """What happened to a run or a made row in every sink, or in some."""
    row = output.runs.row(by_predicate=pl.col("id") == output.origin(run), named=True)
    ledger = output.ledger.filter(pl.col("traj_id") == run)
    facts = {name: row[name] for name in FACTS if row.get(name) is not None}
    fates = tuple(_sink(output, run, ledger, sink) for sink in sinks or tuple(output.sinks))
    made = output.made.get(run)
    return Account(run, facts, fates, *((made.parent, made.operator) if made is not None else ()))


def _sink(output: Output, run: str, ledger: pl.DataFrame, sink: str) -> SinkFate:
    fates: list[Fate] = []
    made = output.made.get(run)
    if made is not None and made.sink not in output.lineage_of(sink):
        return SinkFate(sink, "unknown", None, f"{made.label} of `{made.sink}` made it", ())
    for step in output.steps_of(sink):
        if made is not None and step["step"] < made.step:
            continue
        fate = _fate(output, ledger, step) if made is None or step["step"] > made.step else _birth(made, step)
        fate = _with_children(fate, output, run, step)
        fates.append(fate)
        if fate.action in ("dropped", "replaced"):
            return SinkFate(sink, fate.action, fate.label, fate.because or fate.detail, tuple(fates))
    own = ledger.filter((pl.col("sink") == sink) & pl.col("step").is_null()).to_dicts()
    examples = tuple(
        dict.fromkeys(r["example_id"] for r in own if r["action"] in ("kept", "created") and r["example_id"])
    )
    notes = tuple(_note(r) for r in own if r["action"] == "edited")
    examples = examples or tuple(output.made_from(run, sink))
    if examples:
        return SinkFate(sink, "kept", None, None, tuple(fates), examples, notes)
    lost = next((r for r in own if r["action"] in ("dropped", "rejected", "replaced")), None)
    if lost is None:
        return SinkFate(sink, "unknown", None, "the ledger says nothing of it", tuple(fates))
    rule = lost["reason"]
    told = ": ".join(filter(None, (REASONS.get(rule, rule), lost["key"])))
    return SinkFate(sink, lost["action"], rule, told, tuple(fates), notes=notes)


def _note(row: dict[str, Any]) -> str:
    told = REASONS.get(row["reason"], row["reason"] or "edited")
    return f"{told} ({row['n']})" if row["n"] else told


def _fate(output: Output, ledger: pl.DataFrame, step: dict[str, Any]) -> Fate:
    here = pl.col("sink").eq_missing(step.get("sink")) & (pl.col("step") == step["step"])
    rows = ledger.filter(here & (pl.col("label") == step["label"]))  # a sink that repeats a step has another
    whole = [r for r in rows.to_dicts() if r["turn"] is None]
    turns = tuple(sorted(rows["turn"].drop_nulls().unique()))
    parts = (step.get("sink"), step["label"], step["text"], step.get("because"))
    gone = next((r for r in whole if r["action"] in ("dropped", "replaced")), None)
    if gone is not None:
        return Fate(*parts, gone["action"], "; ".join(_details(output, gone, step)), turns)
    failed = [f"{r['n']} not made: {REASONS.get(r['reason'], r['reason'])}" for r in whole if r["action"] == "rejected"]
    if failed:
        return Fate(*parts, "passed", "; ".join(failed))
    if turns or whole:
        return Fate(*parts, "edited", _edit(rows, whole), turns)
    return Fate(*parts, "passed")


def _birth(made: Made, step: dict[str, Any]) -> Fate:
    """The step that made the row."""
    return Fate(step.get("sink"), step["label"], step["text"], step.get("because"), "made", f"from {made.parent}")


def _with_children(fate: Fate, output: Output, run: str, step: dict[str, Any]) -> Fate:
    """And what the step made of it."""
    at = (step.get("sink"), step["step"])
    ids = [id_ for id_ in output.children.get(run, ()) if (output.made[id_].sink, output.made[id_].step) == at]
    if not ids:
        return fate
    told = ", ".join(ids[:4]) + (f" and {len(ids) - 4} more" if len(ids) > 4 else "")
    action = "copied" if fate.action == "passed" else fate.action
    return replace(fate, action=action, detail="; ".join(filter(None, (f"made {told}", fate.detail))))


def _details(output: Output, row: dict[str, Any], step: dict[str, Any]) -> Iterator[str]:
    if row["survivor"]:
        yield f"{short(row['survivor'])} stands for it{_task_of(output, row['survivor'])}"
    elif row["key"]:
        yield f"for {row['key']}"
    if row["predicate_null"]:
        yield "its condition has no answer for this run (null)"
    if row["reason"] and row["reason"] != step.get("because"):
        yield REASONS.get(row["reason"], row["reason"])


def short(id_: str) -> str:
    """The beginning of a run's id; of an identical run, or a row that a step made, also what tells it from others."""
    end = re.search(r"[~#]", id_)
    return id_[:12] + (id_[end.start() :] if end else "")


def _task_of(output: Output, run: str) -> str:
    tasks = output.runs.filter(pl.col("id") == run)["task"]
    return f" (task {tasks[0]})" if len(tasks) else ""


def _edit(rows: pl.DataFrame, whole: list[dict[str, Any]]) -> str:
    removed = (
        rows.filter(pl.col("turn").is_not_null() & (pl.col("action") == "dropped"))["turn"].unique().sort().to_list()
    )
    changed = rows.filter(pl.col("turn").is_not_null() & (pl.col("action") == "edited"))
    told = [f"removed {_turns(removed)}"] if removed else []
    for key, group in changed.group_by("key", maintain_order=True):
        told.append(f"{key[0] or 'content'} of {_turns(group['turn'].unique().sort().to_list())}")
    told += [f"{r['n']} {r['key'] or 'changes'}" for r in whole if r["action"] == "edited"]
    return "; ".join(told)


def _turns(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"turn {shown}" if len(numbers) == 1 else f"turns {shown}"


# ---- by label ----


@dataclass(frozen=True)
class Label:
    """A step or a rule of a sink, and a sample of the rows that it took out, changed or made. `actions`: how many of
    each, where it did more than one thing."""

    branch: str | None
    label: str
    text: str
    because: str | None
    count: int
    sample: tuple[dict[str, Any], ...]
    actions: dict[str, int] = field(default_factory=dict)


def labelled(output: Output, label: str, sink: str | None, sample: int) -> list[Label]:
    """Every place where a label decides, with the runs of the lowest ids. Raises CuratecError (C0621)."""
    branches = output.lineage_of(sink) if sink is not None else None
    steps = [s for s in output.steps if s["label"] == label and (branches is None or s.get("sink") in branches)]
    found = [_label(output, s.get("sink"), s["step"], label, s["text"], s.get("because"), sample) for s in steps]
    names = (sink,) if sink is not None else output.sinks
    ruled = [name for name in names if label in _rules(output, name)]
    rule = f"a rule of the sink: {REASONS[label]}" if label in REASONS else "what the sink makes"
    found += [_label(output, name, None, label, rule, None, sample) for name in ruled]
    if not found:
        known = labels(output)
        help_ = did_you_mean(label, known) or (f"there are: {', '.join(known)}",)
        raise CuratecError.of("C0621", f"no step or rule of this output is called `{label}`", help=help_)
    return found


def dropping(output: Output, sink: str | None) -> list[str]:
    """Labels of the steps and rules that took anything out, in order."""
    steps = output.steps_of(sink) if sink is not None else output.steps
    names = [sink] if sink is not None else list(output.sinks)
    rules = [rule for name in names for part in ("dropped", "rejected") for rule in output.sinks[name][part]]
    return list(dict.fromkeys([*(s["label"] for s in steps if s["dropped"]), *rules]))


def _rules(output: Output, sink: str) -> list[str]:
    """Names of what a sink did itself."""
    own = output.ledger.filter((pl.col("sink") == sink) & pl.col("step").is_null())
    return sorted(own["reason"].drop_nulls().unique())


def labels(output: Output) -> list[str]:
    rules = [rule for sink in output.sinks for rule in _rules(output, sink)]
    return list(dict.fromkeys([*(s["label"] for s in output.steps), *rules]))


def _label(
    output: Output, branch: str | None, step: int | None, label: str, text: str, because: str | None, sample: int
) -> Label:
    place = pl.col("sink").eq_missing(branch)
    by = "label" if step is not None else "reason"
    own = pl.col("step").eq_missing(pl.lit(step)) & (pl.col(by) == label)
    rows = output.ledger.filter(place & own & (pl.col("action") != "kept"))
    gone = rows.filter(pl.col("turn").is_null() & (pl.col("action") != "edited"))
    rows = gone if gone.height else rows
    ids = rows["traj_id"].unique().sort()
    chosen = rows.filter(pl.col("traj_id").is_in(ids.head(sample).implode())).unique(
        "traj_id", keep="first", maintain_order=True
    )
    known = output.runs.select("id", *(c for c in FACTS if c in output.runs.columns and c != "reason"))
    parents = output.lineage.sort("ordinal").group_by("out", maintain_order=True).agg(parents=pl.col("in"))
    chosen = chosen.join(parents, left_on="traj_id", right_on="out", how="left", maintain_order="left")
    chosen = chosen.with_columns(pl.Series("home", map(output.origin, chosen["traj_id"]), dtype=pl.String))
    shown = chosen.join(known, left_on="home", right_on="id", how="left", maintain_order="left")
    keep = [
        "traj_id",
        "action",
        "reason",
        "key",
        "survivor",
        "predicate_null",
        "n",
        "parents",
        *(c for c in FACTS if c in shown.columns),
    ]
    actions = {}
    for action, n, made in rows.group_by("action").agg(pl.col("traj_id").n_unique(), pl.col("n").sum()).iter_rows():
        actions[action] = made if action == "rejected" and step is not None else n
    return Label(
        branch, label, text, because, len(ids), tuple(shown.select(keep).to_dicts()), dict(sorted(actions.items()))
    )
