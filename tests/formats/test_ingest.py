"""The whole of ingest: detection, mixed directories, errors, parts, digests, parquet input, bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curatec.runtime.arrow_file import read as read_part
from curatec.runtime.cache import Cache
from curatec.runtime.formats import adapters, near_misses, parse, recognise
from curatec.runtime.formats.counts import COUNTS, column
from curatec.runtime.formats.model import ANYWHERE, Context, Match, Run, Sample, Turn
from curatec.runtime.ingest import IngestError, Progress, ingest, resolve
from curatec.runtime.tables import RUNS, TURNS

from .conftest import USER, Read, assistant, call, chat, lines, result, rows_of
from .test_harnesses import history, results, simulation, step, tau

Reader = Callable[..., Read]
SAYS = {"role": "assistant", "content": "x"}
EXAMPLES: dict[str, Any] = {
    "tau_bench": tau([USER]),
    "tau2": simulation([USER]),
    "atif": {"schema_version": "ATIF-v1.7", "agent": {"name": "n"}, "steps": [step(1, "user", "x")]},
    "swe_agent": history(USER),
    "llamafactory": chat({"role": "user", "content": [{"type": "text", "value": "x"}]}),
    "sharegpt": {"conversations": [{"from": "human", "value": "x"}]},
    "trl": {"prompt": [USER], "chosen": [SAYS], "rejected": [USER, SAYS]},
    "openai": chat(USER),
}


def test_every_built_in_format_has_an_example() -> None:
    assert set(EXAMPLES) == {adapter.name for adapter in adapters().values()}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("layout", ["lines", "array", "object"])
def test_formats_are_recognised_by_content_never_by_name(read: Reader, name: str, layout: str) -> None:
    record = EXAMPLES[name]
    content = {"lines": lines(record, record), "array": [record, record], "object": record}[layout]
    found = read(content, name="tau2_openai_sharegpt.traj")
    assert {run["format"] for run in found.runs} == {name}
    assert len(found.runs) == (1 if layout == "object" else 2) * (2 if name == "trl" else 1)  # a pair is two runs


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_other_format_claims_an_example(name: str) -> None:
    ranked = near_misses(Sample((EXAMPLES[name],), "lines"))
    assert ranked[0][0].name == name
    assert ranked[0][1].score > ranked[1][1].score


def test_an_unknown_format_says_what_was_seen_and_what_came_close(read: Reader) -> None:
    with pytest.raises(IngestError) as caught:
        read([{"instruction": "hi", "output": "x"}])
    error = caught.value
    assert (error.kind, error.path) == ("unknown_format", "data.json")
    assert "`instruction`, `output`" in error.message
    assert "no `traj` list" in error.help


def test_an_unknown_name_of_a_format(read: Reader) -> None:
    with pytest.raises(IngestError) as caught:
        read(chat(USER), format="opanai")
    assert caught.value.kind == "unknown_format"
    assert "openai" in caught.value.help


def test_a_forced_format_rejects_what_does_not_fit(read: Reader) -> None:
    with pytest.raises(IngestError) as caught:
        read(lines(chat(USER)), format="tau_bench")
    assert caught.value.kind == "all_rejected"
    assert "no `traj` list" in caught.value.message
    found = read(lines(chat(USER), tau([USER])), format="tau_bench", name="b.jsonl")
    assert [(reject.line, reject.raw) for reject in found.corpus.rejects] == [
        (1, json.dumps(chat(USER), separators=(",", ":")))
    ]


def test_quirk_scalars_as_rows(read: Reader) -> None:
    found = read('"text"\n5\nnull\n' + lines(chat(USER)) + "true\n")
    assert len(found.runs) == 1
    assert [(reject.line, reject.reason) for reject in found.corpus.rejects] == [
        (1, "a string is not a record"),
        (2, "a number is not a record"),
        (3, "null is not a record"),
        (5, "a boolean is not a record"),
    ]


def test_only_scalars_or_garbage_is_an_error(read: Reader) -> None:
    for content in ("1\n2\n", "not json\nat all\n", "[\n  \n"):
        with pytest.raises(IngestError) as caught:
            read(content)
        assert caught.value.kind == "all_rejected"


@pytest.mark.parametrize("content", ["", "\n \n", "[]", b"\xef\xbb\xbf"])
def test_quirk_an_empty_file_is_not_an_error(read: Reader, content: Any) -> None:
    corpus = read(content).corpus
    assert (corpus.parts, corpus.rejects, corpus.empty_files) == ((), (), ("data.json",))


def test_quirk_crlf_bom_and_u2028(read: Reader) -> None:
    row = json.dumps(chat({"role": "user", "content": "a\u2028b"}), ensure_ascii=False)
    found = read(("\ufeff" + row + "\r\n" + row + "\r\n").encode())
    assert [run["turns"][0]["content"] for run in found.runs] == ["a\u2028b", "a\u2028b"]
    assert [run["defects"] for run in found.runs] == [[], []]


def test_quirk_a_depth_bomb_is_a_reject(read: Reader) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    middling = "[" * 400 + "]" * 400
    bombs = "".join(f'{{"messages":[{{"role":"user","content":"x"}}],"x":{bomb}}}\n' for bomb in (deep, middling))
    found = read(lines(chat(USER)) + bombs + lines(chat(SAYS)))
    assert [run["line"] for run in found.runs] == [1, 4]
    assert [(reject.line, reject.reason) for reject in found.corpus.rejects] == [
        (2, "nested too deeply"),
        (3, "nested too deeply"),
    ]
    assert len(found.corpus.rejects[0].raw) < 70_000
    assert "more characters]" in found.corpus.rejects[0].raw


def test_quirk_a_line_of_17_mb(read: Reader) -> None:
    big = "é" * (17 << 19)
    found = read(lines(chat(USER, assistant(call("{}")), result(big), SAYS), chat(USER)))
    assert found.runs[0]["turns"][2]["content"] == big
    assert len(found.runs) == 2


def test_every_reading_defect_reaches_the_run(read: Reader) -> None:
    rows = [
        b'{"messages":[{"role":"user","content":"x"}],"n":NaN}',
        b'{"messages":[{"role":"user","content":"\\ud800"}]}',
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b'{"messages":[{"role":"user","content":"x","content":"y"}]}',
    ]
    found = read(b"\n".join(rows))
    assert [run["defects"] for run in found.runs] == [["nan"], ["lone_surrogate"], ["invalid_utf8"], ["duplicate_key"]]
    assert found.runs[0]["meta_json"] == '{"n":null}'
    assert [run["turns"][0]["content"] for run in found.runs[1:]] == ["�", "�", "y"]


def test_the_schemas_are_exact_whatever_the_rows_hold(read: Reader) -> None:
    for number, content in enumerate((chat(), chat(USER), tau([USER, assistant(call("{}")), result()]))):
        corpus = read([content], name=f"{number}.json").corpus
        counted = {column(count): pl.Int64() for count in COUNTS}
        assert read_part(corpus.parts[0].runs).schema == pl.Schema(RUNS | counted)
        assert read_part(corpus.parts[0].turns).schema == pl.Schema(TURNS)


def test_the_digest_depends_on_the_record_alone(read: Reader) -> None:
    one, two = chat(USER, SAYS, id="1"), chat(USER, id="2")
    first = read(lines(one, two), name="a.jsonl").runs
    again = read([two, one], name="b.json").runs
    assert [run["digest"] for run in first] == [run["digest"] for run in reversed(again)]
    assert len({run["digest"] for run in first}) == 2
    changed = read(lines(chat(USER, {**SAYS, "content": "y"}, id="1")), name="c.jsonl").runs
    assert changed[0]["digest"] != first[0]["digest"]


def test_quirk_duplicate_transcripts_have_one_digest(read: Reader) -> None:
    runs = read(lines(chat(USER), chat(USER))).runs
    assert runs[0]["digest"] == runs[1]["digest"]


def test_a_mixed_directory(tmp_path: Path, cache: Cache) -> None:
    folder = tmp_path / "in"
    (folder / "deep" / ".hidden").mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps([tau([USER])]))
    (folder / "deep" / "b.jsonl").write_text(lines(chat(USER)))
    (folder / "deep" / "c.json").write_text(json.dumps(results(simulation([USER]))))
    (folder / "deep" / "other.json").write_text('{"name": "x"}')
    (folder / "empty.json").write_text("")
    (folder / "notes.txt").write_text("no data")
    (folder / "deep" / ".hidden" / "d.json").write_text("{")
    files = resolve(["in"], tmp_path, tmp_path)
    corpus = ingest(files, base=tmp_path, cache=cache)
    assert corpus.formats == {"openai": 1, "tau2": 1, "tau_bench": 1}
    assert corpus.empty_files == ("in/empty.json",)
    assert [(reject.file, reject.line) for reject in corpus.rejects] == [("in/deep/other.json", 0)]
    assert {(run["name"], run["format"]) for run in rows_of(corpus)} == {
        ("in/a.json", "tau_bench"),
        ("in/deep/b.jsonl", "openai"),
        ("in/deep/c.json", "tau2"),
    }


def test_order_of_the_files_does_not_matter(tmp_path: Path, cache: Cache) -> None:
    paths = []
    for number in range(20):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(chat(USER, n=number)))
    one = ingest(paths, base=tmp_path, cache=cache)
    two = ingest(paths[::-1], base=tmp_path, cache=cache)
    assert one.parts == two.parts
    assert sum(part.n_runs for part in one.parts) == 20


def test_files_with_equal_content_are_all_read(tmp_path: Path, cache: Cache) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(chat(USER)))
    runs = rows_of(ingest([tmp_path / "a.json", tmp_path / "b.json"], base=tmp_path, cache=cache))
    assert [run["name"] for run in runs] == ["a.json", "b.json"]


def test_parts_are_bounded_and_complete(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "PART_TEXT", 20_000)
    monkeypatch.setattr("curatec.runtime.ingest.PART_TEXT", 20_000)
    records = [chat({"role": "user", "content": "x" * 1000}, n=number) for number in range(200)]
    (tmp_path / "lines.jsonl").write_text(lines(*records))
    (tmp_path / "array.json").write_text(json.dumps(records))
    (tmp_path / "object.json").write_text(
        json.dumps(results(*[simulation([USER], id=str(k), note="y" * 900) for k in range(200)]))
    )
    told: list[Progress] = []
    for name in ("lines.jsonl", "array.json", "object.json"):
        corpus = ingest([tmp_path / name], base=tmp_path, cache=cache, on_progress=told.append)
        assert len(corpus.parts) >= 10
        assert max(part.n_runs for part in corpus.parts) <= 21
        assert [run["line"] for run in rows_of(corpus)] == list(range(1, 201))
        for part in corpus.parts:
            assert read_part(part.runs)["row"].to_list() == list(range(part.n_runs))
    assert len(told) > 30
    assert (told[-1].files_done, told[-1].runs) == (1, 200)


def test_small_files_share_parts(tmp_path: Path, cache: Cache) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(300)]
    for number, path in enumerate(paths):
        path.write_text(json.dumps(chat(USER, n=number)))
    corpus = ingest(paths, base=tmp_path, cache=cache)
    assert len(corpus.parts) == 1
    assert corpus.parts[0].n_runs == 300


def test_one_more_file_rereads_few(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curatec.runtime.ingest.PART_TEXT", 20_000)
    monkeypatch.setattr("curatec.runtime.ingest._GROUP_LEAST", 2_000)
    paths = [tmp_path / f"{number}.json" for number in range(200)]
    for number, path in enumerate(paths):
        path.write_text(json.dumps(chat({"role": "user", "content": "x" * 1000}, n=number)))
    before = {part.runs for part in ingest(paths[1:], base=tmp_path, cache=cache).parts}
    after = {part.runs for part in ingest(paths, base=tmp_path, cache=cache).parts}
    assert len(before) > 15
    assert len(after - before) <= 3


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_quirk_parquet_structs_lose_the_nulls_that_other_rows_put_there(tmp_path: Path, cache: Cache) -> None:
    def row(arguments: dict[str, Any]) -> dict[str, Any]:
        made = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}],
        }
        return {"messages": [{"role": "user", "content": "go", "tool_calls": None}, made], "reward": 1.0}

    path = parquet(tmp_path / "x.parquet", [row({"a": 1}), row({"b": {"c": [2.5]}})])
    assert "a" in str(pq.read_schema(path))
    assert "b" in str(pq.read_schema(path))
    runs = rows_of(ingest([path], base=tmp_path, cache=cache))
    assert [run["turns"][1]["calls"][0]["args_json"] for run in runs] == ['{"a":1}', '{"b":{"c":[2.5]}}']
    assert [(run["format"], run["line"], run["reward"]) for run in runs] == [("openai", 1, 1.0), ("openai", 2, 1.0)]
    assert [turn["content_kind"] for turn in runs[0]["turns"]] == ["text", "null"]


def test_parquet_values_without_a_json_form(tmp_path: Path, cache: Cache) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    facts = {"at": datetime(2025, 1, 1, tzinfo=UTC), "price": Decimal("1.50"), "raw": b"\x00\x01", "bad": float("nan")}
    path = parquet(tmp_path / "x.parquet", [{"messages": [USER], **facts}])
    run = rows_of(ingest([path], base=tmp_path, cache=cache))[0]
    assert run["meta_json"] == '{"at":"2025-01-01T00:00:00+00:00","price":1.50,"raw":"AAE=","bad":null}'
    assert run["defects"] == ["nan"]


def test_a_damaged_parquet_file(tmp_path: Path, cache: Cache) -> None:
    path = parquet(tmp_path / "x.parquet", [{"messages": [USER]}])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(IngestError) as caught:
        ingest([path], base=tmp_path, cache=cache)
    assert caught.value.kind == "all_rejected"
    assert "damaged parquet" in caught.value.message


class Failing:
    name, version, containers, elements, call_ids = "failing", 1, ANYWHERE, None, False

    def recognise(self, sample: Sample) -> Match:
        return Match(float("odd" in sample.records[0]), "has `odd`")

    def read(self, record: Any, context: Context) -> list[Run]:
        return [Run(self.name, [Turn("user", record["odd"][context.container], "text")], model=record.get("model"))]


def test_an_added_adapter_is_found_and_its_faults_are_rejects(read: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = value = "failing"

        def load(self) -> Failing:
            return Failing()

    monkeypatch.setattr(
        "curatec.runtime.formats.entry_points", lambda group: [Point()] if group == "curatec.formats" else []
    )
    adapters.cache_clear()
    try:
        found = read(
            lines({"odd": {"lines": "a"}}, {"odd": {}}, {"odd": {"lines": "a"}, "model": 5}, {"odd": {"lines": 1}})
        )
        assert recognise(Sample(({"odd": 1},), "lines")) is not None
    finally:
        adapters.cache_clear()
    assert [run["format"] for run in found.runs] == ["failing"]
    assert [(reject.line, reject.reason) for reject in found.corpus.rejects] == [
        (2, "failing failed: KeyError: 'lines'"),
        (3, "failing failed: TypeError: model is a int"),
        (4, "failing failed: TypeError: content is a int"),
    ]


def test_importing_is_light() -> None:
    import subprocess
    import sys

    heavy = ("pyarrow", "duckdb", "ijson", "torch")
    code = f"import sys, curatec.runtime.ingest; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
