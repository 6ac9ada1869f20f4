"""What `datasets` saves on disk, and Arrow's JSON type in parquet and Arrow files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curatec.runtime.cache import Cache
from curatec.runtime.formats.containers import read_records
from curatec.runtime.formats.json_stream import Broken, Record
from curatec.runtime.ingest import Corpus, IngestError, ingest, resolve

from .conftest import USER, assistant, call, result, rows_of

ROW = {"messages": [USER, assistant(call({"a": None, "b": 2**60})), result("ok")], "tools": None, "n": 1}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """`messages` as `datasets` keeps its `Json` feature."""
    texts = pa.array([[json.dumps(message) for message in row["messages"]] for row in rows], pa.list_(pa.string()))
    numbers = pa.array([row["n"] for row in rows], pa.int64())
    return pa.table({"messages": texts.cast(pa.list_(pa.json_())), "n": numbers})


def save(folder: Path, *files: list[dict[str, Any]]) -> Path:
    """A data set as `save_to_disk` lays it out, with a cache of `map` beside it."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{len(files):05}.arrow" for i in range(len(files))]
    for name, rows in zip([*names, "cache-1.arrow"], [*files, [{**ROW, "n": 99}]], strict=True):
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, table(rows).schema) as writer:
            writer.write_table(table(rows), max_chunksize=3)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def numbered(*numbers: int) -> list[dict[str, Any]]:
    return [{**ROW, "n": number} for number in numbers]


def read(patterns: list[str], base: Path, cache: Cache) -> Corpus:
    return ingest(resolve(patterns, base, base), base=base, cache=cache)


def numbers(corpus: Corpus) -> list[int]:
    return [json.loads(run["meta_json"])["n"] for run in rows_of(corpus)]


@pytest.mark.parametrize("pattern", ["saved", "saved/", ".", "*", "saved/data-*.arrow", "saved/**", "**"])
def test_a_saved_data_set(tmp_path: Path, cache: Cache, pattern: str) -> None:
    base = tmp_path / "base"
    save(base / "saved", numbered(1, 2, 3, 4), numbered(5))
    corpus = read([pattern], base, cache)
    assert (numbers(corpus), corpus.rejects) == ([1, 2, 3, 4, 5], ())
    assert [turn["role"] for turn in rows_of(corpus)[0]["turns"]] == ["user", "assistant", "tool"]
    assert rows_of(corpus)[0]["turns"][1]["calls"][0]["args_json"] == '{"a":null,"b":1152921504606846976}'


def test_splits_are_read_and_strangers_are_not(tmp_path: Path, cache: Cache) -> None:
    base = tmp_path / "base"
    for name, n in (("train", 1), ("test", 2), ("other", 3)):
        save(base / "both" / name, numbered(n))
    (base / "both" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert sorted(numbers(read(["both"], base, cache))) == [1, 2]
    assert numbers(read(["both/test"], base, cache)) == [2]


def test_a_file_that_is_missing_is_told(tmp_path: Path, cache: Cache) -> None:
    save(tmp_path / "saved", numbered(1)).joinpath("data-00000-of-00001.arrow").unlink()
    with pytest.raises(IngestError) as caught:
        read(["saved"], tmp_path, cache)
    assert caught.value.kind == "missing_file"


def test_arrow_files_and_parquet_hold_the_same(tmp_path: Path) -> None:
    rows = table(numbered(*range(200)))
    pq.write_table(rows, tmp_path / "x.parquet")
    with pa.OSFile(str(tmp_path / "file.arrow"), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    with pa.OSFile(str(tmp_path / "stream"), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    expected = [{"messages": ROW["messages"], "n": n} for n in range(200)]
    for name in ("x.parquet", "file.arrow", "stream"):
        assert [
            item.value for item in read_records(tmp_path / name, frozenset()) if isinstance(item, Record)
        ] == expected


def test_a_text_of_the_json_type_that_is_none(tmp_path: Path) -> None:
    bad = pa.array(["{", None, '{"a": NaN}'], pa.string()).cast(pa.json_())
    pq.write_table(pa.table({"x": bad}), tmp_path / "x.parquet")
    items = list(read_records(tmp_path / "x.parquet", frozenset()))
    assert [item.value["x"] for item in items[:2] if isinstance(item, Record)] == ["{", None]
    assert isinstance(items[2], Record)
    assert items[2].notes == {"nan"}


def test_a_cut_stream_gives_what_is_whole(tmp_path: Path) -> None:
    path = save(tmp_path / "saved", numbered(*range(9))) / "data-00000-of-00001.arrow"
    path.write_bytes(path.read_bytes()[:-1500])
    *whole, last = read_records(path, frozenset())
    assert [item.value["n"] for item in whole if isinstance(item, Record)] == list(range(len(whole)))
    assert 0 < len(whole) < 9
    assert isinstance(last, Broken)
    assert "damaged Arrow" in last.reason


@pytest.mark.slow
def test_as_datasets_saves_it(tmp_path: Path, cache: Cache) -> None:
    import datasets

    rows = [{"messages": [USER, assistant(call({"a": 1}))]}, {"messages": [USER, assistant(call({"b": "x"}))]}]
    made = datasets.Dataset.from_list(rows, on_mixed_types="use_json")
    made.save_to_disk(tmp_path / "one", num_shards=2)
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "both")
    for name, count in (("one", 2), ("both", 4)):
        corpus = read([name], tmp_path, cache)
        calls = [turn["calls"][0]["args_json"] for run in rows_of(corpus) for turn in run["turns"] if turn["calls"]]
        assert sorted(calls) == sorted(['{"a":1}', '{"b":"x"}'] * (count // 2))
