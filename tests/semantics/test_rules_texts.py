"""semantics.md, rules 19 to 40, each against values worked out by hand, from text and files to rows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest
from xxhash import xxh3_64_intdigest, xxh3_128_hexdigest

from curatec.compiler.plan import digest
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.manifest import input_digest
from tests.semantics.tools import SAID, USER, Bench, call, record, result, turns_now


def user(text: str | None) -> dict[str, object]:
    return {"role": "user", "content": text}


def many(count: int, **facts: object) -> list[dict[str, object]]:
    return [record(user(f"no {i}"), SAID, id=str(i), task_id=f"k{i}", **facts) for i in range(count)]


# ---- text, JSON, hashes ----


def test_rule_19_lengths_and_slices_count_code_points(bench: Bench) -> None:
    records = [record(user("e\u0301👩‍💻東京"))]
    expected = {
        "length(task_text)": 7,
        "slice(task_text, 5)": "東京",
        "slice(task_text, 2, 1)": "👩",
        "truncate(task_text, 2)": "e\u0301",
        "truncate(task_text, 3, keep: ends)": "e\u0301京",
        'truncate(task_text, 1, keep: end, marker: "…")': "…京",
        "truncate(task_text, 7)": "e\u0301👩‍💻東京",
    }
    for text, value in expected.items():
        assert bench.values(text, records) == [value], text


def test_rule_20_lower_trim_concat(bench: Bench) -> None:
    expected = {
        'lower("ΣΑΣ ÄİK")': "σασ äi̇k",
        'trim(" \\t\\u00a0x\\u000b\\n")': "\u00a0x\u000b",
        "concat(agent, null)": "",
        'concat("a", agent, "b")': "ab",
    }
    for text, value in expected.items():
        assert bench.values(text, [record()]) == [value], text


def test_rule_21_regexes(bench: Bench) -> None:
    records = [record(user("漢booked é9"))]
    expected = {
        r'task_text ~ r"\bbooked\b"': True,
        r'extract(task_text, r"\w+")': "booked",
        r'replace(task_text, r"([a-z])o", "${1}0$$")': "漢b0$oked é9",
        r'extract(task_text, r"x")': None,
        r'agent ~ r"x"': None,
        r'task_text ~ r"é\d$"': True,
    }
    for text, value in expected.items():
        assert bench.values(text, records) == [value], text


REFUSED = ["(?=a)", "(?<n>a)", "(?x)a", "[a&&b]", "a{1,1001}", r"\101", "a" * 4097, "[[:alpha:]]"]


@pytest.mark.parametrize("pattern", REFUSED)
def test_rule_21_what_engines_read_differently_is_an_error(bench: Bench, pattern: str) -> None:
    assert set(bench.codes(bench.spec(f'x: keep where task ~ r"{pattern}"'))) == {"C0306"}


def test_rule_22_json_has_one_form_for_comparing(bench: Bench) -> None:
    args = '{"a": 1.0, "a": 2, "big": 12345678901234567890, "s": "\\ud800", "o": {"k-1": [true, null]}, "e": {}}'
    records = [record(USER, call("f", args), result("r"), n=5, t="5")]
    expected = {
        "first(calls).args.a": "2",
        "first(calls).args.a == 2": True,
        "first(calls).args.big": "12345678901234567890",
        "first(calls).args.s": "\ufffd",
        'first(calls).args.o["k-1"][0]': "true",
        'any(calls where args.o["k-1"][1] is null)': True,
        "first(calls).args.o": None,
        "any(calls where args.o is null)": False,
        "any(calls where args.e is empty)": True,
        "any(calls where args is empty)": False,
        'meta.n == "5"': True,
        "meta.t == 5": None,
        "meta.n > 4.5": True,
        "calls_text": 'f({"a":2,"big":"12345678901234567890","e":{},"o":{"k-1":[true,null]},"s":"\ufffd"})',
    }
    for text, value in expected.items():
        assert bench.values(text, records) == [value], text


@pytest.mark.parametrize("args", ['{"x": NaN}', '{"x": 1e400}', "{x"])
def test_rule_22_what_is_no_json_is_invalid_and_kept_raw(bench: Bench, args: str) -> None:
    done = bench.run("", [record(USER, call("f", args), result("r"))])
    [turns] = turns_now(done.shared).values()
    [made] = turns[1]["calls"]
    assert (made["args_state"], made["args_json"], made["args_raw"]) == ("invalid", None, args)
    assert bench.values("any(calls where args.x is null)", [record(USER, call("f", args), result("r"))]) == [True]


def test_rule_23_calls_text_and_is_error(bench: Bench) -> None:
    turns = [USER, call("f", {"b": 1, "a": 2}), result("Error: no"), SAID]
    assert bench.values("calls_text", [record(USER), record(*turns)]) == [None, 'f({"a":2,"b":1})']
    assert bench.values("count(turns where is_error is null)", [record(*turns)]) == [4]
    told = 'path "a.jsonl" error when content ~ r"^Error"'
    assert bench.values("count(turns where is_error)", [record(*turns)], source=told) == [1]
    assert bench.values("error_count", [record(user("Error: mine"), *turns)], source=told) == [1]
    assert bench.values('any(turns where role != "tool" and is_error)', [record(*turns)], source=told) == [False]


def test_rule_23_tool_names_are_sorted_and_distinct(bench: Bench) -> None:
    turns = [USER, call("g"), call("f", id="2"), call("g", id="3")]
    assert bench.values('join(tool_names, ",")', [record(*turns)]) == ["f,g"]
    pair = [record(USER, call("g"), call("f", id="2"), id="1"), record(USER, call("f"), call("g", id="2"), id="2")]
    assert bench.run("x: dedup exact on tool_names", pair).shared.rows.height == 1


def test_rule_24_keys_are_one_kernel_of_canonical_bytes(bench: Bench) -> None:
    records = [record(user("ä"), agent="p", id="1"), record(user("ä"), agent="p", id="2")]
    done = bench.run("x: dedup exact on agent, trial", [{**r, "trial": 3} for r in records])
    assert done.ledger.table()["key"].to_list() == [xxh3_128_hexdigest(b"s1:pi3;")]
    long = bench.run("x: dedup exact on task_text", records)
    inner = xxh3_128_hexdigest("s2:ä".encode())
    assert long.ledger.table()["key"].to_list() == [xxh3_128_hexdigest(f"s32:{inner}".encode())]


def test_rule_24_first_and_last_go_by_turn(bench: Bench) -> None:
    records = [record(*(user(str(i)) for i in range(30)))]
    assert bench.values("first(turns where index > 3).content", records) == ["4"]
    assert bench.values("last(turns where index < 20).content", records) == ["19"]
    assert bench.values("text", records) == ["\n".join(map(str, range(30)))]


# ---- quotas and splits ----


def test_rule_25_a_draw_is_of_verb_seed_and_digest(bench: Bench) -> None:
    records = many(40)
    digests = {r["record_id"]: r["digest"] for r in bench.run("", records).start.rows.iter_rows(named=True)}

    def draw(seed: int, name: str) -> int:
        return xxh3_64_intdigest(f"s6:samplei{seed};s32:{digests[name]}".encode()) >> 1

    by_draw = sorted(digests, key=lambda name: draw(7, name))
    assert set(bench.kept("x: sample 5 seed 7", records)) == set(by_draw[:5])
    assert set(bench.kept("other_label: sample 5 seed 7", records)) == set(by_draw[:5])
    below = {name for name in digests if draw(7, name) < 0.3 * 2**63}
    assert set(bench.kept("x: sample 30% seed 7", records)) == below
    assert set(bench.kept("x: sample 5 seed 8", records)) != set(by_draw[:5])
    fewer = [r for r in records if r["id"] in below]
    assert set(bench.kept("x: sample 30% seed 7", fewer)) == below  # a draw looks at no other row


def test_rule_26_the_best_stays_by_default_the_reward_then_the_id(bench: Bench) -> None:
    rewards = [None, 1.0, 3.0, 3.0, 2.0]
    records = [record(user(f"u{i}"), id=str(i), agent="p", reward=r) for i, r in enumerate(rewards)]
    ids = {r["record_id"]: r["id"] for r in bench.run("", records).start.rows.iter_rows(named=True)}
    best = min("23", key=ids.__getitem__)
    done = bench.run("x: dedup exact on agent", records)
    assert done.shared.rows["record_id"].to_list() == [best]
    assert set(done.ledger.table()["survivor"].to_list()) == {ids[best]}
    assert bench.kept("x: dedup exact on agent best by reward", records) == ["1"]
    assert len(bench.kept("x: dedup exact on session_id", records)) == 5  # a null is never a duplicate


def test_rule_27_one_split_for_all_sinks_that_new_runs_never_move(bench: Bench) -> None:
    split = "split by task { train 50% validation 50% } seed 3"
    few = bench.run(split, many(30)).shared.rows
    more = bench.run(split, many(60)).shared.rows
    before, after = (dict(zip(rows["task"], rows["split"], strict=True)) for rows in (few, more))
    assert all(after[task] == part for task, part in before.items())
    done = bench.run(split + " emit rl { }", many(30))
    ends = [dict(state.rows.select("id", "split").iter_rows()) for state in done.ends.values()]
    assert ends[0] == ends[1]


def test_rule_27_an_empty_part_is_an_error(bench: Bench) -> None:
    assert bench.fails("split by task { train 50% validation 50% } seed 3", many(1)) == ["C0609"]
    assert bench.codes(bench.spec("split by task { train 50% test 50% } seed 3")) == ["C0408"]
    assert bench.codes(bench.spec("x: keep where success split by task { train 100% } seed 3")) == ["C0406"]


def test_rule_28_rows_are_conserved(bench: Bench) -> None:
    records = [*many(9, agent="p"), record(user(None), id="x")]
    body = "a: keep where turn_count > 1 b: sample 80% seed 1 c: limit 3 per agent order by id"
    done = bench.run(body, records, sink="d: dedup exact on agent")
    for count in done.ledger.counts:
        assert count.left == count.entered - count.dropped + count.created
    dropped = done.ledger.table().filter(pl.col("action") == "dropped")
    assert dropped.height + done.ends["sft"].rows.height == done.start.rows.height
    assert dropped["traj_id"].n_unique() == dropped.height
    assert set(dropped["label"].to_list()) <= {"a", "b", "c", "d"}
    limited = dropped.filter(pl.col("label") == "c")
    assert set(limited["key"].to_list()) == {"p"}


def test_rule_28_turn_edits_are_logged(bench: Bench) -> None:
    done = bench.run('x: turns set content = "y" where role == "user" z: turns drop where role == "user"', [record()])
    logged = done.ledger.table().select("turn", "label", "action", "key", "n").rows()
    assert logged == [(0, "x", "edited", "content", 1), (0, "z", "dropped", None, 1)]


def test_rule_32_limit_takes_the_lowest_hashes(bench: Bench) -> None:
    bench.write("a.jsonl", many(20))
    whole = sorted(bench.execute(bench.spec("")).start.rows["digest"].to_list())
    assert sorted(bench.execute(bench.spec(""), limit=4).start.rows["digest"].to_list()) == whole[:4]


# ---- files, digests ----


def test_rule_33_paths_stay_in_the_project(bench: Bench) -> None:
    outside = bench.folder.parent / f"{bench.folder.name}-outside"
    outside.mkdir()
    (outside / "a.jsonl").write_text(json.dumps(record()) + "\n")
    assert bench.codes(bench.spec("", source=f'path "../{outside.name}/a.jsonl"')) == ["C0411"]
    assert bench.codes(bench.spec("", source='path "../*/a.jsonl"')) == ["C0411"]
    os.symlink(outside / "a.jsonl", bench.folder / "link.jsonl")
    assert bench.codes(bench.spec("", source='path "link.jsonl"')) == ["C0411"]
    os.symlink(outside, bench.folder / "inner")
    text = bench.spec("", source='path "*/a.jsonl"')
    assert bench.codes(text) == []  # `check` expands no pattern
    with pytest.raises(CuratecError) as raised:
        bench.execute(text)
    assert [d.code for d in raised.value.diagnostics] == ["C0411"]


def test_rule_33_paths_resolve_against_the_file_that_writes_them(bench: Bench) -> None:
    bench.write("lib/runs.jsonl", [record(id="in lib")])
    (bench.folder / "lib" / "l.curate").write_text('curate 1\nsource t { path "runs.jsonl" }\n')
    text = 'curate 1\nimport "lib/l.curate"\nstrategy s { from t emit sft { } }\n'
    assert bench.execute(text).start.rows["record_id"].to_list() == ["in lib"]


def test_rule_34_labels_reasons_and_layout_are_not_in_a_plan(bench: Bench) -> None:
    plain = bench.spec("a: keep where reward > 0.5")
    told = bench.spec('# why\n  b: keep where\n reward > 0.50 because "good" see "issue 1"')
    moved = bench.spec("a: keep where reward > 0.5", source='path "b.jsonl" format openai')
    other = bench.spec("a: keep where reward > 0.6")
    first = digest(bench.plan(plain))
    assert digest(bench.plan(told)) == first
    assert digest(bench.plan(moved)) == first
    assert digest(bench.plan(other)) != first


def test_rule_34_input_digests_are_of_records_not_files(bench: Bench) -> None:
    records = many(5)
    bench.write("a.jsonl", records)
    for i, one in enumerate(reversed(records)):
        bench.write(f"b/{i}.jsonl", [one])
    (bench.folder / "c.json").write_text(json.dumps(records))
    found = set()
    for path in ("a.jsonl", "b/*.jsonl", "c.json"):
        done = bench.execute(bench.spec("", source=f'path "{path}"'))
        found.add(input_digest(done.loaded.inputs[0], done.start.rows["digest"]))
    assert len(found) == 1


# ---- messages and whole files ----


def test_rule_36_messages_of_their_own(bench: Bench) -> None:
    expected = {"1 < reward < 5": "C0104", 'task = "a"': None, "task == 'a'": None, "reward > 0.5 amd success": "C0101"}
    for text, code in expected.items():
        codes = bench.codes(bench.spec(f"x: keep where {text}"))
        assert codes, text
        assert code in (None, codes[0]), text
    [problem] = bench.diagnostics(bench.spec("x: keep where success amd trial > 1"))[:1]
    assert "and" in " ".join(problem.help)


def test_rule_37_check_reads_no_data(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    text = bench.spec("x: keep where reward > 0.5", source='path "missing.jsonl" format openai')
    opened: list[str] = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path.name) or real(path))
    assert bench.codes(text) == []
    assert set(opened) <= {"s.curate"}


def test_rule_38_several_strategies_need_a_name(bench: Bench) -> None:
    head = 'curate 1\nsource t { path "a.jsonl" }\n'
    two = head + "strategy one { from t emit sft { } }\nstrategy two { from t emit sft { } }\n"
    with pytest.raises(CuratecError) as raised:
        bench.plan(two)
    assert [d.code for d in raised.value.diagnostics] == ["C0417"]
    (bench.folder / "lib.curate").write_text(two)
    assert bench.plan('curate 1\nimport "lib.curate"\nstrategy mine { from t emit sft { } }').strategy == "mine"


def test_rule_40_an_array_gives_the_rows_of_its_lines(bench: Bench) -> None:
    records = many(50)
    bench.write("a.jsonl", records)
    (bench.folder / "b.json").write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]")
    lines = bench.execute(bench.spec(""))
    array = bench.execute(bench.spec("", source='path "b.json"'))
    assert sorted(lines.start.rows["id"]) == sorted(array.start.rows["id"])
