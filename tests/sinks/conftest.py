"""Runs, a small spec and the sinks, for tests: `made(records, strategy)` → what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow.parquet as pq
import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.passes import optimise
from curatec.runtime import sinks
from curatec.runtime.cache import Cache
from curatec.runtime.execute import Executed, execute
from curatec.runtime.inputs import read_inputs
from curatec.runtime.sinks.written import Written
from curatec.runtime.steps.render import read_renderer
from tests.parts import apart

Record = dict[str, Any]
ACCOUNTED = ["kept", "dropped", "rejected", "replaced"]


@dataclass(frozen=True)
class Made:
    """What a spec's sinks left behind."""

    out: Path
    executed: Executed
    written: dict[str, Written]

    def rows(self, sink: str, split: str = "train") -> list[Record]:
        """Rows as JSON lines give them."""
        return [orjson.loads(line) for line in (self.out / sink / f"{split}.jsonl").read_bytes().splitlines()]

    def texts(self, sink: str, split: str = "train") -> list[Record]:
        """Rows as parquet has them: messages as JSON texts."""
        found: list[Record] = pq.read_table(self.out / sink / f"{split}.parquet").to_pylist()
        return found

    def ledger(self, sink: str) -> pl.DataFrame:
        """The rows that the sink's own rules made."""
        return self.executed.ledger.table().filter((pl.col("sink") == sink) & pl.col("step").is_null())

    def reasons(self, sink: str) -> dict[str, str]:
        """id → why it was dropped or rejected."""
        lost = self.ledger(sink).filter(pl.col("action").is_in(["dropped", "rejected"]))
        return dict(lost.select("traj_id", "reason").iter_rows())

    def conserved(self, sink: str) -> None:
        """Every trajectory that entered, and every row that the sink made, is accounted for exactly once."""
        made = self.ledger(sink).filter(action="created")["traj_id"].to_list()
        entered = sorted([*self.executed.ends[sink].rows["id"], *made])
        there = self.ledger(sink).filter(pl.col("action").is_in(ACCOUNTED))
        assert sorted(there["traj_id"]) == entered

    def task(self, sink: str, task_id: str) -> Record:
        return next(row for row in self.rows(sink) if row["task"].endswith(f"/{task_id}"))


Make = Callable[..., Made]


def files_of(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def write_jsonl(path: Path, records: Sequence[Record | str]) -> None:
    """Records as lines; a text is a line as it is."""
    lines = [r if isinstance(r, str) else orjson.dumps(r).decode() for r in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def conversed(folder: Path, records: Sequence[Record | str], body: str, *, files: int = 1, source: str = "") -> Made:
    """The records in so many files below a new folder, through `strategy s { from runs body }`."""
    for i in range(files):
        write_jsonl(folder / f"runs-{i}.jsonl", records[i::files])
    text = f'curate 1\nsource runs {{ path "runs-*.jsonl" {source} }}\nstrategy s {{ from runs {body} }}\n'
    program = load_text(text, "spec.curate", folder)
    checked = check(program, {})
    assert checked.ok, checked.diagnostics
    whole = optimise(checked.plan(None))
    inputs = read_inputs(whole.corpora, folder, (), Cache(folder.parent / "cache"))
    (folder / "scratch").mkdir()
    executed = execute(whole, inputs, folder / "scratch", renderer=read_renderer(whole, folder, ()))
    out = folder / "out"
    out.mkdir()
    return Made(out, executed, {branch.name: sinks.write(executed, branch, out) for branch in whole.sinks})


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """`made(records, body, name=…, files=…)`: `conversed` in a folder of that name."""

    def run(records: Sequence[Record | str], body: str, *, name: str = "a", files: int = 1, source: str = "") -> Made:
        return conversed(tmp_path / name, records, body, files=files, source=source)

    return run


# ---- runs ----


def system(text: str = "Be kind.") -> Record:
    return {"role": "system", "content": text}


def user(text: str) -> Record:
    return {"role": "user", "content": text}


def says(text: str | None, **more: Any) -> Record:
    return {"role": "assistant", "content": text, **more}


def calls(*made: tuple[str | None, str, Any], text: str | None = None, **more: Any) -> Record:
    """An assistant message with calls (id, name, arguments)."""
    listed = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in made]
    return {"role": "assistant", "content": text, "tool_calls": listed, **more}


def result(id_: str | None, text: str = "ok", **more: Any) -> Record:
    return {"role": "tool", "tool_call_id": id_, "content": text, **more}


def run(task: str, *messages: Record, **facts: Any) -> Record:
    return {"task_id": task, "messages": list(messages), **facts}


def schema(name: str, **properties: str) -> Record:
    """A tool whose parameters have these types."""
    typed = {key: {"type": kind} for key, kind in properties.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": typed}}}


TOOLS = [schema("find", id="integer"), schema("cancel", order="string", force="boolean")]


def span_text(message: str, span: Record) -> str:
    """The text that a span names, read from the message's JSON text as parquet has it."""
    value = orjson.loads(message)
    if span["part"] == "call":
        start = message.index('"function":', message.index('"tool_calls"'))
        for _ in range(span["call"]):
            start = message.index('"function":{', start + 1)
        text = message[start + len('"function":') :]
    else:
        text = value["content" if span["part"] == "content" else "reasoning_content"]
    return text[span["start"] : span["end"]]


def trained_texts(row: Record) -> list[tuple[int, str, str]]:
    """(message, part, text) of each span of a row from parquet."""
    return [(s["message"], s["part"], span_text(row["messages"][s["message"]], s)) for s in row["trained"]]


@pytest.fixture(scope="module", params=["together", "apart"])
def parts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Parts put together in memory, then apart and on disk."""
    with apart(kept=4096) if request.param == "apart" else nullcontext():
        yield
