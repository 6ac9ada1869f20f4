"""What the tests of semantics share: specs on disk run on the public path, expressions checked and evaluated."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import HealthCheck, Phase, settings

from curatec.compiler.check.expr import ExprChecker, Report, read_json
from curatec.compiler.check.program import check
from curatec.compiler.check.scope import Scope
from curatec.compiler.core import Core
from curatec.compiler.load import load
from curatec.compiler.passes import optimise
from curatec.compiler.plan import Plan
from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.dsl.parse import parse
from curatec.runtime.cache import Cache
from curatec.runtime.execute import Executed, execute, sorted_rows
from curatec.runtime.inputs import read_inputs
from curatec.runtime.side import read_side
from curatec.runtime.state import State

Record = dict[str, Any]


def quick(share: float = 1.0) -> settings:
    """The same examples each time; EXAMPLES=1000 looks further. Shrinking would take minutes, so it is left out."""
    return settings(
        max_examples=round(int(os.environ.get("EXAMPLES", "80")) * share),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )


def expression(text: str) -> ast.Expr:
    """The AST of one expression."""
    parsed = parse(f"curate 1\nstrategy s {{ from t derive x = {text} }}")
    assert parsed.ok, (text, [d.message for d in parsed.diagnostics])
    strategy = next(d for d in parsed.file.declarations if isinstance(d, ast.Strategy))
    return next(step.value for step in strategy.body if isinstance(step, ast.Derive))


def core(text: str, level: Level = Level.TRAJECTORY) -> Core:
    """A checked expression; it must be free of errors."""
    problems: list[Diagnostic] = []
    report: Report = problems.append
    made = read_json(ExprChecker(report, Scope(tagged=True).at(level)).check(expression(text)), Type.TEXT)
    assert not problems, (text, [d.message for d in problems])
    return made


def plain(values: pl.Series) -> list[Any]:
    """Values as the reference has them: times as microseconds."""
    if isinstance(values.dtype, pl.Datetime):
        values = values.dt.epoch("us")
    return [v.to_list() if isinstance(v, pl.Series) else v for v in values.to_list()]


# ---- the public path ----

USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "done"}


def record(*messages: Record, **facts: Any) -> Record:
    """One record of the chat format."""
    return {"messages": list(messages) or [USER, SAID], **facts}


def call(name: str, args: Any = None, id: str = "1", content: str | None = None) -> Record:
    text = args if isinstance(args, str) else json.dumps(args or {}, ensure_ascii=False)
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": text}}],
    }


def result(content: str, id: str = "1", **more: Any) -> Record:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


class Bench:
    """A folder with a spec and its files; `run` goes all the way from text to rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".git").mkdir(exist_ok=True)

    def write(self, name: str, records: Sequence[Record]) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
        return path

    def spec(self, body: str, *, source: str = 'path "a.jsonl" format openai', before: str = "", sink: str = "") -> str:
        """A strategy over the source `t` with one sft sink."""
        head = f"curate 1\nsource t {{ {source} }}\n{before}\n"
        return f"{head}strategy s {{\n  from t\n  {body}\n  emit sft {{ {sink} }}\n}}\n"

    def diagnostics(self, text: str, given: dict[str, str] | None = None) -> list[Diagnostic]:
        (self.folder / "s.curate").write_text(text, encoding="utf-8")
        return list(check(load(str(self.folder / "s.curate")), given).diagnostics)

    def codes(self, text: str, given: dict[str, str] | None = None) -> list[str]:
        """Codes of the errors that `check` finds."""
        return [d.code for d in self.diagnostics(text, given) if d.severity == "error"]

    def plan(self, text: str, given: dict[str, str] | None = None) -> Plan:
        (self.folder / "s.curate").write_text(text, encoding="utf-8")
        checked = check(load(str(self.folder / "s.curate")), given)
        errors = [d for d in checked.diagnostics if d.severity == "error"]
        assert not errors, [(d.code, d.message) for d in errors]
        return optimise(checked.plan(None))

    def execute(self, text: str, *, limit: int | None = None, given: dict[str, str] | None = None) -> Executed:
        made = self.plan(text, given)
        inputs = read_inputs(made.corpora, self.folder, (), Cache(self.folder / "cache"))
        scratch = self.folder / f"scratch-{len(list(self.folder.iterdir()))}"
        scratch.mkdir()
        return execute(made, inputs, scratch, side=read_side(made, self.folder, ()), limit=limit)

    def run(self, body: str, records: Sequence[Record], **more: Any) -> Executed:
        self.write("a.jsonl", records)
        return self.execute(self.spec(body, **more))

    def values(self, text: str, records: Sequence[Record], **more: Any) -> list[Any]:
        """One expression for each record."""
        done = self.run(f"x: derive x_ = {text}", records, **more)
        return plain(done.shared.rows["x_"])

    def kept(self, body: str, records: Sequence[Record], name: str = "record_id", **more: Any) -> list[Any]:
        """What is left after shared steps, by a fact."""
        return sorted_rows(self.run(body, records, **more).shared)[name].to_list()

    def fails(self, body: str, records: Sequence[Record], **more: Any) -> list[str]:
        """Codes with which running fails."""
        try:
            self.run(body, records, **more)
        except CuratecError as error:
            return [d.code for d in error.diagnostics]
        return []


def turns_now(state: State) -> dict[str, list[Record]]:
    """The turns of each trajectory by id, as they are at a state."""
    found: dict[str, list[Record]] = {name: [] for name in state.rows["id"]}
    for _, frames in state.batches():
        ids = frames.runs["id"].gather(frames.turns["run"])
        for name, turn in zip(ids, frames.turns.iter_rows(named=True), strict=True):
            found[name].append(turn)
    return found
