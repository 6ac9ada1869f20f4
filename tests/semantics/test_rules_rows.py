"""Rules of semantics.md about rows that multiply, quotas over sources, sealed sets and weights (25 to 31)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curatec.runtime.execute import Executed
from curatec.runtime.side import read_side
from tests.semantics.tools import SAID, USER, Bench, Record, call, record, result, turns_now

pytestmark = pytest.mark.usefixtures("parts")
TWO = 'source u { path "b.jsonl" format openai }'


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def many(n: int, prefix: str = "", **facts: Any) -> list[Record]:
    return [
        record({"role": "user", "content": f"{prefix}{i}"}, SAID, task_id=f"{prefix}{i}", **facts) for i in range(n)
    ]


def two(bench: Bench, body: str, t: int, u: int) -> Executed:
    bench.write("a.jsonl", many(t, "t"))
    bench.write("b.jsonl", many(u, "u"))
    text = bench.spec(body, before=TWO).replace("from t\n", "from t, u\n")
    return bench.execute(text)


def sources(done: Executed) -> Counter[str]:
    return Counter(done.shared.rows["source"].to_list())


def actions(done: Executed) -> Counter[str]:
    return Counter(done.ledger.table()["action"].cast(pl.String).to_list())


# ---- 12, 25: quotas ----


def test_rule_12_per_each_keeps_while_any_element_has_room(bench: Bench) -> None:
    lists: list[tuple[str, ...]] = [("f",), ("f", "g"), ("f", "g"), ("g",), (), ("h", "f")]
    records = []
    for i, names in enumerate(lists):
        pairs = [m for k, n in enumerate(names) for m in (call(n, {}, id=str(k)), result("r", id=str(k)))]
        records.append(record(USER, *pairs, SAID, id=str(i), reward=float(-i)))
    kept = bench.kept("a: limit 1 per each tool_names order by reward desc", records)
    # f takes 0; 1 has room by g; then both are full for 2 and 3; 4 has no element; 5 has room by h.
    assert sorted(kept) == ["0", "1", "4", "5"]


def test_rule_25_a_mix_holds_its_shares(bench: Bench) -> None:
    for spec, expected in (
        ("mix { t 50% u 50% }", {"t": 5, "u": 4}),  # 9 is the largest total: the odd one to the first name
        ("mix { t 75% u 25% }", {"t": 10, "u": 3}),  # 13 is the largest total: 9.75 and 3.25
        ("mix { t 50% u 50% } to 5", {"t": 3, "u": 2}),
        ("mix { t 50% u 50% } to at most 100", {"t": 5, "u": 4}),
        ("mix { t 100% u 0% }", {"t": 10}),
    ):
        assert sources(two(bench, f"blend: {spec}", 10, 4)) == expected, spec


def test_rule_25_a_shortage_is_an_error(bench: Bench) -> None:
    bench.write("b.jsonl", many(4, "u"))
    for spec, t in (("mix { t 50% u 50% } to 10", 10), ("mix { t 50% u 50% } to 8", 3), ("mix { t 50% u 50% }", 0)):
        records = many(t, "t") or [record(USER, SAID, source="none")]
        body = "none: drop where meta.source is not null blend: " + spec
        bench.write("a.jsonl", records)
        text = bench.spec(body, before=TWO).replace("from t\n", "from t, u\n")
        with pytest.raises(Exception, match="rows") as caught:
            bench.execute(text)
        assert [d.code for d in caught.value.diagnostics] == ["C0632"], spec  # type: ignore[attr-defined]


def test_rule_25_a_source_without_a_share_is_an_error(bench: Bench) -> None:
    text = bench.spec("blend: mix { t 100% }", before=TWO).replace("from t\n", "from t, u\n")
    assert bench.codes(text) == ["C0408"]


# ---- 26: near duplicates ----


def test_rule_26_near_duplicates_are_components_with_one_survivor(bench: Bench) -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    texts = [words, f"{words} thirteen", f"{words} thirteen fourteen", "something else altogether", words]
    records = [
        record({"role": "user", "content": text}, SAID, id=str(i), reward=float(i)) for i, text in enumerate(texts)
    ]
    done = bench.run("near: dedup near on task_text threshold 0.85", records)
    rows = done.shared.rows
    assert sorted(rows["record_id"]) == ["3", "4"]  # 10 shingles of 11, 11 of 12: a chain; 4 is the best of all
    gone = done.ledger.table().filter(pl.col("action") == "dropped")
    assert set(gone["survivor"]) == set(rows.filter(pl.col("record_id") == "4")["id"])
    assert bench.kept("near: dedup near on task_text threshold 0.85 over (task_id)", records) != ["3", "4"]


# ---- 27: sealed sets ----


def test_rule_27_no_sink_takes_a_sealed_task(bench: Bench, written: Callable[[str], dict[str, Any]]) -> None:
    bench.write("a.jsonl", many(4, "t", success=True))
    (bench.folder / "sealed.jsonl").write_text(json.dumps({"task": "t1"}) + "\n")
    found = written(bench.spec("", before='test set held { path "sealed.jsonl" id task }', sink="loss on assistant"))
    assert found["sinks"]["sft"]["dropped"] == {"held_out": 1}
    assert sum(found["sinks"]["sft"]["rows"].values()) == 3


# ---- 28 to 30: rows that multiply ----

TALK = record(
    {"role": "system", "content": "S"},
    USER,
    call("f", {"user_id": "una_ko_3668"}, id="1"),
    result("Error: nobody", id="1"),
    call("f", {"user_id": "una_ko_3669"}, id="2"),
    result("una_ko_3669 lives", id="2"),
    SAID,
    tools=[{"type": "function", "function": {"name": n, "parameters": {}}} for n in ("f", "g")],
)
OTHER = record(USER, SAID, tools=[{"type": "function", "function": {"name": "h", "parameters": {}}}], task_id="o")
ERRORS = 'path "a.jsonl" format openai error when content ~ r"^Error"'


def test_rule_28_steps_conserve_rows(bench: Bench) -> None:
    for body in (
        'd: decompose at role == "assistant"',
        "d: decompose at calls is not empty",
        "a: augment recover(max_gap: 1)",
        "a: augment distractors(n: 1, copies: 2)",
        'a: augment rebind(entities: ["user_id"], copies: 2)',
    ):
        done = bench.run(body, [TALK, OTHER], source=ERRORS)
        [count] = done.ledger.counts
        told = actions(done)
        assert count.left == count.entered + count.created - count.replaced - count.dropped == done.shared.rows.height
        assert (told["created"], told["replaced"], told["dropped"]) == (count.created, count.replaced, count.dropped)
        [lineage] = done.ledger.lineage
        made = done.ledger.table().filter(pl.col("action") == "created")
        assert lineage.select("out", "in").sort("out").rows() == made.select("traj_id", "key").sort("traj_id").rows()
        assert set(made["traj_id"]) <= set(done.shared.rows["id"])


def test_rule_29_decompose_trains_the_chosen_turn_only(bench: Bench) -> None:
    done = bench.run("d: decompose at calls is not empty", [TALK, OTHER], source=ERRORS)
    parent = next(r["id"] for r in done.start.rows.iter_rows(named=True) if r["task_id"] != "o")
    now = turns_now(done.shared)
    assert sorted(now) == [f"{parent}#d2", f"{parent}#d4"]
    for name, turns in now.items():
        chosen = int(name.rsplit("#d")[-1])
        assert [t["turn"] for t in turns] == list(range(chosen + 1))
        assert [t["turn"] for t in turns if t["loss_weight"] > 0] == [chosen]
    facts = done.shared.rows.select("task", "source", "origin").unique()
    assert facts.height == 1
    assert facts["origin"].to_list() == [parent]


def test_rule_29_draws_part_the_rows_of_a_parent(bench: Bench) -> None:
    records = many(20)
    done = bench.run('d: decompose at role == "assistant" half: sample 50% seed 1', [TALK] * 3 + records)
    assert 0 < done.shared.rows.height < 3 * 3 + 20


def test_rule_30_copies_inherit_the_split_and_are_never_validated(bench: Bench) -> None:
    records = [{**TALK, "task_id": str(i), "meta": {"n": i}} for i in range(30)]
    split = "split by task { train 50% validation 50% } seed 1 "
    for augmentation in ("recover(max_gap: 1)", 'rebind(entities: ["user_id"], copies: 2)', "distractors(n: 1)"):
        done = bench.run(split + f"more: augment {augmentation}", [*records, OTHER], source=ERRORS)
        rows = done.shared.rows
        made = rows.filter(pl.col("id") != pl.col("origin"))
        assert made.height > 5, augmentation
        assert set(made["split"]) == {"train"}
        assert set(made["id"].str.extract(r"#(a\w+)\.\d+$")) == {"amore"}
        originals = rows.filter(pl.col("id") == pl.col("origin"))
        assert originals.height == 31


def test_rule_30_a_copy_that_would_contradict_itself_is_a_counted_failure(bench: Bench) -> None:
    inside = {**TALK, "messages": [*TALK["messages"][:-1], {"role": "assistant", "content": "see xuna_ko_3669y"}]}
    done = bench.run('twins: augment rebind(entities: ["user_id"], copies: 2)', [inside], source=ERRORS)
    [count] = done.ledger.counts
    assert (count.created, count.failed) == (0, 2)
    told = done.ledger.table().filter(pl.col("action") == "rejected")
    assert told["n"].sum() == 2


def test_rule_31_a_changed_turn_carries_no_loss_unless_told(bench: Bench, written: Callable[[str], Any]) -> None:
    bench.write("a.jsonl", [record(USER, SAID, USER, {"role": "assistant", "content": "bye"}, success=True)])
    body = 'x: turns set content = "changed" where content == "done"'
    for including, expected in (("", ["bye"]), (" including edited", ["changed", "bye"])):
        written(bench.spec(body, sink=f"loss on assistant{including}"))
        [row] = map(json.loads, (bench.folder / "out" / "sft" / "train.jsonl").read_text().splitlines())
        trained = [m["content"] for m, w in zip(row["messages"], row["weights"], strict=True) if w]
        assert trained == expected


def test_rule_31_a_fractional_weight_needs_a_target_that_knows_it(
    bench: Bench, written: Callable[[str], dict[str, Any]]
) -> None:
    bench.write("a.jsonl", many(1, success=True))
    with pytest.raises(Exception, match="0 or 1") as caught:
        written(bench.spec("", sink="loss on assistant weight 0.5"))
    assert [d.code for d in caught.value.diagnostics] == ["C0611"]  # type: ignore[attr-defined]
    found = written(bench.spec("", sink="loss on assistant weight 0.5 format llamafactory"))
    assert found["sinks"]["sft"]["rows"] == {"train": 1}


@pytest.fixture
def written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Compiles a spec into `out`; its manifest."""
    from curatec.runtime.compile import compile_spec
    from curatec.runtime.request import Request

    monkeypatch.setenv("CURATEC_CACHE_DIR", str(bench.folder / "cache"))

    def run(text: str) -> dict[str, Any]:
        (bench.folder / "s.curate").write_text(text, encoding="utf-8")
        return compile_spec(Request(str(bench.folder / "s.curate"), out=bench.folder / "out")).manifest

    return run


def test_side_data_is_read_once(bench: Bench) -> None:
    """A table that is only asked is read as well."""
    bench.write("a.jsonl", many(3, "t"))
    (bench.folder / "v.jsonl").write_text('{"id": "t1"}\n')
    table = 'table bad { path "v.jsonl" key id columns { id: text } }'
    made = bench.plan(bench.spec("b: drop where task_id in bad.id", before=table))
    assert [t.name for t in made.tables] == ["bad"]
    side = read_side(made, bench.folder, ())
    assert side.column("bad", "id").to_list() == ["t1"]


def test_a_run_has_its_split_wherever_it_went(bench: Bench, written: Callable[[str], dict[str, Any]]) -> None:
    bench.write("a.jsonl", many(40, success=True))
    split = "split by task { train 50% validation 50% } seed 1 "
    drop = 'few: drop where task_id in {"1", "2", "3"} d: decompose at role == "assistant"'
    written(bench.spec(split + drop, sink="loss on assistant"))
    runs = pl.read_parquet(bench.folder / "out" / "runs.parquet")
    assert runs["split"].null_count() == 0
    assert set(runs["split"]) == {"train", "validation"}


@pytest.mark.parametrize(
    ("step", "warned"),
    [
        ('d: decompose at role == "user"', True),
        ('d: decompose at role == "assistant"', False),
        ('d: augment rebind(entities: ["zzz"])', True),
        ('d: augment rebind(entities: ["user_id"])', False),
        ("d: augment recover(max_gap: 1)", False),
    ],
)
def test_a_step_that_makes_nothing_is_warned_of(bench: Bench, step: str, warned: bool) -> None:
    from curatec.runtime.data_lints import data_lints

    done = bench.run(step, [TALK], source=ERRORS)
    assert [d.code for d in data_lints(done, {}, []) if d.code == "C0639"] == ["C0639"] * warned


def test_rule_27_quotas_of_a_sink_count_no_sealed_task(bench: Bench, written: Callable[[str], dict[str, Any]]) -> None:
    bench.write("a.jsonl", many(6, "t", success=True))
    bench.write("b.jsonl", many(6, "u", success=True))
    (bench.folder / "sealed.jsonl").write_text("".join(json.dumps({"task": f"t{i}"}) + "\n" for i in range(4)))
    before = f'{TWO} test set held {{ path "sealed.jsonl" id task }}'
    text = bench.spec("", before=before, sink="blend: mix { t 50% u 50% } loss on assistant").replace(
        "from t\n", "from t, u\n"
    )
    sft = written(text)["sinks"]["sft"]
    assert sft["dropped"] == {"held_out": 4}
    rows = [json.loads(line) for line in (bench.folder / "out" / "sft" / "train.jsonl").read_text().splitlines()]
    assert Counter(row["source"] for row in rows) == {"t": 2, "u": 2}
