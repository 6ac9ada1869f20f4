"""Random strategies: rows, columns, turns and ledger are what the reference gives, however the corpus is cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.passes import optimise
from curatec.compiler.plan import Plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.execute import Executed, execute, sorted_rows
from curatec.runtime.state import State
from tests.reference import made, quotas, view
from tests.reference import steps as reference
from tests.reference.corpus import rows_at_from
from tests.reference.values import Overflow
from tests.semantics.corpora import Finished, corpora, listed, write
from tests.semantics.generate import strategies
from tests.semantics.test_expressions import same
from tests.semantics.tools import call, plain, quick, record, result, turns_now

pytestmark = pytest.mark.usefixtures("parts")
REGISTERED = (made, quotas, view)  # importing them is what makes the reference know them

ENTRY = ("traj_id", "turn", "sink", "step", "label", "action", "reason", "key", "predicate_null", "survivor", "n")
COUNT = ("label", "sink", "entered", "left", "edited", "predicate_null", "null_key")
TURN = ("turn", "role", "content", "reasoning", "tool_name", "is_error", "call_turn", "edited")
FACTS = ("id", "task", "domain", "attempts", "pass_rate", "spread", "success", "reward", "trial", "started_at")


def plan_of(text: str, folder: Path) -> Plan:
    checked = check(load_text(text, "s.curate", folder))
    errors = [(d.code, d.message) for d in checked.diagnostics if d.severity == "error"]
    assert not errors, f"{errors}\n{text}"
    return checked.plan("s")


def told(entries: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(entry[name] for name in ENTRY) for entry in entries)


def tools_now(state: State) -> dict[str, Any]:
    shown = state.rows.select("id", "toolset").iter_rows()
    return {name: reference.tools_of(state.toolsets.get(tools)) for name, tools in shown}


def check_rows(state: State, rows: list[dict[str, Any]], derived: list[str], text: str) -> None:
    expected = reference.written(rows)
    ours = sorted_rows(state)
    assert ours["id"].to_list() == [row["id"] for row in expected], text
    for name in [*FACTS, *derived, *(("split",) if "split" in ours.columns else ())]:
        assert same(plain(ours[name]), [row[name] for row in expected]), (name, text)
    now = turns_now(state)
    for row in expected:
        assert len(now[row["id"]]) == len(row["turns"]), text
        for turn, theirs in zip(now[row["id"]], row["turns"], strict=True):
            assert [turn[n] for n in TURN] == [theirs[n] for n in TURN], text
            calls = [(c["name"], c["args_json"], c["result_turn"]) for c in turn["calls"]]
            assert calls == [(c["name"], c["args_json"], c["result_turn"]) for c in theirs["calls"]], text
    assert tools_now(state) == {row["id"]: row["tools"] for row in rows}, text


def engine(made: Plan, sources: dict[str, Finished], folder: Path, per_part: int) -> Executed | str:
    scratch = folder / f"scratch-{per_part}-{len(list(folder.iterdir()))}"
    scratch.mkdir()
    try:
        return execute(made, write(sources, folder, per_part), scratch)
    except CuratecError as error:
        return error.diagnostics[0].code


def by_reference(made: Plan, sources: dict[str, Finished]) -> reference.Done | str:
    try:
        return reference.execute(made, rows_at_from(listed(sources)))
    except Overflow:
        return "C0608"
    except reference.Failed as error:
        return str(error)


@quick()
@given(corpora(), strategies(), st.booleans(), st.sampled_from([1, 2, 100]))
def test_execute_is_the_reference(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], text: str, optimised: bool, per_part: int
) -> None:
    folder = tmp_path_factory.mktemp("strategy")
    made = plan_of(text, folder)
    made = optimise(made) if optimised else made
    done, expected = engine(made, sources, folder, per_part), by_reference(made, sources)
    if isinstance(done, str) or isinstance(expected, str):
        assert done == expected, text
        return
    derived = [name for name, _ in made.derived]
    check_rows(done.shared, expected.shared, derived, text)
    for name, rows in expected.ends.items():
        check_rows(done.ends[name], rows, derived, text)
    assert told(done.ledger.table().iter_rows(named=True)) == told(expected.log.entries), text
    counts = [{name: getattr(count, name) for name in COUNT} for count in done.ledger.counts]
    assert counts == [{name: count[name] for name in COUNT} for count in expected.log.counts], text


@quick(0.5)
@given(corpora(), strategies(), st.randoms(use_true_random=False))
def test_parts_and_row_order_play_no_part(
    tmp_path_factory: pytest.TempPathFactory, sources: dict[str, Finished], text: str, random: Any
) -> None:
    order_plays_no_part(tmp_path_factory.mktemp("parts"), sources, text, random)


def order_plays_no_part(folder: Path, sources: dict[str, Finished], text: str, random: Any) -> None:
    """One run after another, and other parts and orders, publish the same."""
    made = optimise(plan_of(text, folder))
    mixed = {name: random.sample(runs, len(runs)) for name, runs in sources.items()}
    (folder / "mixed").mkdir()
    found = [engine(made, sources, folder, per_part) for per_part in (100, 100, 1)]
    found.append(engine(made, mixed, folder / "mixed", 3))
    if any(isinstance(done, str) for done in found):
        assert len(set(map(str, found))) == 1, text
        return
    first, *others = [published(done) for done in found if not isinstance(done, str)]
    assert all(other == first for other in others), text


def published(done: Executed) -> Any:
    """Everything but places: rows in the order in which they are written, turns, ledger."""
    ends = {"shared": done.shared, **done.ends}
    rows = {}
    for name, state in ends.items():
        columns = [
            c
            for c in state.rows.columns
            if c not in ("part", "row", "home_part", "home_row", "line", "path") and ":" not in c
        ]
        rows[name] = [sorted_rows(state).select(sorted(columns)).to_dicts(), strip(turns_now(state))]
    return [rows, done.ledger.table().to_dicts(), done.ledger.counts]


def strip(turns: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    def kept(turn: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in turn.items() if name not in ("row", "run")}

    return {name: list(map(kept, found)) for name, found in turns.items()}


SPEC = """
curate 1
source t { path "*.jsonl" format openai }
failure slow { when turn_count > 3 }
strategy s {
  from t
  a: keep where turn_count > 1 or reward is null
  b: derive m = mean(reward) over (task)
  c: turns set content = truncate(content, 5) where role == "user"
  d: dedup exact on task, text best by reward desc
  e: tag failure
  emit sft { f: limit 2 per task order by m desc, std(cost) over (task), reward g: sample 70% seed 3 }
}
"""
ROOT = Path(__file__).parents[2]  # the script imports the tests
SCRIPT = """
import json, sys
from pathlib import Path
from tests.semantics.test_strategies import published
from tests.semantics.tools import Bench
done = Bench(Path(sys.argv[1])).execute(Path(sys.argv[1], "spec.txt").read_text())
print(json.dumps(published(done), default=str, sort_keys=True))
"""


def test_threads_and_files_play_no_part(tmp_path: Path) -> None:
    records = []
    for i in range(60):
        messages = {"role": "user", "content": f"task {i % 5}"}, call("f", {"i": i % 3}), result("x" * (i % 7))
        records.append(record(*messages, task_id=str(i % 5), reward=i / 7, cost=i / 10))
    found = []
    for threads, cut in (("1", 60), ("2", 7)):
        folder = tmp_path / threads
        folder.mkdir()
        (folder / "spec.txt").write_text(SPEC)
        for n in range(0, 60, cut):
            (folder / f"{n:02}-{cut}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records[n : n + cut]))
        environment = {**os.environ, "POLARS_MAX_THREADS": threads}
        command = [sys.executable, "-c", SCRIPT, str(folder)]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        found.append(ran.stdout)
    assert found[0] == found[1]
    assert len(json.loads(found[0])[0]["sft"][0]) > 3
