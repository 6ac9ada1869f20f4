"""Files: order, bytes, and what readers make of them."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import duckdb
import orjson
import polars as pl
import pyarrow.parquet as pq
import pytest

from curatec.runtime.conversation import texts
from curatec.runtime.sinks import buckets as b
from curatec.runtime.sinks import columns as c
from curatec.runtime.sinks import files as f
from curatec.runtime.sinks import sft

from .conftest import TOOLS, Make, calls, files_of, result, run, says, system, user

pytestmark = pytest.mark.usefixtures("parts")

BODY = """
  split by task { train 60% validation 40% } seed 3
  emit sft { loss on assistant where count(calls) == 0 }
  emit rl { prompt until last assistant }
  emit memory { key task_text value final_answer }
  emit preference { pair within task chosen where success rejected where not success }
"""


def corpus(n: int = 40) -> list[dict[str, Any]]:
    """`n` tasks with two runs each, one of them good."""
    return [
        run(
            str(i % n),
            system(),
            user(f"Do {i % n}"),
            calls((None, "find", {"id": i}), text="é" * (i % 7)),
            result(None, f"r{i}"),
            says(f"Answer {i}"),
            tools=TOOLS if i % 2 else None,
            reward=float(i < n),
            success=i < n,
        )
        for i in range(2 * n)
    ]


def test_bytes_do_not_depend_on_how_the_input_lies(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    records = corpus()
    first = made(records, BODY, name="a")
    split = made(records[::-1], BODY, name="b", files=3)
    monkeypatch.setattr(b, "_FLUSH", 1000)
    monkeypatch.setattr(b.Buckets.__init__, "__defaults__", (4,))
    monkeypatch.setattr(b, "KEPT", 5000)
    monkeypatch.setattr(sft, "SIZE", 4)
    monkeypatch.setattr(f, "_AT_ONCE", 2000)
    monkeypatch.setattr(texts, "_PORTION", 3)
    tiny = made(records[7:] + records[:7], BODY, name="c", files=5)
    assert len(files_of(first.out)) == 18
    assert files_of(first.out) == files_of(split.out) == files_of(tiny.out)
    assert first.executed.ledger.table().equals(split.executed.ledger.table())
    assert [p.name for p in first.out.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("form", ["trl", "verl", "sharegpt"])
def test_lines_are_the_same_however_many_are_written_at_once(
    made: Make, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    whole = made(corpus(), f"emit sft {{ loss on assistant format {form} }}", name="a")
    monkeypatch.setattr(f, "_AT_ONCE", 1500)
    assert files_of(made(corpus(), f"emit sft {{ loss on assistant format {form} }}", name="b").out) == files_of(
        whole.out
    )


def test_every_sink_accounts_for_every_run(made: Make) -> None:
    got = made(corpus(), BODY)
    for sink in ("sft", "rl", "memory", "preference"):
        got.conserved(sink)
        listed = {f"{sink}/{p.name}" for p in (got.out / sink).iterdir()}
        assert set(got.written[sink].files) == listed


def test_splits_have_their_files(made: Make) -> None:
    got = made(corpus(), BODY)
    train, validation = got.rows("sft"), got.rows("sft", "validation")
    assert len(train) + len(validation) == 80
    assert {row["split"] for row in train} == {"train"}
    assert {row["split"] for row in validation} == {"validation"}
    assert not {row["task"] for row in train} & {row["task"] for row in validation}
    assert [(row["task"], row["example_id"]) for row in train] == sorted(
        (row["task"], row["example_id"]) for row in train
    )


def test_buckets_give_back_what_they_took_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(b, "_FLUSH", 64)
    monkeypatch.setattr(b, "_PORTION", 32)
    sort = b.Buckets(tmp_path, size=3)
    positions = [i * 37 % 50 * 1009 for i in range(50)]
    for position in positions:
        sort.add(position, {"position": position, "text": "x" * position})
    assert [(p, r["position"], len(r["text"])) for p, r in sort] == [(p, p, p) for p in sorted(positions)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flush", [1, 2000, 1 << 20])
def test_frames_are_sorted_in_memory_and_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: int) -> None:
    monkeypatch.setattr(b, "_FLUSH", flush)
    sort = b.Sorted(tmp_path, size=7)
    rows = pl.DataFrame(
        {"position": [i * 37 % 50 for i in range(50)], "text": ["é" * i if i % 3 else None for i in range(50)]},
        schema={"position": pl.UInt64, "text": pl.String},
    ).with_columns(texts=pl.concat_list("text", "text"))
    for start, end in pairwise((0, 20, 21, 40, 50)):
        sort.add(rows[start:end])
    found = list(sort)
    assert pl.concat(found).equals(rows.sort("position"))
    assert [own["position"].to_list() for own in found][:2] == [list(range(7)), list(range(7, 14))]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cuts", [[10], [1] * 10, [3, 0, 6, 1]], ids=str)
def test_row_groups_have_a_fixed_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    monkeypatch.setattr(f, "ROW_GROUP", 4)
    rows = pl.DataFrame({"n": range(10)})
    with f.Files(tmp_path, (c.Col("n", "int", ""),)) as files:
        for end, height in zip(accumulate(cuts), cuts, strict=True):
            files.add(rows[end - height : end], "train")
    meta = pq.read_metadata(tmp_path / "train.parquet")
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [4, 4, 2]
    assert pq.read_table(tmp_path / "train.parquet")["n"].to_pylist() == list(range(10))
    assert (tmp_path / "train.jsonl").read_text() == "".join(f'{{"n":{i}}}\n' for i in range(10))


def test_long_rows_make_short_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f, "_GROUP_BYTES", 30)
    rows = [{"s": "x" * n} for n in (1, 1, 1, 40, 1, 1)]  # a line has 9 bytes more
    with f.Files(tmp_path, (c.Col("s", "text", ""),)) as files:
        files.add_rows(rows, "train")
    meta = pq.read_metadata(tmp_path / "train.parquet")
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [3, 1, 2]


def test_lines_and_parquet_hold_the_same_text(made: Make) -> None:
    got = made(corpus(3), "emit sft { loss on assistant }")
    for line, row in zip((got.out / "sft" / "train.jsonl").read_bytes().splitlines(), got.texts("sft"), strict=True):
        assert line == c.json_line(_columns(got), row).rstrip(b"\n")
        assert orjson.loads(line)["messages"] == [orjson.loads(text) for text in row["messages"]]


def _columns(got: Any) -> Any:
    return sft.columns(got.executed.plan.sinks[0].target)


def test_plain_readers_see_texts(made: Make) -> None:
    path = made(corpus(3), "emit sft { loss on assistant }").out / "sft" / "train.parquet"
    frame = pl.read_parquet(path)
    roles = frame.select(
        pl.col("messages").list.eval(pl.element().ext.storage().str.json_path_match("$.role"))
    ).to_series()
    assert roles[0].to_list() == ["system", "user", "assistant", "tool", "assistant"]
    with duckdb.connect() as engine:
        found = engine.execute(f"select messages[3] ->> '$.tool_calls[0].function.name' from '{path}'").fetchall()
    assert found == [("find",)] * 6


def test_an_empty_sink_has_files_with_columns(made: Make) -> None:
    got = made(corpus(2), "emit sft { none: drop where true loss on assistant }")
    assert got.written["sft"].rows == {}
    assert pl.read_parquet(got.out / "sft" / "train.parquet").width == 13
    assert (got.out / "sft" / "train.jsonl").read_bytes() == b""
