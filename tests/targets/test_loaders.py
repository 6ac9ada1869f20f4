"""Converted files in the loaders that trainers use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.cache import Cache
from tests.targets.conftest import Said, into, read, record
from tests.targets.rules import RULES

pytestmark = pytest.mark.slow

SCHEMAS = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"a": {}}}}},
    {"type": "function", "function": {"name": "put", "parameters": {"type": "object", "properties": {"b": {"x": 1}}}}},
]


def made(tmp_path: Path, name: str, ending: str) -> Path:
    """Two runs of unlike shape: other tools, other arguments, one without reasoning."""
    runs = []
    for number, schema in enumerate(SCHEMAS):
        call = ("look", '{"a": [1, null]}') if number else ("put", '{"b": {"x": "1"}}')
        turns = [
            Said("user", "go"), Said("assistant", "", "why" if number else None, (call,), 1.0),
            Said("tool", "ok", answers=(1, 0)), Said("assistant", "done", None, (), 1.0),
        ]  # fmt: skip
        runs.append(record(turns, [schema]) | {"reward": number, "meta": {"deep": [schema, number]}})
    (tmp_path / "in.json").write_text(json.dumps(runs))
    out = tmp_path / f"{name}.{ending}"
    into(read(tmp_path / "in.json", Cache(tmp_path / "cache")), name, out)
    return out


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(("ending", "builder"), [("parquet", "parquet"), ("jsonl", "json")])
def test_datasets_give_rows_that_keep_the_rules(tmp_path: Path, name: str, ending: str, builder: str) -> None:
    import datasets

    path = made(tmp_path, name, ending)
    rows = datasets.load_dataset(builder, data_files=str(path), split="train", cache_dir=str(tmp_path / "hf"))
    assert len(rows) == 2
    for row in rows:
        RULES[name](({"system": None} if name == "sharegpt" else {}) | without_nulls(row))


def without_nulls(value: Any) -> Any:
    """Members that a row lacks are null in a table."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_trl_shows_exactly_what_was_there(tmp_path: Path) -> None:
    import datasets
    from trl.data_utils import is_conversational

    from tests.training import tokenizer

    rows = datasets.load_dataset("parquet", data_files=str(made(tmp_path, "trl", "parquet")), split="train")
    shown = [tokenizer().apply_chat_template(row["messages"], tools=row["tools"], tokenize=False) for row in rows]
    assert all(map(is_conversational, rows))
    assert '{"name": "put", "arguments": {"b": {"x": "1"}}}' in shown[0]
    assert '{"name": "look", "arguments": {"a": [1, null]}}' in shown[1]
    assert '"properties": {"a": {}}' in shown[0]
    assert "null" not in shown[0]


def test_pandas_gives_verl_nested_messages(tmp_path: Path) -> None:
    import pandas

    frame = pandas.read_parquet(made(tmp_path, "verl", "parquet"), dtype_backend="pyarrow")
    for messages, tools in zip(frame["messages"], frame["tools"], strict=True):
        row = {"messages": [without_nulls(message) for message in messages], "tools": tools}
        assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
        RULES["verl"](row)
