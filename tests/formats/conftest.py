"""Helpers of the ingest tests: write a file, read it, look at the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.arrow_file import read as read_part
from curatec.runtime.cache import Cache
from curatec.runtime.ingest import Corpus, ingest

REPO = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Read:
    """What an ingest gave, as plain rows: runs in the order of the file, each with its `turns`."""

    corpus: Corpus
    runs: list[dict[str, Any]]

    @property
    def run(self) -> dict[str, Any]:
        assert len(self.runs) == 1
        return self.runs[0]

    @property
    def turns(self) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = self.run["turns"]
        return turns

    @property
    def call(self) -> dict[str, Any]:
        calls = [call for turn in self.turns for call in turn["calls"]]
        assert len(calls) == 1
        first: dict[str, Any] = calls[0]
        return first


def rows_of(corpus: Corpus) -> list[dict[str, Any]]:
    """All runs of a corpus with their turns, by (file name, line)."""
    runs = []
    for part in corpus.parts:
        turns = read_part(part.turns).to_dicts()
        for row in read_part(part.runs).to_dicts():
            row["turns"] = [turn for turn in turns if turn["row"] == row["row"]]
            row["name"] = part.files[row["file"]]
            runs.append(row)
    return sorted(runs, key=lambda row: (row["name"], row["line"], row["depth"]))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def read(tmp_path: Path, cache: Cache) -> Callable[..., Read]:
    """`read(content, format=..., name=...)`: bytes and text are written as they are, other values as JSON."""

    def run(content: Any, format: str | None = None, name: str = "data.json") -> Read:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
        corpus = ingest([path], base=tmp_path, format=format, cache=cache)
        return Read(corpus, rows_of(corpus))

    return run


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real trajectories; tests that need it are skipped where it is absent."""
    root = Path(os.environ.get("CURATEC_SHARED_DATA", REPO / "../shared/data"))
    if not root.is_dir():
        pytest.skip("no real data here")
    return root


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def chat(*messages: Any, **facts: Any) -> dict[str, Any]:
    return {"messages": list(messages), **facts}


USER = {"role": "user", "content": "go"}


def assistant(*calls: Any, **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **members}


def call(arguments: Any, name: str = "look", id: str | None = "c1") -> dict[str, Any]:
    made: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if id is None else {"id": id, **made}


def result(content: str = "ok", id: str | None = "c1", **members: Any) -> dict[str, Any]:
    made = {"role": "tool", "content": content, **members}
    return made if id is None else {**made, "tool_call_id": id}
