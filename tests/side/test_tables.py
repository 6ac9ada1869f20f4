"""Side files: the same table out of every container, and nothing out of a file that does not fit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from curatec.compiler import plan
from curatec.compiler.types import Type
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime.side.sealed import Sealed, read_sealed
from curatec.runtime.side.tables import Table, read_table

RECORDS: list[dict[str, Any]] = [
    {"task": "b", "resolved": False, "score": 0.5, "n": 3, "note": 'says "no", twice\nand more'},
    {"task": "a", "resolved": True, "score": 1, "n": -7, "note": "größe 東京"},
    {"task": "12", "resolved": None, "score": None, "n": None, "note": None},
]
COLUMNS = (("resolved", Type.BOOL), ("score", Type.FLOAT), ("n", Type.INT), ("note", Type.TEXT))
CSV = 'task,resolved,score,n,note\nb,false,0.5,3,"says ""no"", twice\nand more"\n\na,True,1,-7,größe 東京\n12,,,,\n'
EXPECTED = {
    "task": ["12", "a", "b"],
    "resolved": [None, True, False],
    "score": [None, 1.0, 0.5],
    "n": [None, -7, 3],
    "note": [None, "größe 東京", 'says "no", twice\nand more'],
}


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)


def keyed(records: list[dict[str, Any]]) -> str:
    return json.dumps({r["task"]: {k: v for k, v in r.items() if k != "task"} for r in records}, indent=1)


def numbered(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The id that is a number, written as one."""
    return [r | {"task": 12} if r["task"] == "12" else r for r in records]


def parquet(path: Path) -> None:
    pl.DataFrame(RECORDS).write_parquet(path)


TEXTS: dict[str, str] = {
    "list.json": json.dumps(RECORDS, indent=2),
    "numbers.json": json.dumps(numbered(RECORDS)),
    "keyed.json": keyed(RECORDS),
    "lines.jsonl": lines(RECORDS),
    "backwards.jsonl": lines(RECORDS[::-1] + RECORDS),
    "cells.csv": CSV,
    "marked.csv": "\ufeff" + CSV.replace("\n", "\r\n").replace("twice\r\n", "twice\n"),
}


def table(
    folder: Path, *patterns: str, columns: tuple[tuple[str, Type], ...] = COLUMNS, key_type: Type = Type.TEXT
) -> Table:
    declared = plan.Table("verdicts", patterns, "task", key_type, columns, str(folder))
    return read_table(declared, folder, ())


def sealed(folder: Path, pattern: str, id: str | None = "task", text: str | None = None) -> Sealed:
    return read_sealed(plan.SealedSet("hidden", (pattern,), id, text, str(folder)), folder, ())


def fault(read: Callable[[], object]) -> Diagnostic:
    with pytest.raises(CuratecError) as raised:
        read()
    [found] = raised.value.diagnostics
    assert found.help
    return found


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_container_gives_the_same_table(tmp_path: Path, name: str, packed: str) -> None:
    raw = TEXTS[name].encode()
    pack: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        ".gz": gzip.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
    (tmp_path / f"{name}{packed}").write_bytes(pack[packed](raw))
    parquet(tmp_path / "same.parquet")
    found, same = table(tmp_path, f"{name}{packed}"), table(tmp_path, "same.parquet")
    assert found.frame.to_dict(as_series=False) == EXPECTED
    assert found.frame.schema == same.frame.schema
    assert same.frame.equals(found.frame)
    assert found.digest == same.digest


def test_files_together_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    for i, record in enumerate(RECORDS):
        text = json.dumps(record) if i else keyed([record])
        (tmp_path / "reports" / f"{i}.json").write_text(text)
    (tmp_path / "all.csv").write_text(CSV)
    assert table(tmp_path, "reports/*.json").digest == table(tmp_path, "all.csv").digest
    # Equal rows in two files are one.
    assert table(tmp_path, "reports", "all.csv").frame.height == 3


def test_the_digest_is_over_what_was_taken(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(RECORDS))
    (tmp_path / "b.jsonl").write_text(lines([r | {"who": "me"} for r in RECORDS]))
    (tmp_path / "c.jsonl").write_text(lines([r | {"n": 4} if r["task"] == "b" else r for r in RECORDS]))
    a, b, c = (table(tmp_path, f"{name}.jsonl").digest for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    ("type_", "fits", "misfits"),
    [
        (Type.BOOL, [True, False], [1, 0, "true", "yes", 1.0, [], {}]),
        (Type.INT, [0, -3, 4.0, 2**63 - 1], [True, "3", 2.5, 2**63, 10**30, [1]]),
        (Type.FLOAT, [0, -3, 2.5, 1e300], [True, "2.5", 1e400, [], {}]),
        (Type.TEXT, ["", "12", "é"], [12, True, 0.5, ["a"], {"a": 1}]),
    ],
)
def test_values_are_read_strictly(tmp_path: Path, type_: Type, fits: list[Any], misfits: list[Any]) -> None:
    columns = (("x", type_),)
    rows = [{"task": str(i), "x": value} for i, value in enumerate([*fits, None])]
    (tmp_path / "good.jsonl").write_text(lines([*rows, {"task": "bare"}]))
    read = dict(table(tmp_path, "good.jsonl", columns=columns).frame.iter_rows())
    assert read == {str(i): value for i, value in enumerate(fits)} | {str(len(fits)): None, "bare": None}
    for value in misfits:
        text = json.dumps([{"task": "a", "x": None}, {"task": "b", "x": value}]).replace("Infinity", "1e400")
        (tmp_path / "bad.json").write_text(text)
        found = fault(lambda: table(tmp_path, "bad.json", columns=columns))
        assert found.code == "C0630"
        assert "bad.json, record 2" in found.message
        assert "column `x`" in found.message
        if isinstance(value, str):
            assert f'"{value}"' in found.message


@pytest.mark.parametrize(
    ("type_", "fits", "misfits"),
    [
        (Type.BOOL, {"true": True, "FALSE": False, "True": True}, ["1", "yes", " true", "t"]),
        (Type.INT, {"3": 3, "-4": -4, "+5": 5, "6.0": 6}, ["2.5", "1e3", "0x1", "3 ", "٣", "9223372036854775808"]),
        (Type.FLOAT, {"3": 3.0, ".5": 0.5, "-1e3": -1000.0, "2.": 2.0}, ["nan", "inf", "1,5", "1_000", "1e999"]),
        (Type.TEXT, {"3": "3", " a ": " a ", "null": "null"}, []),
    ],
)
def test_cells_of_csv(tmp_path: Path, type_: Type, fits: dict[str, Any], misfits: list[str]) -> None:
    columns = (("x", type_),)
    (tmp_path / "good.csv").write_text("x,task\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate([*fits, ""])))
    read = table(tmp_path, "good.csv", columns=columns).frame.sort(pl.col("task").cast(pl.Int64))["x"].to_list()
    assert read == [*fits.values(), None]
    for cell in misfits:
        (tmp_path / "bad.csv").write_text(f'task,x\n"a\nb",\nc,"{cell}"\n')
        found = fault(lambda: table(tmp_path, "bad.csv", columns=columns))
        assert found.code == "C0630"
        assert f'bad.csv, line 4: "{cell}" in column `x`' in found.message


def test_keys_have_their_own_type(tmp_path: Path) -> None:
    for name, text in {
        "a.json": '{"3": {"x": true}, "-4": {"x": null}}',
        "b.csv": "task,x\n3,true\n-4,\n",
        "c.jsonl": '{"task": 3, "x": true}\n{"task": -4}\n',
    }.items():
        (tmp_path / name).write_text(text)
        found = table(tmp_path, name, columns=(("x", Type.BOOL),), key_type=Type.INT)
        assert found.frame.rows() == [(-4, None), (3, True)]
    (tmp_path / "d.json").write_text('{"three": {"x": true}}')
    found_ = fault(lambda: table(tmp_path, "d.json", columns=(("x", Type.BOOL),), key_type=Type.INT))
    assert (found_.code, '"three" in column `task`' in found_.message) == ("C0630", True)


TWICE = {
    "two.jsonl": '{"task":"a","n":1}\n{"task":"b","n":1}\n{"task":"a","n":2}\n',
    "two.json": '{"a":{"n":1},"b":{"n":1},"a":{"n":2}}',
    "two.csv": "task,n\na,1\nb,1\na,2\n",
    "mixed.json": '[{"task":"1","n":1},{"task":1,"n":null}]',
}


@pytest.mark.parametrize("name", TWICE)
def test_a_key_stands_once(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TWICE[name])
    found = fault(lambda: table(tmp_path, name, columns=(("n", Type.INT),)))
    assert found.code == "C0629"
    key = '"1"' if name == "mixed.json" else '"a"'
    places = {
        "two.jsonl": ["line 1", "line 3"],
        "two.json": ["`a`"],
        "two.csv": ["line 2", "line 4"],
        "mixed.json": ["record 1", "record 2"],
    }
    assert all(part in found.message for part in [key, *places[name]]), found.message


@pytest.mark.parametrize(
    ("name", "text", "code", "told"),
    [
        ("a.jsonl", '{"task":"a","resolve":true}\n', "C0630", "no record of `verdicts` has a column `resolved`"),
        ("a.jsonl", '{"name":"a","resolved":true}\n', "C0630", "has a column `task`"),
        ("a.jsonl", '{"task":"a","resolved":true}\n{"resolved":true}\n', "C0630", "line 2: the key `task` is null"),
        ("a.jsonl", '{"task":"a","resolved":true}\n{"task":\n', "C0602", "record 2"),
        ("a.jsonl", '{"task":"a","resolved":true,"resolved":false}\n', "C0630", "`resolved` stands there twice"),
        ("a.jsonl", '{"task":true,"resolved":true}\n', "C0630", "true in column `task` is no id"),
        ("a.json", '["a", "b"]', "C0630", "record 1 is no object"),
        ("a.csv", "task,resolved\na,true,1\n", "C0630", "line 2: 3 cells under 2 columns"),
        ("a.csv", "task,resolved,task\na,true,b\n", "C0630", "two columns `task`"),
        ("a.csv", 'task,resolved\n"a,true\n', "C0602", "a.csv, line"),
        ("b.csv", "", "C0603", "there is no file a.csv"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, name: str, text: str, code: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    found = fault(lambda: table(tmp_path, name.replace("b.csv", "a.csv"), columns=(("resolved", Type.BOOL),)))
    assert (found.code, told in found.message) == (code, True), found.message
    assert str(tmp_path) not in found.message


def test_a_near_name_is_offered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,resolve,x\na,true,1\n")
    found = fault(lambda: table(tmp_path, "a.csv", columns=(("resolved", Type.BOOL),)))
    assert found.help == ("did you mean `resolve`?", "there are `task`, `resolve`, `x`")


def test_damaged_files(tmp_path: Path) -> None:
    whole = gzip.compress(CSV.encode() * 50)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "latin.csv").write_bytes("task,resolved\ngröße,true\n".encode("latin-1"))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing more")
    (tmp_path / "cut.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(lines(RECORDS * 50).encode())[:60])
    for name in ("cut.csv.gz", "latin.csv", "bad.parquet", "cut.jsonl.zst"):
        found = fault(lambda name=name: table(tmp_path, name))  # type: ignore[misc]
        assert (found.code, name in found.message) == ("C0602", True), found.message


def test_advice_fits_what_was_declared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,resolved\na,yes\n")
    [told] = fault(lambda: table(tmp_path, "a.csv", columns=(("resolved", Type.BOOL),))).help
    assert told == "declare what the file holds, `resolved: text`, or write the value as true or false"
    (tmp_path / "b.jsonl").write_text('{"task": "a", "note": 5}\n')
    [told] = fault(lambda: sealed(tmp_path, "b.jsonl", text="note")).help
    assert "declare" not in told  # a test set declares no types
    (tmp_path / "c.tsv").write_text("task\tresolved\na\ttrue\n")
    assert "`.csv`" in fault(lambda: table(tmp_path, "c.tsv")).help[-1]


def test_files_stay_in_the_project(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "else"
    inside.mkdir()
    outside.mkdir()
    (outside / "a.csv").write_text(CSV)
    declared = plan.Table("verdicts", ("../else/a.csv",), "task", Type.TEXT, COLUMNS, str(inside))
    assert fault(lambda: read_table(declared, inside, ())).code == "C0411"
    assert read_table(declared, inside, (outside,)).frame.height == 3


def test_long_cells_and_empty_tables(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(f"task,note\na,{'x' * 300_000}\n")
    assert table(tmp_path, "long.csv", columns=(("note", Type.TEXT),)).frame["note"].str.len_chars().to_list() == [
        300_000
    ]
    for name, text in {"none.csv": "task,n\n", "none.json": "[]", "none.jsonl": ""}.items():
        (tmp_path / name).write_text(text)
        empty = table(tmp_path, name)
        assert (empty.frame.height, empty.frame.columns) == (0, ["task", "resolved", "score", "n", "note"])


# ---- test sets ----


@pytest.mark.parametrize("name", TEXTS)
def test_every_container_gives_the_same_set(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TEXTS[name], newline="")
    found = sealed(tmp_path, name, text="note")
    assert found.items.to_dict(as_series=False) == {"id": EXPECTED["task"], "text": EXPECTED["note"]}
    parquet(tmp_path / "same.parquet")
    assert found.digest == sealed(tmp_path, "same.parquet", text="note").digest
    assert sealed(tmp_path, name).items["id"].to_list() == EXPECTED["task"]
    assert sealed(tmp_path, "lines.jsonl" if name == "lines.jsonl" else name, id="task").digest != found.digest


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("[]", "C0634", "test set `hidden` has no item"),
        ('[{"id": "a"}]', "C0630", "no record of `hidden` has a column `task`"),
        ('[{"task": "a"}, {"task": null, "note": null}]', "C0630", "record 2 has neither id nor text"),
        ('[{"task": null, "note": " … "}, {"task": null, "note": ""}]', "C0634", "no item of test set `hidden` has"),
        ('[{"task": "a", "note": 5}]', "C0630", "5 in column `note` is not a text"),
    ],
)
def test_a_set_without_items(tmp_path: Path, text: str, code: str, told: str) -> None:
    (tmp_path / "a.json").write_text(text)
    found = fault(lambda: sealed(tmp_path, "a.json", text="note" if "note" in text else None))
    assert (found.code, told in found.message) == (code, True), found.message
