"""The cookbook's specs in a folder with runs: made ones, or the published ones where they have been collected."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curatec.runtime.answers.output import open_output
from curatec.runtime.answers.verify import verify
from curatec.runtime.compile import Request, compile_spec
from tests.cookbook import made

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"
PAGES = ROOT / "docs" / "cookbook"
DATA = Path(os.environ.get("CURATEC_SHARED_DATA", ROOT.parent / "shared" / "data"))
PUBLISHED = ("tau_bench", "tau2_bench", "llamafactory_sharegpt", "swe_agent")
TAU_FILES = (
    ("gpt-4o-airline.json", "airline", "gpt-4o"),
    ("*-qwen2.5-7b.json", "airline", "qwen2.5-7b"),
    ("retail-assertions.json", "retail", None),
)
Json = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """An OUT."""

    out: Path

    @cached_property
    def manifest(self) -> Json:
        read: Json = json.loads((self.out / "manifest.json").read_text())
        return read

    def rows(self, sink: str) -> list[Json]:
        """All rows of a sink, train and validation, as plain `json` reads them."""
        files = sorted((self.out / sink).glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]

    @cached_property
    def runs(self) -> dict[str, Json]:
        """Facts of the runs that entered, by id."""
        return {run["id"]: run for run in pl.read_parquet(self.out / "runs.parquet").iter_rows(named=True)}

    def run(self, row: Json) -> Json:
        """The run that a row comes from."""
        [parent] = row["parents"]
        return self.runs[parent.partition("#")[0]]

    def ledger(self, label: str) -> list[Json]:
        """What a step dropped."""
        return self._entries((pl.col("label") == label) & (pl.col("action") == "dropped"))

    def edits(self, reason: str) -> list[Json]:
        """What a sink did to runs for a reason."""
        return self._entries((pl.col("reason") == reason) & (pl.col("action") == "edited"))

    def edits_of(self, label: str) -> list[Json]:
        """What a step did to runs that it kept."""
        return self._entries((pl.col("label") == label) & (pl.col("action") == "edited"))

    def _entries(self, where: pl.Expr) -> list[Json]:
        return list(pl.read_parquet(self.out / "ledger.parquet").filter(where).iter_rows(named=True))


@dataclass(frozen=True)
class Kitchen:
    """`folder` holds the specs and `runs/`; each job is compiled once."""

    folder: Path
    real: bool
    done: dict[tuple[str, str | None], Done] = field(default_factory=dict)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def __call__(self, job: str, strategy: str | None = None) -> Done:
        if (job, strategy) not in self.done:
            out = self.folder / "out" / f"{job}-{strategy}"
            allowed = (DATA, self.folder.parent)
            compile_spec(Request(str(self.folder / f"{job}.curate"), strategy, out, allowed=allowed))
            _, faults = verify(open_output(out))
            assert not faults, faults
            self.done[job, strategy] = Done(out)
        return self.done[job, strategy]

    def variant(self, name: str, spec: str) -> Done:
        """Another spec over the same runs."""
        (self.folder / f"{name}.curate").write_text(spec)
        return self(name)

    @cached_property
    def tau(self) -> list[tuple[str, str | None, Json]]:
        """tau-bench's records by nothing but `json`: domain, model, record."""
        found: list[tuple[str, str | None, Json]] = []
        for name, domain, model in TAU_FILES:
            for path in sorted(self.runs.glob(f"tau_bench/**/{name}")):
                found += [(domain, model, record) for record in json.loads(path.read_text())]
        return found

    @cached_property
    def tau2(self) -> list[tuple[Json, Json, Json]]:
        """tau2's simulations: document, its task, simulation."""
        found = []
        for path in sorted(self.runs.glob("tau2_bench/**/trajectories/*.json")):
            document = json.loads(path.read_text())
            tasks = {task["id"]: task for task in document["tasks"]}
            found += [(document, tasks[one["task_id"]], one) for one in document["simulations"]]
        return found

    @cached_property
    def swe(self) -> list[tuple[str, Json]]:
        """SWE-agent's files: the instance that the name says, and what is in it."""
        return [(path.stem, json.loads(path.read_text())) for path in sorted(self.runs.glob("swe_agent/**/*.traj"))]

    @cached_property
    def chats(self) -> list[Json]:
        [path] = self.runs.glob("llamafactory_sharegpt/**/glaive_toolcall_en_demo.json")
        read: list[Json] = json.loads(path.read_text())
        return read


def fence(page: str, language: str) -> str:
    """The first fence of a language on a page."""
    found = re.search(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


REAL = pytest.param(
    True,
    marks=[
        pytest.mark.slow,
        pytest.mark.skipif(not (DATA / "tau_bench").exists(), reason="the collected runs are not there"),
    ],
    id="published",
)


@pytest.fixture(scope="session", params=[pytest.param(False, id="made"), REAL])
def kitchen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    specs = tmp_path_factory.mktemp("specs")
    folder = specs / "cookbook"
    folder.mkdir()
    for path in (SPECS / "cookbook").glob("*.curate"):
        shutil.copy(path, folder)
    shutil.copytree(SPECS / "cookbook" / "made", folder / "made")
    shutil.copytree(SPECS / "quickstart" / "runs", specs / "quickstart" / "runs")
    runs = folder / "runs"
    runs.mkdir()
    if request.param:
        for name in PUBLISHED:
            (runs / name).symlink_to(DATA / name)
    else:
        made.make(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CURATEC_CACHE_DIR", str(specs / "cache"))
        patch.chdir(folder)
        # The page says how the sealed tasks are written; what it says is run.
        exec(compile(fence((PAGES / "05-leak-removal.md").read_text(), "python"), "seal.py", "exec"), {})
        yield Kitchen(folder, request.param)
