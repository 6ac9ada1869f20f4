"""Records out of files of every shape, size and kind of damage."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.runtime.formats import json_stream
from curatec.runtime.formats.containers import read_records
from curatec.runtime.formats.json_stream import Broken, Item, Record, read_json, shape_of
from curatec.runtime.formats.json_text import encode

NONE: frozenset[str] = frozenset()


def items(data: bytes | str, elements: frozenset[str] = NONE) -> list[Item]:
    raw = data.encode() if isinstance(data, str) else data
    return list(read_json(lambda: io.BytesIO(raw), elements))


def values(found: list[Item]) -> list[Any]:
    return [item.value for item in found if isinstance(item, Record)]


def broken(found: list[Item]) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in found if isinstance(item, Broken)]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", "empty"),
        (" \n\r\n", "empty"),
        ("\ufeff", "empty"),
        ('{"a":1}', "object"),
        ('{"a":1}\n{"a":2}', "lines"),
        ('{\n "a": 1\n}', "object"),
        ('{"m": [\n{"role":"user"}\n]}', "object"),
        ('[{"a":1},{"a":2}]', "array"),
        ('[\n{"a":1},\n{"a":2}\n]', "array"),
        ('[{"a":1},\n{"a":2},\n{"a":3}\n]', "array"),
        ('[{"a":1}]\n[{"a":2}]\n', "lines"),
        ('{"a":1\n{"a":2}\n', "lines"),
        ('"text"\n1\n{"a":2}', "lines"),
        ("[\n  \n", "array"),
    ],
)
def test_quirk_a_json_file_may_be_lines(text: str, shape: str) -> None:
    assert shape_of(io.BytesIO(text.encode())) == shape


def test_lines_with_crlf_bom_blank_lines_and_u2028() -> None:
    found = items(b'\xef\xbb\xbf{"a":"x\xe2\x80\xa8y"}\r\n\r\n{"a":2}\r\n')
    assert values(found) == [{"a": "x\u2028y"}, {"a": 2}]
    assert [item.line for item in found] == [1, 3]


def test_quirk_torn_last_line() -> None:
    found = items('{"a":1}\n{"a":2}\n{"a":"thr')
    assert values(found) == [{"a": 1}, {"a": 2}]
    assert broken(found) == [(3, "torn last line")]


def test_a_bad_line_in_the_middle_is_named_and_the_rest_is_read() -> None:
    found = items('{"a":1}\n{"a":}\n{"a":3}\n')
    assert values(found) == [{"a": 1}, {"a": 3}]
    assert broken(found) == [(2, "expecting value at character 6")]
    assert [item.raw for item in found if isinstance(item, Broken)] == ['{"a":}']


def test_bytes_that_are_not_utf8_are_replaced_and_noted() -> None:
    found = items(b'{"a":"x\xff\xfe y"}\n{"a":2}\n')
    assert values(found) == [{"a": "x� y"}, {"a": 2}]
    assert isinstance(found[0], Record)
    assert found[0].notes == {"invalid_utf8"}


@pytest.mark.parametrize("text", ['[{"a":1},{"a":2},{"a":', '[{"a":1},{"a":2},{"a":"x', '[{"a":1},{"a":2},'])
def test_a_truncated_array_keeps_what_is_whole(text: str) -> None:
    found = items(text)
    assert values(found) == [{"a": 1}, {"a": 2}]
    assert len(broken(found)) == 1
    assert broken(found)[0][0] == 3
    assert broken(found)[0][1].startswith("truncated")


def test_quirk_a_file_truncated_to_an_open_bracket() -> None:
    assert broken(items("[\n  \n")) == [(1, "truncated: the array is never closed")]


def test_a_damaged_element_is_passed_over() -> None:
    found = items('[{"a":1},{"a":oops,"b":["]"]},nul,{"a":4}]' + " " * 40)
    assert values(found) == [{"a": 1}, {"a": 4}]
    assert [line for line, _ in broken(found)] == [2, 3]


def test_text_after_an_array_is_told() -> None:
    assert broken(items('[{"a":1}] trailing')) == [(0, "text after the end of the array")]


def test_several_objects_in_one_file() -> None:
    assert values(items('{\n "a": 1\n}\n{\n "a": 2\n}\n')) == [{"a": 1}, {"a": 2}]


def test_a_cut_object_is_told() -> None:
    assert broken(items('{\n "a": [1,\n 2')) == [(1, "truncated: the object is never closed")]


@pytest.fixture
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", 7)
    monkeypatch.setattr(json_stream, "WHOLE_LIMIT", 60)


@pytest.mark.usefixtures("tiny_chunks")
def test_a_long_object_streams_its_list_wherever_the_list_stands() -> None:
    sims = [{"n": number, "text": "é\u2028" * number} for number in range(30)]
    around = {"info": {"x": [1, 2]}, "tasks": [{"id": "a"}]}
    for document in ({**around, "simulations": sims}, {"simulations": sims, **around}):
        found = items(json.dumps(document, ensure_ascii=False), frozenset({"simulations"}))
        assert values(found) == sims
        assert all(isinstance(item, Record) and item.document == around for item in found)


@pytest.mark.usefixtures("tiny_chunks")
def test_a_long_object_without_a_known_list_is_one_record() -> None:
    document = {"steps": ["x" * 50, "y" * 50], "n": 1}
    assert values(items(json.dumps(document), frozenset({"simulations"}))) == [document]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.lists(json_values, max_size=8), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_arrays_read_in_pieces_equal_the_standard_library(
    wanted: list[Any], chunk: int, indent: int | None, escaped: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        found = items(json.dumps(wanted, indent=indent, ensure_ascii=escaped))
    assert json.dumps(json.loads(encode(values(found)))) == json.dumps(wanted)
    assert not broken(found)


def test_containers_are_told_by_their_bytes(tmp_path: Path) -> None:
    text = b'{"a":1}\n{"a":2}\n'
    for packed in (
        text,
        gzip.compress(text),
        zstandard.compress(text),
        zstandard.compress(text[:8]) + zstandard.compress(text[8:]),
    ):
        path = tmp_path / "no-suffix"
        path.write_bytes(packed)
        assert values(list(read_records(path, NONE))) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_cut_compressed_file_keeps_what_could_be_read(tmp_path: Path, pack: Any) -> None:
    rows = "".join(f'{{"a":"{number * 7919 % 10007}{number}"}}\n' for number in range(50_000))
    packed = pack(rows.encode())
    path = tmp_path / "cut"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    found = list(read_records(path, NONE))
    assert broken(found)
    assert all(value == json.loads(line) for value, line in zip(values(found), rows.splitlines(), strict=False))


def test_a_damaged_element_full_of_quotes_costs_no_time() -> None:
    found = items('[{"a":1},{"a":oops "' + '\\"' * 2_000_000 + "}]")
    assert values(found) == [{"a": 1}]
    assert [line for line, _ in broken(found)] == [2]
