"""Whole compiles: every file of OUT has the same bytes on both engines, within any memory and on any threads."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.compile import Request, compile_spec
from tests import every_step
from tests.cookbook.conftest import DATA, SPECS, Kitchen

COOKBOOK = [
    (path.stem, strategy)
    for path in sorted((SPECS / "cookbook").glob("*.curate"))
    for strategy in re.findall(r"^strategy (\w+)", path.read_text(), re.MULTILINE)
]
BOUND = 64 * 10**6  # bytes: the least that may be asked for


def out(spec: Path, folder: Path, engine: str, *allowed: Path, strategy: str | None = None, **more: Any) -> Path:
    made = folder / f"{spec.stem}-{strategy}-{engine}{''.join(sorted(more))}"
    asked = Request(str(spec), strategy, made, allowed=allowed, engine=engine, no_cache=True, **more)
    compile_spec(asked)
    return made


def files(folder: Path) -> dict[str, Any]:
    """Bytes of each file; of the manifest all but what tells of this run."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    manifest = json.loads(found["manifest.json"])
    assert manifest.pop("run")["engine"] in folder.name
    return {**found, "manifest.json": manifest}


def agree(*outs: Path) -> None:
    first, *others = map(files, outs)
    for other in others:
        assert first.keys() == other.keys()
        assert [name for name in first if first[name] != other[name]] == []


def test_quickstart(tmp_path: Path) -> None:
    spec = SPECS / "quickstart" / "service.curate"
    agree(*(out(spec, tmp_path, engine) for engine in ("polars", "duckdb")))


def test_every_step(tmp_path: Path) -> None:
    spec = every_step.write(tmp_path)
    bounded = [out(spec, tmp_path, engine, memory=BOUND, threads=1) for engine in ("polars", "duckdb")]
    agree(out(spec, tmp_path, "polars"), out(spec, tmp_path, "duckdb"), *bounded)


@pytest.mark.parametrize(("job", "strategy"), COOKBOOK)
def test_cookbook(kitchen: Kitchen, tmp_path: Path, job: str, strategy: str) -> None:
    spec = kitchen.folder / f"{job}.curate"
    allowed = (DATA, kitchen.folder.parent)
    agree(*(out(spec, tmp_path, engine, *allowed, strategy=strategy) for engine in ("polars", "duckdb")))


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "tau_bench").exists(), reason="the collected runs are not there")
def test_real_runs(tmp_path: Path) -> None:
    spec = Path(shutil.copy(SPECS / "tau_service.curate", tmp_path))
    for name in ("tau_bench", "tau2_bench"):
        os.symlink(DATA / name, tmp_path / name)
    agree(*(out(spec, tmp_path, engine, DATA) for engine in ("polars", "duckdb")))
