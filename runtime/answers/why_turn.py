"""What was done to one turn, whether its text is trained, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from curatec.runtime.answers.output import Output
from curatec.runtime.answers.why import Fate, SinkFate, account


@dataclass(frozen=True)
class TurnFate:
    """What was done to one turn in a sink's rows. `trained` is None where the sink trains nothing or has no row."""

    sink: str
    edits: tuple[Fate, ...]
    trained: bool | None
    because: str


def turn(output: Output, run: str, number: int, sinks: tuple[str, ...] = ()) -> list[TurnFate]:
    """What happened to a turn, numbered as in the source, and whether its text is trained."""
    found = account(output, run, sinks)
    ledger = output.ledger.filter((pl.col("traj_id") == run) & (pl.col("turn") == number))
    return [_turn(output, ledger, fate, number) for fate in found.sinks]


def _turn(output: Output, ledger: pl.DataFrame, fate: SinkFate, number: int) -> TurnFate:
    edits = tuple(f for step in output.steps_of(fate.sink) if (f := _turn_edit(ledger, step)) is not None)
    if fate.outcome != "kept":
        return TurnFate(
            fate.sink,
            edits,
            None,
            f"the run is {fate.outcome} by {fate.by}" if fate.by else "the run is not in this sink",
        )
    removed = next((f for f in edits if f.action == "dropped"), None)
    if removed is not None:
        return TurnFate(fate.sink, edits, False, f"{removed.label} removed it")
    if output.kind(fate.sink) != "sft":
        return TurnFate(fate.sink, edits, None, "only an sft sink trains turns")
    trained, because = _trained(output, fate, number, edits)
    return TurnFate(fate.sink, edits, trained, because)


def _turn_edit(ledger: pl.DataFrame, step: dict[str, Any]) -> Fate | None:
    rows = ledger.filter(pl.col("sink").eq_missing(step.get("sink")) & (pl.col("step") == step["step"]))
    if rows.is_empty():
        return None
    row = rows.row(0, named=True)
    return Fate(
        step.get("sink"),
        step["label"],
        step["text"],
        step.get("because"),
        row["action"],
        row["key"] or "",
        (row["turn"],),
    )


def _trained(output: Output, fate: SinkFate, number: int, edits: tuple[Fate, ...]) -> tuple[bool | None, str]:
    found = output.row(fate.sink, fate.examples[0])
    if found is None:
        return None, "its row is missing: `curatec verify` says more"
    _, row = found
    at = row["turns"].index(number) if number in row["turns"] else None
    if at is None:
        cut = "; ".join(fate.notes)
        return False, f"it is not in the row{f': {cut}' if cut else ': an event, a hidden call, or no such turn'}"
    spans = [span for span in row["trained"] if span["message"] == at]
    if spans:
        return True, f"message {at} carries loss: {', '.join(sorted({s['part'] for s in spans}))}"
    return False, _untrained(output, fate.sink, row, at, edits)


def _untrained(output: Output, sink: str, row: dict[str, Any], at: int, edits: tuple[Fate, ...]) -> str:
    role = orjson.loads(row["messages"][at])["role"]
    if role != "assistant":
        return f"a {role} turn: loss is on assistant turns only"
    if edits:
        return f"{edits[-1].label} altered it; a text that no model wrote carries no loss"
    rule = loss_statement(output, sink)
    return f"`{rule}` is not true of it, or it is copied context" if rule else "its weight is 0"


def loss_statement(output: Output, sink: str) -> str | None:
    """The sink's `loss` line as the spec writes it."""
    from curatec.dsl import ast
    from curatec.dsl.parse import parse

    parsed = parse(output.manifest["spec"]["text"], "spec")
    for declaration in parsed.file.declarations:
        if isinstance(declaration, ast.Strategy) and declaration.name.name == output.manifest["strategy"]:
            for node in declaration.walk():
                if isinstance(node, ast.Sink) and node.name.name == sink:
                    return next(
                        (_one_line(parsed.source.excerpt(s.span)) for s in node.settings if isinstance(s, ast.Loss)),
                        None,
                    )
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split())
