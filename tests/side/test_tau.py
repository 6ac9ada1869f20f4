"""Real runs: every run of a sealed task is found, by id and by text, and no other."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.passes import optimise
from curatec.runtime.cache import Cache
from curatec.runtime.execute import Executed, execute
from curatec.runtime.inputs import read_inputs
from curatec.runtime.side import read_side
from tests.reference.side import words

DATA = Path(os.environ.get("CURATEC_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
TAU = DATA / "tau_bench"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not TAU.exists(), reason="the collected runs are not there")]

SPEC = f"""curate 1
source tau {{
  path "{TAU}/sierra/historical_trajectories/*.json", "{TAU}/variants/*.json", "{TAU}/qwen/*qwen2.5-7b.json"
  format tau_bench
  domain from path r"(airline|retail)"
}}
test set hidden {{ path "hidden.json" SET }}
strategy s {{
  from tau
  SEEDED
  clean: decontaminate against hidden
  emit sft {{ loss on assistant }}
}}
"""


def records() -> list[tuple[str, dict[str, Any]]]:
    """Each record as plain `json` reads it, with its domain."""
    files = [
        *TAU.glob("sierra/historical_trajectories/*.json"),
        *TAU.glob("variants/*.json"),
        *TAU.glob("qwen/*7b.json"),
    ]
    return [
        ("airline" if "airline" in path.name else "retail", record)
        for path in files
        for record in json.loads(path.read_text())
    ]


def executed(folder: Path, spec: str, hidden: list[dict[str, Any]]) -> Executed:
    (folder / "hidden.json").write_text(json.dumps(hidden))
    checked = check(load_text(spec, "real.curate", folder, (DATA,)), {}, (DATA,))
    assert checked.ok, checked.diagnostics
    whole = optimise(checked.plan(None))
    inputs = read_inputs(whole.corpora, folder, (DATA,), Cache(folder / "cache"))
    (folder / "scratch").mkdir()
    return execute(whole, inputs, folder / "scratch", side=read_side(whole, folder, (DATA,)))


def cleaned(done: Executed) -> pl.DataFrame:
    found = done.ledger.table().filter(pl.col("label") == "clean")
    return found.join(done.start.rows.select("id", "task"), left_on="traj_id", right_on="id")


def test_every_run_of_a_sealed_task_is_found_by_its_id(tmp_path: Path) -> None:
    sealed = [f"airline/{i}" for i in (0, 7, 33)] + [f"retail/{i}" for i in (1, 5)]
    spec = SPEC.replace("SET", "id id").replace("SEEDED", "")
    done = executed(tmp_path, spec, [{"id": name} for name in sealed])
    expected = [f"{domain}/{record['task_id']}" for domain, record in records()]
    gone = cleaned(done)
    assert sorted(gone["task"]) == sorted(task for task in expected if task in sealed)
    assert gone["reason"].unique().to_list() == ["test_id"]
    assert (gone["key"] == gone["task"]).all()
    assert done.start.rows.height == len(expected)


def test_bare_ids_are_those_of_every_domain(tmp_path: Path) -> None:
    done = executed(tmp_path, SPEC.replace("SET", "id id").replace("SEEDED", ""), [{"id": 3}])
    assert cleaned(done).height == sum(record["task_id"] == 3 for _, record in records())


def test_a_copied_instruction_is_found_by_its_words(tmp_path: Path) -> None:
    """Instructions that a user's turn repeats word for word are found, all of them; no other run is."""
    told = sorted({record["info"]["task"]["instruction"] for _, record in records() if "task" in record["info"]})
    sealed = told[::9]
    assert len(sealed) > 5
    spec = SPEC.replace("SET", "text text")
    seeded = 'seeded: turns set content = concat("Hello. ", trajectory.meta.info.task.instruction) where role == "user"'
    done = executed(tmp_path, spec.replace("SEEDED", seeded), [{"text": f"  {text.upper()}\n"} for text in sealed])
    asks = [record for _, record in records() if record["info"].get("task", {}).get("instruction") in sealed]
    gone = cleaned(done).filter(pl.col("reason") == "test_text")
    assert gone.height == len(asks)


def test_what_agents_said_is_searched_as_a_plain_search_does(tmp_path: Path) -> None:
    """Against a search over the source's own JSON: thirteen words in a row of an instruction, in any turn."""
    told = sorted({record["info"]["task"]["instruction"] for _, record in records() if "task" in record["info"]})[::4]
    done = executed(tmp_path, SPEC.replace("SET", "text text").replace("SEEDED", ""), [{"text": t} for t in told])
    grams = {tuple(words(text)[i : i + 13]) for text in told for i in range(len(words(text)) - 12)}
    expected = []
    for domain, record in records():
        texts = [m.get("content") for m in record["traj"] if m["role"] != "system"]
        for message in record["traj"]:
            for call in message.get("tool_calls") or []:
                texts += strings(ast.literal_eval(_as_python(call["function"]["arguments"])))
        split = [words(text) for text in texts if text]
        if any(tuple(own[i : i + 13]) in grams for own in split for i in range(len(own) - 12)):
            expected.append(f"{domain}/{record['task_id']}")
    assert sorted(cleaned(done)["task"]) == sorted(expected)
    assert 0 < len(expected) < len(records())


def _as_python(arguments: str) -> str:
    """Arguments are JSON or Python's repr of a dict."""
    return repr(json.loads(arguments)) if '{"' in arguments or arguments == "{}" else arguments


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inside for text in strings(item)]
