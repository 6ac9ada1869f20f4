"""semantics.md, rules 1 to 18, each against values worked out by hand, from text and files to rows."""

from __future__ import annotations

import pytest

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.execute import sorted_rows
from tests.semantics.tools import SAID, USER, Bench, call, record, result, turns_now

SYSTEM = {"role": "system", "content": "be kind"}
EVENT = {"role": "event", "content": "tick"}


def user(text: str | None) -> dict[str, object]:
    return {"role": "user", "content": text}


# ---- order and scope ----


def test_rule_01_steps_run_in_written_order(bench: Bench) -> None:
    records = [record(id="a", task_id="t", reward=1.0), record(id="b", task_id="t", reward=2.0)]
    limit, drop = "one: limit 1 per task order by reward desc", "low: keep where reward < 2"
    assert bench.kept(f"{limit} {drop}", records) == []
    assert bench.kept(f"{drop} {limit}", records) == ["a"]


def test_rule_01_every_sink_starts_from_the_same_rows(bench: Bench) -> None:
    bench.write("a.jsonl", [record(id="a", reward=1.0), record(id="b", reward=2.0), record(id="c", reward=3.0)])
    stage = "stage mid from shared { m: keep where reward < 3 }"
    sinks = "emit rl { n: keep where reward > 1 }"
    text = bench.spec(stage, sink="x: drop where reward > 1").replace("emit sft", f"{sinks} emit sft from mid")
    done = bench.execute(text)
    ends = {name: sorted(state.rows["record_id"]) for name, state in done.ends.items()}
    assert ends == {"mid": ["a", "b"], "sft": ["a"], "rl": ["b", "c"]}


def test_rule_01_shared_steps_precede_sinks_and_settings_stand_once(bench: Bench) -> None:
    late = 'curate 1 source t { path "a.jsonl" } strategy s { from t emit sft { } x: keep where success }'
    assert bench.codes(late) == ["C0407"]
    assert bench.codes(late.replace("x: keep where success", "expect rows(sft) >= 1")) == []
    assert bench.codes(bench.spec("", sink="loss on assistant loss on assistant")) == ["C0409"]
    assert bench.codes(bench.spec("", sink="loss on assistant x: keep where success fit 8 tokens else drop")) == []


def test_rule_02_facts_are_frozen_and_content_is_of_the_turns_now(bench: Bench) -> None:
    records = [record(user("a"), SAID, task_id="t", success=True), record(user("b"), SAID, task_id="t", success=False)]
    before, after = "x: derive rate = pass_rate", "y: derive n = turn_count"
    rows = bench.run(f'w: keep where success {before} c: turns drop where role == "user" {after}', records).shared.rows
    assert rows["rate"].to_list() == [0.5]  # of both runs, though one is gone
    assert rows["n"].to_list() == [1]
    assert rows["task"].to_list() == ["t/t"]


def test_rule_02_turn_count_leaves_out_system_and_event(bench: Bench) -> None:
    assert bench.values("turn_count", [record(SYSTEM, USER, EVENT, SAID)]) == [2]
    assert bench.values("text", [record(SYSTEM, USER, EVENT, SAID)]) == ["hi\ndone"]
    assert bench.values("count(turns)", [record(SYSTEM, USER, EVENT, SAID)]) == [4]


def test_rule_03_task_is_domain_and_task_id(bench: Bench) -> None:
    records = [record(task_id="7", domain="air"), record(task_id="7")]
    assert sorted(bench.values("task", records)) == ["air/7", "t/7"]
    set_ = 'path "a.jsonl" domain "shop"'
    assert sorted(bench.values("task", records, source=set_)) == ["air/7", "shop/7"]
    bench.write("retail-1.jsonl", [record(task_id="7")])
    done = bench.execute(bench.spec("", source='path "retail-*.jsonl" domain from path r"([a-z]+)-"'))
    assert done.start.rows["task"].to_list() == ["retail/7"]


def test_rule_03_without_a_task_id_first_user_text_and_tools_name_it(bench: Bench) -> None:
    tool = [{"type": "function", "function": {"name": "f"}}]
    records = [record(user("x")), record(user("x"), SAID), record(user("y")), record(user("x"), tools=tool)]
    tasks = bench.run("", records).start.rows["task"].to_list()
    assert len(set(tasks)) == 3
    assert all(len(task) == len("t/") + 16 for task in tasks)


def test_rule_04_pass_rate_is_per_task_and_model(bench: Bench) -> None:
    runs = [("a", "m", True), ("a", "m", False), ("a", "m", None), ("a", "n", True), ("b", "m", True), ("b", "m", True)]
    records = [record(user(str(i)), id=str(i), task_id=t, model=m, success=s) for i, (t, m, s) in enumerate(runs)]
    rows = bench.run("", records).start.rows.sort("record_id")
    assert rows["attempts"].to_list() == [2, 2, 2, 1, 2, 2]
    assert rows["pass_rate"].to_list() == [0.5, 0.5, 0.5, None, 1.0, 1.0]


def test_rule_04_an_unknown_model_is_one_of_its_source(bench: Bench) -> None:
    bench.write("a.jsonl", [record(user("1"), task_id="t", domain="d", success=True)])
    bench.write("b.jsonl", [record(user("2"), task_id="t", domain="d", success=False)])
    head = 'curate 1 source x { path "a.jsonl" } source y { path "b.jsonl" } strategy s { from x, y emit sft { } }'
    assert bench.execute(head).start.rows["attempts"].to_list() == [1, 1]


def test_rule_04_a_crash_has_no_verdict(bench: Bench) -> None:
    records = [record(outcome="crash", reward=0.0, success=False)]
    row = bench.run("", records, source='path "a.jsonl" success when turn_count > 0').start.rows.row(0, named=True)
    assert (row["success"], row["reward"], row["outcome"]) == (None, None, "crash")
    assert bench.values("meta.reward", records) == ["0"]


def test_rule_04_success_when_sets_the_outcome(bench: Bench) -> None:
    records = [record(user(str(r)), id=str(r), reward=r) for r in (0.2, 0.9)] + [record(user("?"), id="?")]
    rows = bench.run("", records, source='path "a.jsonl" success when reward >= 0.5').start.rows.sort("record_id")
    assert rows["outcome"].to_list() == ["failure", "success", "unknown"]
    assert rows["success"].to_list() == [False, True, None]


def test_rule_05_a_window_sees_the_rows_that_enter_its_step(bench: Bench) -> None:
    records = [record(user(str(i)), task_id="t", id=str(i), reward=float(i)) for i in range(4)]
    body = "x: derive a = count() over (task) y: drop where reward < 2 z: derive b = count() over (task)"
    rows = bench.run(body, records).shared.rows
    assert (rows["a"].to_list(), rows["b"].to_list()) == ([4, 4], [2, 2])


def test_rule_05_windows_stand_at_trajectory_level_only(bench: Bench) -> None:
    inside = "keep where any(turns where count() over (trajectory.task) > 1)"
    for body in (inside, "turns drop where count() over (role) > 1"):
        assert "C0305" in bench.codes(bench.spec(f"x: {body}"))


def test_rule_06_derived_columns_are_frozen(bench: Bench) -> None:
    body = 'x: derive n = turn_count c: turns drop where role == "user"'
    rows = bench.run(body, [record()]).shared.rows
    assert rows["n"].to_list() == [2]
    for clash in ("derive reward = 1", "derive n = 1 y: derive n = 2"):
        assert bench.codes(bench.spec(f"x: {clash}")) == ["C0208"]


def test_rule_06_a_sinks_derive_is_its_own(bench: Bench) -> None:
    two = bench.spec("emit rl { a: derive n = 1 }", sink="b: derive n = 2")
    assert bench.codes(two) == []
    assert bench.codes(bench.spec("emit rl { a: derive n = 1 }", sink="b: keep where n == 1")) == ["C0203"]


def test_rule_07_all_predicates_see_the_turns_as_before(bench: Bench) -> None:
    records = [record(user("1"), user("2"), user("3"), user("4"))]
    done = bench.run('x: turns drop where prev.role == "user"', records)
    [turns] = turns_now(done.shared).values()
    assert [t["content"] for t in turns] == ["1"]
    set_ = bench.run("x: turns set content = prev.content where prev.content is not null", records)
    [turns] = turns_now(set_.shared).values()
    assert [t["content"] for t in turns] == ["1", "1", "2", "3"]


def test_rule_07_neighbours(bench: Bench) -> None:
    turns = [USER, call("f"), result("r"), call("g", id="2"), result("s", id="2"), SAID]
    expected = {
        "prev.role": [None, "user", "assistant", "tool", "assistant", "tool"],
        "next.role": ["assistant", "tool", "assistant", "tool", "assistant", None],
        "caller.calls_text": [None, None, "f({})", None, "g({})", None],
        "reply.calls_text": ["f({})", "g({})", "g({})", None, None, None],
    }
    for text, values in expected.items():
        for i, value in enumerate(values):
            body = f"first(turns where index == {i}).content"
            found = bench.run(f"x: turns set content = {text} y: derive now = {body}", [record(*turns)]).shared.rows
            assert found["now"].to_list() == [value], (text, i)


def test_rule_07_no_chains_of_neighbours(bench: Bench) -> None:
    assert bench.codes(bench.spec("x: turns drop where prev.prev.role is null")) == ["C0212"]


def test_rule_07_re_index_after_an_edit(bench: Bench) -> None:
    columns = "y: derive first_ = first(turns).index z: derive last_ = last(turns).index"
    rows = bench.run(f'x: turns drop where role == "system" {columns}', [record(SYSTEM, USER, SAID)]).shared.rows
    assert (rows["first_"].to_list(), rows["last_"].to_list()) == ([0], [1])


def test_rule_08_scopes_are_named(bench: Bench) -> None:
    records = [record(USER, call("f", {"x": 2}), result("ok"), trial=2)]
    assert bench.values("any(calls where args.x == trajectory.trial)", records) == [True]
    inner = "any(calls where turn.index == 1 and trajectory.trial == 2)"
    assert bench.values(f"any(turns where {inner})", records) == [True]
    assert bench.codes(bench.spec("x: keep where any(turns where trial == 2)")) == ["C0205"]
    assert bench.codes(bench.spec("x: keep where any(turns where any(turns where index == 1))")) == ["C0211"]


def test_rule_09_a_call_and_its_result_live_and_die_together(bench: Bench) -> None:
    turns = [USER, call("f"), result("r"), SAID]
    for condition in ('role == "tool"', "calls is not empty"):
        assert bench.fails(f"x: turns drop where {condition}", [record(*turns)]) == ["C0610"]
        done = bench.run(f"x: turns drop where {condition} repair", [record(*turns)])
        [left] = turns_now(done.shared).values()
        assert [t["role"] for t in left] == ["user", "assistant"]
        assert [t["calls"] for t in left] == [[], []]


def test_rule_09_repair_keeps_a_turn_that_still_says_something(bench: Bench) -> None:
    turns = [USER, call("f", content="I look it up"), result("r"), SAID]
    done = bench.run('x: turns drop where role == "tool" repair', [record(*turns)])
    [left] = turns_now(done.shared).values()
    assert [t["content"] for t in left] == ["hi", "I look it up", "done"]
    logged = done.ledger.table().select("turn", "action", "key", "n").rows()
    assert logged == [(1, "edited", "calls", 1), (2, "dropped", None, 1)]


def test_rule_09_orphans_of_the_data_are_defects(bench: Bench) -> None:
    records = [record(USER, result("lost", id="9"), call("f"))]
    assert bench.run('x: turns drop where role == "user"', records).shared.rows["defects"][0].to_list() == [
        "ends_on_call",
        "orphan_result",
    ]


# ---- nulls, order, numbers ----


def test_rule_10_quantifiers_are_two_valued(bench: Bench) -> None:
    turns = [user(None), user(None)]
    expected = {"any": False, "all": False, "none": True}
    for kind, value in expected.items():
        assert bench.values(f'{kind}(turns where content == "x")', [record(*turns)]) == [value]
    assert bench.values('count(turns where content == "x")', [record(*turns)]) == [0]


def test_rule_10_empty(bench: Bench) -> None:
    records = [record(USER)]
    expected = {"any": False, "all": True, "none": True, "count": 0}
    for kind, value in expected.items():
        assert bench.values(f'{kind}(calls where name == "x")', records) == [value]
    assert bench.values("first(calls).name", records) == [None]
    assert bench.values("last(calls).args.x is null", records) == [True]


def test_rule_11_keep_and_drop_both_need_true(bench: Bench) -> None:
    records = [record(user(str(r)), id=str(r), reward=r) for r in (1.0, 0.0)] + [record(user("?"), id="?")]
    assert sorted(bench.kept("x: keep where reward > 0.5", records)) == ["1.0"]
    assert sorted(bench.kept("x: drop where reward > 0.5", records)) == ["0.0", "?"]
    done = bench.run("x: keep where reward > 0.5", records)
    assert done.ledger.counts[0].predicate_null == 1
    assert sorted(done.ledger.table()["predicate_null"].to_list()) == [False, True]
    assert bench.codes(bench.spec("x: keep where reward == null")) == ["C0303"]


def test_rule_12_a_null_key_is_no_group(bench: Bench) -> None:
    records = [record(user(str(i)), id=str(i), agent=a) for i, a in enumerate(["p", "p", None, None])]
    assert bench.values("count() over (agent)", records) == [2, 2, None, None]
    for step in ("dedup exact on agent", "limit 1 per agent order by id", "sample 1 per agent seed 1"):
        done = bench.run(f"x: {step}", records)
        assert done.shared.rows["agent"].to_list().count(None) == 2, step
        assert done.shared.rows.height == 3, step
        assert done.ledger.counts[0].null_key == 2, step
    assert bench.run("x: sample 0% per agent seed 1", records).shared.rows.height == 2


def test_rule_12_split_falls_back_to_the_task(bench: Bench) -> None:
    records = [record(user(str(i)), task_id=str(i)) for i in range(20)]
    halves = "{ train 50% validation 50% } seed 1"
    by_task = bench.run(f"split by task {halves}", records).shared.rows.sort("id")["split"]
    assert bench.run(f"split by agent {halves}", records).shared.rows.sort("id")["split"].equals(by_task)


def test_rule_12_a_key_that_parts_a_task_is_an_error(bench: Bench) -> None:
    records = [record(user(str(i)), task_id="t", trial=i) for i in range(2)]
    assert bench.fails("split by trial { train 50% validation 50% } seed 1", records) == ["C0413"]


def test_rule_13_nulls_are_last_both_ways_then_id(bench: Bench) -> None:
    records = [record(user(str(i)), id=str(i), reward=r) for i, r in enumerate([2.0, None, 1.0])]
    assert bench.kept("x: sort by reward", records) == ["2", "0", "1"]
    assert bench.kept("x: sort by reward desc", records) == ["0", "2", "1"]
    words = [record(user(str(i)), id=w, agent=w) for i, w in enumerate(["é", "Z", "a", "😀", "\uffff"])]
    assert bench.kept("x: sort by agent", words) == ["Z", "a", "é", "\uffff", "😀"]
    equal = sorted_rows(bench.run("x: sort by turn_count", words).shared)["id"].to_list()
    assert equal == sorted(equal)


def test_rule_13_identical_records_are_numbered(bench: Bench) -> None:
    ids = bench.run("", [record(), record(), record(user("x"))]).start.rows["id"].to_list()
    assert ids[1] == f"{ids[0]}~2"
    assert "~" not in ids[2]


def test_rule_13_rows_are_written_by_task_and_id_and_no_path_is_in_an_id(bench: Bench) -> None:
    records = [record(user(str(i)), task_id=str(i % 2)) for i in range(6)]
    first = sorted_rows(bench.run("", records).shared)
    assert first["task"].to_list() == ["t/0"] * 3 + ["t/1"] * 3
    for i, one in enumerate(records):
        bench.write(f"deep/{5 - i}.jsonl", [one])
    again = sorted_rows(bench.execute(bench.spec("", source='path "deep/*.jsonl"')).shared)
    assert again["id"].to_list() == first["id"].to_list()


def test_rule_13_rank_is_min_rank(bench: Bench) -> None:
    records = [record(user(str(i)), reward=r) for i, r in enumerate([5.0, 3.0, 5.0, None, 1.0])]
    assert bench.values("rank(reward desc) over (source)", records) == [1, 3, 1, None, 4]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_rule_14_no_nan_or_infinity(bench: Bench, number: str) -> None:
    bench.write("a.jsonl", [])
    (bench.folder / "a.jsonl").write_text(f'{{"messages": [{{"role": "user", "content": "x"}}], "reward": {number}}}\n')
    row = bench.execute(bench.spec("")).start.rows.row(0, named=True)
    assert row["reward"] is None
    assert row["defects"]


def test_rule_14_division_by_zero_is_null(bench: Bench) -> None:
    for text in ("1 / 0", "reward / (turn_count - 2)", "0 / 0.0", "ln(0)", "sqrt(-1)", "10 ** 400", "0 ** -1"):
        assert bench.values(text, [record(reward=1.0)]) == [None], text


def test_rule_15_division_and_sums_are_exact(bench: Bench) -> None:
    records = [record(user(str(n)), id=str(n), reward=n / 10) for n in (1, 3, 7, 11, 43)]
    assert bench.values("reward / 3", records) == [n / 10 / 3 for n in (1, 3, 7, 11, 43)]
    assert bench.values("mean(reward) over (source)", records) == [6_500_000 / 5_000_000] * 5
    assert bench.values("sum(reward) over (source)", records) == [6.5] * 5
    assert bench.fails("x: derive y = turn_count * 9_000_000_000_000_000_000 * 2", records) == ["C0608"]


def test_rule_16_only_functions_that_are_equal_everywhere(bench: Bench) -> None:
    expected = {"round(2.5)": 2.0, "round(3.5)": 4.0, "round(-0.5)": 0.0, "2 ** 3": 8.0, "sqrt(9)": 3.0, "abs(-2)": 2}
    for text, value in expected.items():
        assert bench.values(text, [record()]) == [value]
    assert bench.codes(bench.spec("x: derive y = exp(1)")) == ["C0204"]
    assert bench.codes(bench.spec("x: derive y = log10(1)")) == ["C0204"]
    assert bench.codes(bench.spec("x: derive y = round(1.5, 1)")) == ["C0304"]


def test_rule_16_of_nothing(bench: Bench) -> None:
    records = [record(user(str(i)), success=v) for i, v in enumerate([True, None, False])]
    expected = {"sum": 0.0, "mean": None, "min": None, "max": None, "median": None}
    for name, value in expected.items():
        assert bench.values(f"{name}(cost) over (source)", records) == [value] * 3
    assert bench.values("share(success) over (source)", records) == [1 / 3] * 3
    numbered = [record(user(str(i)), cost=c) for i, c in enumerate([1.0, 2.0, 4.0, 100.0])]
    assert bench.values("median(cost) over (source)", numbered) == [3.0] * 4


def test_rule_17_no_implicit_casts(bench: Bench) -> None:
    for text in ("task_id == 1", '"1" < 2', 'trial + "1"', "success == 1", 'contains(trial, "1")'):
        assert bench.codes(bench.spec(f"x: derive y = {text}")) in (["C0301"], ["C0311"], ["C0304"]), text


def test_rule_17_as_int(bench: Bench) -> None:
    expected = {
        '"12"': 12,
        '"+7"': 7,
        '"-0"': 0,
        '"1.0"': None,
        '" 1"': None,
        '"1234567890123456789"': None,
        '"123456789012345678"': 123456789012345678,
        '"٣"': None,
        '"+-1"': None,
        "2.0": 2,
        "2.5": None,
        "meta.n": 100_000_000_000_000_000,
        "meta.half": None,
        "meta.flag": None,
        "meta.text": 5,
    }
    records = [record(n=1e17, half=0.5, flag=True, text="5")]
    for text, value in expected.items():
        assert bench.values(f"{text} as int", records) == [value], text


def test_rule_18_percent_and_ranges(bench: Bench) -> None:
    records = [record(user(str(i)), id=str(i), reward=r) for i, r in enumerate([0.1, 0.5, 0.9, 0.95])]
    assert sorted(bench.kept("x: keep where reward between 10% and 0.9", records)) == ["0", "1", "2"]
    assert bench.codes(bench.spec("split by task { train 90% validation 9% } seed 1")) == ["C0408"]
    param = "param low = 0.5 in 0.0 .. 1.0"
    text = bench.spec("x: keep where reward >= low", before=param)
    bench.write("a.jsonl", records)
    assert bench.execute(text, given={"low": "90%"}).shared.rows.height == 2
    with pytest.raises(CuratecError) as raised:
        bench.execute(text, given={"low": "1.01"})
    assert [d.code for d in raised.value.diagnostics] == ["C0418"]
    assert bench.codes(bench.spec("", before="param low = 1.0 in 0.0 .. 1.0")) == []
    assert bench.codes(bench.spec("", before="param low = 1.1 in 0.0 .. 1.0")) == ["C0310"]
