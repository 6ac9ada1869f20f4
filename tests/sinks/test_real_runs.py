"""Real tau-bench and tau2 runs through every sink."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.passes import optimise
from curatec.runtime import sinks
from curatec.runtime.cache import Cache
from curatec.runtime.conversation.training import Lost, Trainable
from curatec.runtime.execute import Executed, execute
from curatec.runtime.inputs import read_inputs
from curatec.runtime.ledger import Ledger
from curatec.runtime.sinks import sft, sft_rows

from .conftest import Made, files_of, span_text

DATA = Path(os.environ.get("CURATEC_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.exists(), reason="the collected runs are not there")]

SOURCES = f"""curate 1
source tau {{
  path "{DATA}/tau_bench/sierra/historical_trajectories/*.json", "{DATA}/tau_bench/variants/*.json"
  format tau_bench
  domain from path r"(airline|retail)"
}}
source tau2 {{ path "{DATA}/tau2_bench/**/trajectories/*.json" }}
"""
SPEC = (
    SOURCES
    + """strategy s {
  from tau, tau2
  split by task { train 80% validation 20% } seed 7
  emit sft { loss on assistant except reasoning where none(calls where is_error) FORM }
  emit rl { prompt until last assistant FORM }
  emit memory { key task_text value final_answer }
  emit preference { pair within task chosen where success rejected where not success max 4 per task FORM }
}
"""
)


def _executed(folder: Path, text: str) -> Executed:
    program = load_text(text, "real.curate", folder, (DATA,))
    checked = check(program, {}, (DATA,))
    assert checked.ok, checked.diagnostics
    whole = optimise(checked.plan(None))
    inputs = read_inputs(whole.corpora, folder, (DATA,), Cache(folder / "cache"))
    (folder / "scratch").mkdir()
    return execute(whole, inputs, folder / "scratch")


def _made(executed: Executed, out: Path) -> Made:
    out.mkdir()
    return Made(out, executed, {b.name: sinks.write(executed, b, out) for b in executed.plan.sinks})


@pytest.fixture(params=["trl", "openai"])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    text = SPEC.replace("FORM", f"format {request.param}")
    return _made(_executed(tmp_path, text), tmp_path / "out")


def test_every_run_is_accounted_for(real: Made) -> None:
    for sink, written in real.written.items():
        real.conserved(sink)
        assert sum(written.rows.values()) > 0, sink


def test_every_message_is_what_the_run_says(real: Made) -> None:
    """Arguments word for word, content untouched, spans inside their texts, results behind their calls."""
    said = _said(real)
    for row in real.texts("sft"):
        run = said[row["example_id"]]
        for text, turn in zip(row["messages"], row["turns"], strict=True):
            message = orjson.loads(text)
            content, arguments = run[turn]
            assert (message["content"] or "") == (content or "")
            for call, expected in zip(message.get("tool_calls", []), arguments, strict=True):
                shown = call["function"]["arguments"]
                assert shown == expected if isinstance(shown, str) else orjson.loads(expected) == shown
                assert (expected if not isinstance(shown, str) else orjson.dumps(shown).decode()) in text
        for span in row["trained"]:
            assert row["weights"][span["message"]] == 1.0
            assert len(span_text(row["messages"][span["message"]], span)) == span["end"] - span["start"] > 0


@pytest.mark.parametrize(
    "body",
    [
        "loss on assistant",
        "loss on assistant format openai",
        "loss on assistant only last reasoning last",
        "loss on assistant where count(calls) > 0 fit 3000 tokens else window",
        "loss on assistant except reasoning fit 3000 tokens else drop format openai",
        "loss on assistant context { system, task, last 2 results }",
    ],
)
def test_rows_by_columns_are_those_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    executed = _executed(tmp_path, SOURCES + f"strategy s {{ from tau, tau2 emit sft {{ {body} }} }}")
    odd: set[str] = set()
    take = sft_rows.OneByOne.take

    def counted(self: sft_rows.OneByOne, row: Trainable | Lost) -> None:
        odd.add(row.run["id"])
        take(self, row)

    monkeypatch.setattr(sft_rows.OneByOne, "take", counted)
    found = _made(replace(executed, ledger=Ledger()), tmp_path / "by_columns")
    assert len(odd) < 0.6 * executed.ends["sft"].rows.height  # runs with calls of the user, and those that are too long
    monkeypatch.setattr(sft, "Rows", partial(sft.Rows, one_by_one=True))
    wanted = _made(replace(executed, ledger=Ledger()), tmp_path / "one_by_one")
    assert files_of(found.out) == files_of(wanted.out)
    assert found.executed.ledger.table().equals(wanted.executed.ledger.table())


def _said(real: Made) -> dict[str, dict[int, tuple[str | None, list[str]]]]:
    """id → turn → its content and the text of its calls' arguments, read from the state itself."""
    found: dict[str, dict[int, tuple[str | None, list[str]]]] = {}
    for _, frames in real.executed.ends["sft"].batches():
        ids = frames.runs["id"]
        for run, turn, content, calls in frames.turns.select("run", "turn", "content", "calls").iter_rows():
            found.setdefault(ids[run], {})[turn] = (content, [c["args_json"] or "{}" for c in calls])
    return found


def test_datasets_reads_both_files_alike(real: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for sink in ("sft", "rl", "preference"):
        kinds = {"parquet": "parquet", "json": "jsonl"}
        read = [
            datasets.load_dataset(
                kind, data_files=str(real.out / sink / f"train.{end}"), split="train", cache_dir=str(tmp_path / "hf")
            )
            for kind, end in kinds.items()
        ]
        assert list(read[0]) == list(read[1]) == real.rows(sink)
