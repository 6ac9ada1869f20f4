"""Rebinding and recovering on all collected tau-bench and tau2 runs: no old value is left, all JSON parses."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.passes import optimise
from curatec.runtime.cache import Cache
from curatec.runtime.execute import Executed, execute
from curatec.runtime.inputs import read_inputs
from tests.semantics.tools import turns_now

ROOT = Path(__file__).parent.parent.parent
DATA = Path(os.environ.get("CURATEC_SHARED_DATA", ROOT.parent / "shared" / "data"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DATA / "tau_bench").exists(), reason="the collected runs are not there"),
]
NAMES = ("user_id", "reservation_id", "order_id")
SPEC = """curate 1
source tau { path "tau_bench/**/*.json" format tau_bench error when content ~ r"^Error" }
source tau2 { path "tau2_bench/**/trajectories/*.json" format tau2 error when content ~ r"^Error" }
strategy s {
  from tau, tau2
  emit sft { b: augment rebind(entities: ["user_id", "reservation_id", "order_id"], copies: 2) }
  emit rl { r: augment recover(max_gap: 2) }
}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    folder = tmp_path_factory.mktemp("tau")
    for name in ("tau_bench", "tau2_bench"):
        (folder / name).symlink_to(DATA / name)
    (folder / "scratch").mkdir()
    whole = optimise(check(load_text(SPEC, "s.curate", folder, (DATA,)), None, (DATA,)).plan(None))
    return execute(whole, read_inputs(whole.corpora, folder, (DATA,), Cache(folder / "cache")), folder / "scratch")


def named(value: Any, member: str = "") -> Iterator[str]:
    """Values of the arguments in question, as they are written."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from named(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from named(item, member)
    elif member in NAMES and isinstance(value, str | int):
        yield str(value)


def texts(turns: list[dict[str, Any]]) -> str:
    said = [turn[name] or "" for turn in turns for name in ("content", "reasoning")]
    return "\n".join([*said, *(c["args_json"] or c["args_raw"] or "" for turn in turns for c in turn["calls"])])


def test_no_old_value_is_left_in_a_copy(done: Executed) -> None:
    state = done.ends["sft"]
    now = turns_now(state)
    wide = {
        r["id"]: (r["gold_json"] or "") + (r["meta_json"] or "") for r in done.loaded.wide(state, state.rows).to_dicts()
    }
    copies = [id_ for id_ in now if "#" in id_]
    assert len(copies) > 400
    for id_ in copies:
        parent = now[id_.partition("#")[0]]
        assert [len(t["calls"]) for t in parent] == [len(t["calls"]) for t in now[id_]]
        whole = (texts(now[id_]) + wide[id_]).lower()
        for before, after in zip(parent, now[id_], strict=True):
            for old_call, new_call in zip(before["calls"], after["calls"], strict=True):
                assert (old_call["args_json"] is None) == (new_call["args_json"] is None)
                if new_call["args_json"] is None:
                    continue
                old, new = json.loads(old_call["args_json"]), json.loads(new_call["args_json"])
                assert old.keys() == new.keys()
                for was, is_ in zip(named(old), named(new), strict=True):
                    core = was.strip("#").lower()
                    assert not core or core not in whole, (id_, was)
                    assert re.sub("[a-z]", "a", re.sub("[A-Z]", "A", re.sub("[0-9]", "0", was))) == re.sub(
                        "[a-z]", "a", re.sub("[A-Z]", "A", re.sub("[0-9]", "0", is_))
                    )


def test_every_copy_is_made_or_counted(done: Executed) -> None:
    count = next(c for c in done.ledger.counts if c.label == "b")
    assert count.entered == 570
    assert count.created + count.failed == 2 * 570
    ledger = done.ledger.table()
    failed = ledger.filter(ledger["action"] == "rejected")
    reasons: Counter[str] = Counter()
    for reason, n in failed.select("reason", "n").iter_rows():
        reasons[reason] += n
    assert reasons.total() == count.failed
    assert reasons.keys() <= {"no_entity", "entity_inside_word", "gold_disagrees"}


def test_a_recovered_row_ends_with_another_call_of_the_tool_that_failed(done: Executed) -> None:
    now = turns_now(done.ends["rl"])
    made = {id_: turns for id_, turns in now.items() if "#" in id_}
    assert len(made) > 10
    for turns in made.values():
        assert [t["loss_weight"] > 0 for t in turns] == [False] * (len(turns) - 1) + [True]
        calls = {c["result_turn"]: c for t in turns for c in t["calls"]}
        failed = [calls[t["turn"]] for t in turns if t["role"] == "tool" and t["content"].startswith("Error")]
        last = turns[-1]["calls"]
        assert any(a["name"] == b["name"] and a["args_json"] != b["args_json"] for a in failed for b in last)
