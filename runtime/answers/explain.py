"""How a spec will be run: its logical plan in words, and in which step which turns are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from curatec.compiler import plan
from curatec.compiler.content import TRAJECTORY_CONTENT
from curatec.compiler.core import Core, columns
from curatec.compiler.fields import TRAJECTORY
from curatec.compiler.passes.projection import along, turn_columns_of
from curatec.compiler.types import Level
from curatec.runtime.answers.core_text import core_text, list_text
from curatec.runtime.answers.lowered import lowered
from curatec.runtime.answers.operation_text import context_text, says
from curatec.runtime.execute import expressions, until_edit
from curatec.runtime.state import measures
from curatec.runtime.way import edits_turns


def as_data(whole: plan.Plan, engine: str | None = None) -> dict[str, Any]:
    """The plan as JSON-ready data: sources, branches with steps, what each step measures, and what an engine runs."""
    branches = [_branch(whole, None, engine)]
    branches += [_branch(whole, branch, engine) for branch in (*whole.stages, *whole.sinks)]
    return {
        "strategy": whole.strategy,
        "plan_digest": plan.digest(whole),
        "params": dict(whole.params),
        "sources": [_source(corpus) for corpus in whole.corpora],
        "tables": [{"name": t.name, "path": list(t.path), "key": t.key} for t in whole.tables],
        "test_sets": [{"name": t.name, "path": list(t.path)} for t in whole.sealed],
        "branches": branches,
        "expectations": [e.text for e in whole.expectations],
    }


def _source(corpus: plan.Corpus) -> dict[str, Any]:
    settings: dict[str, str] = {}
    for name in (
        "format",
        "tools_from",
        "system_from",
        "domain",
        "domain_from_path",
        "model",
        "model_from_path",
        "license",
    ):
        if (value := getattr(corpus, name)) is not None:
            settings[name.replace("_", " ")] = value
    for name in ("error_when", "success_when"):
        if (core := getattr(corpus, name)) is not None:
            settings[name.replace("_", " ")] = core_text(core, Level.TURN if name == "error_when" else Level.TRAJECTORY)
    return {"name": corpus.name, "path": list(corpus.path), "settings": settings}


def _branch(whole: plan.Plan, branch: plan.Branch | None, engine: str | None) -> dict[str, Any]:
    steps = whole.shared if branch is None else branch.steps
    later = [c for b in (*whole.stages, *whole.sinks) for c in until_edit(b.steps)] if branch is None else []
    known = set() if branch is None else _known_before(whole, branch)
    rows = _columns_before(whole, branch)
    shown = [_step(step, measured, engine) for step, measured in _walk(steps, later, known, rows)]
    target = None if branch is None else branch.target
    return {
        "name": None if branch is None else branch.name,
        "kind": "shared"
        if branch is None
        else "stage"
        if branch.target is None
        else type(branch.target).__name__.lower(),
        "from": None if branch is None else branch.base,
        "steps": shown,
        "settings": {} if target is None else settings(target),
        **({} if engine is None or target is None else {"runs": _runs(target, (), known, engine)}),
    }


def _runs(
    what: plan.Operation | plan.Target, measured: Sequence[Core], known: Collection[Core], engine: str
) -> list[dict[str, str]]:
    return [{"purpose": piece.purpose, "text": piece.text} for piece in lowered(what, measured, known, engine)]


def _step(step: plan.Step, measured: _Read, engine: str | None) -> dict[str, Any]:
    return {
        "label": step.label,
        "says": says(step.operation),
        "because": step.because,
        "reads_turns": measured.turns,
        "writes_turns": edits_turns(step) and not isinstance(step.operation, plan.Render),
        "measures": [core_text(core) for core in measured.cores],
        **({} if engine is None else {"runs": _runs(step.operation, measured.cores, measured.known, engine)}),
    }


# ---- which pass reads what ----


@dataclass(frozen=True)
class _Read:
    """What a step has to read from turns; expressions of later steps that are measured in the same pass count."""

    turns: bool
    cores: tuple[Core, ...]
    known: frozenset[Core]  # with what steps before measured


def _walk(
    steps: Sequence[plan.Step], later: Sequence[Core], known: set[Core], rows: set[str]
) -> Iterator[tuple[plan.Step, _Read]]:
    """The same rule as `State.measured`: a pass takes along what later steps need and can be computed already.

    `known` and `rows` grow while it goes.
    """
    for i, step in enumerate(steps):
        rest = steps[i + 1 :]
        whole = edits_turns(step) or isinstance(step.operation, (plan.ToolsFilter, plan.Decontaminate, plan.Mix))
        asked = until_edit([step]) if isinstance(step.operation, plan.Filter) else expressions(step.operation)
        own = [] if whole else [m for core in asked for m in measures(core) if m not in known]
        if own:
            ahead = [*until_edit(rest), *(later if not any(edits_turns(s) for s in rest) else ())]
            able = [m for core in ahead for m in measures(core) if m not in known and _computable(m, rows)]
            own += along(able, turn_columns_of(own))
            own = list(dict.fromkeys(own))
            known.update(own)
        reads = (whole and not isinstance(step.operation, plan.Render)) or bool(own)
        yield step, _Read(reads, tuple(own), frozenset(known))
        if edits_turns(step):
            known.clear()
        rows.update(_adds(step))


def _adds(step: plan.Step) -> set[str]:
    match step.operation:
        case plan.Derive(name=name):
            return {name}
        case plan.Tag():
            return {"failure"}
        case plan.Split():
            return {"split"}
    return set()


def _computable(core: Core, rows: set[str]) -> bool:
    return all(name in rows or name in TRAJECTORY_CONTENT for name in columns(core, Level.TRAJECTORY))


def _known_before(whole: plan.Plan, branch: plan.Branch) -> set[Core]:
    known: set[Core] = set()
    rows = _columns_before(whole, None)
    later = [c for b in (*whole.stages, *whole.sinks) for c in until_edit(b.steps)]
    for _ in _walk(whole.shared, later, known, rows):
        pass
    for base in whole.lineage(branch)[:-1]:
        for _ in _walk(base.steps, (), known, rows):
            pass
    return known


def _columns_before(whole: plan.Plan, branch: plan.Branch | None) -> set[str]:
    names = {field.name for field in TRAJECTORY.values() if field.kind == "fact"}
    before = [] if branch is None else [*whole.shared, *(s for b in whole.lineage(branch)[:-1] for s in b.steps)]
    return names.union(*(_adds(step) for step in before))


# ---- sinks in words ----


def settings(target: plan.Target) -> dict[str, str]:
    """What a sink is told, as text by name; what was not said and is nothing is left out."""
    match target:
        case plan.Sft():
            found = {"loss": _loss(target.loss), **_plain(target, "format", "reasoning")}
            if target.fit_tokens is not None:
                how = {"cut": "cut oldest exchange"}.get(target.overflow, target.overflow)
                found["fit"] = f"{target.fit_tokens} tokens else {how}"
            if target.context is not None:
                found["context"] = context_text(target.context)
            return found
        case plan.Rl():
            reward = " + ".join(f"{weight:g} * {name}" for name, weight in target.reward)
            return {"prompt": f"until {target.prompt} assistant", "reward": reward, **_plain(target, "group", "format")}
        case plan.Memory():
            return {"key": core_text(target.key), "value": core_text(target.value), **_plain(target, "method", "top")}
        case plan.Preference():
            found = {
                "within": list_text(target.within),
                "chosen": core_text(target.chosen),
                "rejected": core_text(target.rejected),
            }
            if target.margin is not None:
                found["margin"] = f"{core_text(target.margin)} >= {target.margin_at_least}"
            if target.max_pairs is not None:
                found["max"] = f"{target.max_pairs} per {list_text(target.max_per)}"
            return {**found, **_plain(target, "from_difference", "length_ratio", "format")}


def _plain(target: plan.Target, *names: str) -> dict[str, str]:
    """Settings by name; a flag that is off is left out."""
    found = {name.replace("_", " "): getattr(target, name) for name in names}
    return {name: "yes" if value is True else str(value) for name, value in found.items() if value not in (None, False)}


def _loss(loss: plan.Loss) -> str:
    words = ["on assistant"]
    words += ["except reasoning"] if loss.except_reasoning else []
    words += ["only last"] if loss.only_last else []
    words += ["including edited"] if loss.including_edited else []
    words += [f"where {core_text(loss.where, Level.TURN)}"] if loss.where is not None else []
    words += [f"weight {core_text(loss.weight, Level.TURN)}"] if loss.weight is not None else []
    return " ".join(words)
