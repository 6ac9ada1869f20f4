"""The same runs and spec give the same bytes: however often, on any number of threads, in whatever files runs stand.

Apart: `run` in the manifest (times, host, paths) and `rejects.jsonl`, which names files.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SPEC, Place, corpus, digests, write_lines

RECORDS = corpus(40)


def _content(out: Path) -> dict[str, Any]:
    """Digests of all files; of the manifest what is the same on every machine."""
    found: dict[str, Any] = digests(out)
    del found["rejects.jsonl"]
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    del manifest["run"]
    return found | {"manifest.json": manifest}


def _compiled(root: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    Place(root)("compile", "small.curate", "-o", "out", "-q", *arguments, **environment)
    return _content(root / "out")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("expected")
    (root / "small.curate").write_text(SPEC, encoding="utf-8")
    write_lines(root / "runs" / "a.jsonl", RECORDS)
    first = _compiled(root)
    assert _compiled(root) == first  # once more, over the former output and from the cache
    return first


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "small.curate").write_text(SPEC, encoding="utf-8")
    (tmp_path / "runs").mkdir()
    return tmp_path


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_and_cache(spec: Path, expected: dict[str, Any], threads: str) -> None:
    write_lines(spec / "runs" / "a.jsonl", RECORDS)
    assert _compiled(spec, "--threads", threads, "--no-cache") == expected


@pytest.mark.parametrize("memory", [(), ("--memory", "64MB", "--threads", "1"), ("--memory", "1.5 GiB")])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engine_and_memory(spec: Path, expected: dict[str, Any], engine: str, memory: tuple[str, ...]) -> None:
    write_lines(spec / "runs" / "a.jsonl", RECORDS)
    assert _compiled(spec, "--engine", engine, *memory, "--no-cache") == expected
    assert json.loads((spec / "out" / "manifest.json").read_text(encoding="utf-8"))["run"]["engine"] == engine


def test_what_one_engine_kept_the_other_takes(spec: Path, expected: dict[str, Any]) -> None:
    write_lines(spec / "runs" / "a.jsonl", RECORDS)
    assert _compiled(spec, "--engine", "duckdb") == expected
    (spec / "small.curate").write_text(SPEC, encoding="utf-8")
    assert _compiled(spec, "--engine", "polars") == expected


def _renamed(runs: Path) -> None:
    write_lines(runs / "zz" / "other name.jsonl", RECORDS)


def _reordered(runs: Path) -> None:
    mixed = list(RECORDS)
    random.Random(5).shuffle(mixed)
    write_lines(runs / "a.jsonl", mixed)


def _split(runs: Path) -> None:
    for number in range(7):
        write_lines(runs / f"part-{6 - number}.jsonl", RECORDS[number::7])


def _as_array(runs: Path) -> None:
    (runs / "a.json").write_text(json.dumps(RECORDS, indent=2), encoding="utf-8")


def _zipped(runs: Path) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    (runs / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


@pytest.mark.parametrize(
    "lay_out", [_renamed, _reordered, _split, _as_array, _zipped], ids=lambda f: f.__name__.strip("_")
)
def test_files(spec: Path, expected: dict[str, Any], lay_out: Callable[[Path], None]) -> None:
    lay_out(spec / "runs")
    (spec / "small.curate").write_text(SPEC.replace("runs/*", "runs"), encoding="utf-8")
    found = _compiled(spec)
    # The spec's text differs by the path; what is made of it must not.
    aside = {"manifest.json", "README.md", "report.html"}
    assert {k: v for k, v in found.items() if k not in aside} == {k: v for k, v in expected.items() if k not in aside}
    ours, theirs = found["manifest.json"], expected["manifest.json"]
    for name in ("inputs", "steps", "sinks", "conservation", "plan_digest", "expectations"):
        assert ours[name] == theirs[name], name


def test_a_broken_line_changes_nothing_else(spec: Path, expected: dict[str, Any]) -> None:
    write_lines(spec / "runs" / "a.jsonl", RECORDS, broken='{"messages": \n')
    found = _compiled(spec)
    assert all(found[name] == expected[name] for name in found if name.endswith((".parquet", ".jsonl")))


def test_a_rename_and_a_comment_change_no_row(spec: Path, expected: dict[str, Any]) -> None:
    write_lines(spec / "runs" / "a.jsonl", RECORDS)
    (spec / "small.curate").write_text(SPEC.replace("winners:", "good: ") + "# the end\n", encoding="utf-8")
    found = _compiled(spec)
    rows = [name for name in found if name.startswith(("sft/", "memory/", "runs", "lineage"))]
    assert rows
    assert all(found[name] == expected[name] for name in rows)
    assert found["ledger.parquet"] != expected["ledger.parquet"]  # it speaks labels
    assert found["manifest.json"]["plan_digest"] == expected["manifest.json"]["plan_digest"]
