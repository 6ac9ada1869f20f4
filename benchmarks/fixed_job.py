"""Measures the fixed job: the compiler beside the same job by hand, in pairs, and how its cost grows. `make bench`.

Usage: fixed_job.py [--runs N] [--pairs N] [--growth N …] [--only PART …] [--juicer PYTHON] [--folder DIR]

Whole processes, cold: an empty `CURATEC_CACHE_DIR` and no output before each. In a pair the compiler and a variant run
in turn; a ratio is the median over the pairs. Before anything is timed each variant must have written the rows that the
compiler wrote: the same ids, tasks, splits, messages and tools. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import filecmp
import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import by_hand_data_juicer as juicer
import corpus
import job
import orjson
import rows
from measure import Cost, Failed, cost

HERE = Path(__file__).parent
SPEC = "fixed_job.curate"
# Name → (script, what must be installed).
VARIANTS = {
    "polars": ("by_hand_polars.py", "duckdb"),
    "duckdb": ("by_hand_duckdb.py", "duckdb"),
    "orjson": ("by_hand_orjson.py", "orjson"),
    "datasets": ("by_hand_datasets.py", "datasets"),
}
JUICER_RUNS = 10_000
SETTLED = 10  # seconds: a file that was changed a moment before it was read is not taken for unchanged
PARTS = (*VARIANTS, "juicer", "growth", "memory", "warm")
RL = """
  emit rl {
    one_each: limit 1 per task order by reward desc, started_at
    reward 1.0 * call_format
  }
"""
# What an engine could make another; the rest of an output says when and how long it ran.
DATA = ("ledger.parquet", "lineage.parquet", "runs.parquet", *(f"sft/{name}.jsonl" for name in job.SPLITS))
# What is edited → (old text, new text).
EDITS = {
    "nothing": ("", ""),
    "the rl sink: `limit 2 per task`": ("limit 1 per task", "limit 2 per task"),
    "the sft sink: `loss on assistant only last`": ("loss on assistant", "loss on assistant only last"),
    "`fair: limit 40 per task`": ("limit 50 per task", "limit 40 per task"),
    "`good: keep where reward >= 0.75`": ("reward >= 0.5", "reward >= 0.75"),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Where it is measured, and how often."""

    folder: Path
    pairs: int
    seed: int

    def corpus(self, runs: int) -> Path:
        """A folder with `corpus.jsonl` of that size and the spec beside it."""
        place = self.folder / str(runs)
        if not place.exists():
            place.mkdir()
            with (place / "corpus.jsonl").open("wb") as file:
                file.writelines(corpus.runs(runs, self.seed))
            shutil.copy(HERE / SPEC, place)
        return place

    def environment(self) -> dict[str, str]:
        # Compiled Python files are what a user has.
        left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
        own = {"CURATEC_CACHE_DIR": str(self.folder / "cache")}
        return {key: value for key, value in os.environ.items() if key not in left_out} | own

    def compile(self, place: Path, *options: str, spec: str = SPEC) -> Cost:
        command = (sys.executable, "-m", "curatec.runtime.cli", "compile", spec, "-o", "out", "-q", *options)
        return cost(command, place, self.environment())

    def cold(self, place: Path, *options: str, spec: str = SPEC) -> Cost:
        for name in (self.folder / "cache", place / "out"):
            shutil.rmtree(name, ignore_errors=True)
        return self.compile(place, *options, spec=spec)

    def script(self, place: Path, name: str, corpus: str = "corpus.jsonl", python: str = sys.executable) -> Cost:
        shutil.rmtree(place / "by_hand", ignore_errors=True)
        return cost((python, str(HERE / name), corpus, "by_hand"), place, self.environment())


def report(what: str, *cells: str) -> None:
    print("|", " | ".join((what, *cells)), "|", flush=True)


def heading(title: str, *columns: str) -> None:
    print(f"\n**{title}**\n")
    report(*columns)
    print("|" + "---|" * len(columns))


def shown(spent: Cost) -> tuple[str, str, str]:
    return f"{spent.wall:.2f}", f"{spent.cpu:.2f}", f"{spent.peak:.0f}"


def middle(costs: Sequence[Cost]) -> Cost:
    median = statistics.median
    return Cost(median(c.wall for c in costs), median(c.cpu for c in costs), max(c.peak for c in costs))


def ratio(a: Sequence[Cost], b: Sequence[Cost], of: Callable[[Cost], float]) -> str:
    return f"{statistics.median(of(x) / of(y) for x, y in zip(a, b, strict=True)):.2f}"


def in_pairs(one: Callable[[], Cost], other: Callable[[], Cost], pairs: int) -> tuple[list[Cost], list[Cost]]:
    found = [(one(), other()) for _ in range(pairs)]
    return [a for a, _ in found], [b for _, b in found]


def pair_row(name: str, ours: Sequence[Cost], theirs: Sequence[Cost]) -> None:
    wall, cpu = ratio(ours, theirs, lambda c: c.wall), ratio(ours, theirs, lambda c: c.cpu)
    faster = ratio(theirs, ours, lambda c: c.wall)
    report(name, *shown(middle(theirs)), *shown(middle(ours)), wall, cpu, faster)


PAIR_COLUMNS = ("beside", "its wall s", "CPU s", "peak MB", "curatec's wall s", "CPU s", "peak MB")
RATIO_COLUMNS = ("curatec / it, wall", "CPU", "it / curatec, wall")


def beside_variants(bench: Bench, runs: int, names: Sequence[str]) -> None:
    place = bench.corpus(runs)
    heading(f"{runs:,} runs, cold, {bench.pairs} pairs", *PAIR_COLUMNS, *RATIO_COLUMNS)
    bench.cold(place)
    ours = rows.compiled(place / "out")
    for name in names:
        script, needed = VARIANTS[name]
        if importlib.util.find_spec(needed) is None:
            report(name, f"skipped: `{needed}` is not installed")
            continue
        bench.script(place, script)
        odd = rows.difference(ours, rows.by_hand(place / "by_hand"))
        if odd is not None:
            raise SystemExit(f"curatec and {script} select other rows: {odd}")
        pair_row(name, *in_pairs(lambda: bench.cold(place), lambda s=script: bench.script(place, s), bench.pairs))
    print(f"\nAll wrote the same {len(ours):,} rows.")


def beside_juicer(bench: Bench, python: str) -> None:
    """The compiler has the harder job."""
    place, runs = bench.corpus(JUICER_RUNS), f"{JUICER_RUNS:,} runs"
    ready = place / "texts.jsonl"
    juicer.made_ready(place / "corpus.jsonl", ready)
    heading(f"{runs}, cold, {bench.pairs} pairs, data-juicer with an easier job", *PAIR_COLUMNS, *RATIO_COLUMNS)

    def easier() -> Cost:
        return bench.script(place, "by_hand_data_juicer.py", ready.name, python)

    try:
        easier()
    except Failed as problem:
        if problem.code != juicer.NOT_INSTALLED:
            raise
        report("data-juicer", f"skipped: {problem.said.strip()}")
        return
    with (place / "by_hand" / "rows.jsonl").open("rb") as lines:
        theirs = {orjson.loads(line)["id"] for line in lines}
    if theirs != juicer.expected(ready):
        raise SystemExit("data-juicer selects other rows than its job says")
    bench.cold(place)
    pair_row("data-juicer", *in_pairs(lambda: bench.cold(place), easier, bench.pairs))


def growth(bench: Bench, sizes: Sequence[int]) -> None:
    heading("Growth, cold", "runs", "wall s", "CPU s", "peak MB", "CPU / CPU of the row before", "runs / runs")
    before: tuple[int, Cost] | None = None
    for runs in sizes:
        spent = bench.cold(bench.corpus(runs))
        grown = (f"{spent.cpu / before[1].cpu:.2f}", f"{runs / before[0]:.2f}") if before else ("", "")
        report(f"{runs:,}", *shown(spent), *grown)
        before = runs, spent


def bounded(bench: Bench, runs: int) -> None:
    """The same bytes as the other engine, in bounded memory."""
    options = ("--engine", "duckdb", "--memory", "1GB")
    heading(f"`{' '.join(options)}`, {runs:,} runs, cold", "what", "wall s", "CPU s", "peak MB")
    place = bench.corpus(runs)
    try:
        spent = bench.cold(place, *options)
    except Failed as problem:
        report("duckdb", f"skipped: {' '.join(problem.said.split())[:200]}")
        return
    report("duckdb", *shown(spent))
    shutil.rmtree(place / "out-duckdb", ignore_errors=True)
    (place / "out").rename(place / "out-duckdb")
    report("polars, without a bound", *shown(bench.cold(place)))
    odd = [name for name in DATA if not filecmp.cmp(place / "out" / name, place / "out-duckdb" / name, shallow=False)]
    shutil.rmtree(place / "out-duckdb")
    if odd:
        raise SystemExit(f"the two engines write other bytes: {', '.join(odd)}")
    print("\nBoth wrote the same bytes.")


def warm(bench: Bench, runs: int) -> None:
    """The fixed job with a second sink: compiled again as it is, and with one line edited."""
    place = bench.corpus(runs)
    text = (HERE / SPEC).read_text().rstrip().removesuffix("}") + RL + "}\n"
    spec = place / "two_sinks.curate"

    def first() -> Cost:
        spec.write_text(text)
        written = time.time() - SETTLED
        os.utime(spec, (written, written))
        return bench.cold(place, spec=spec.name)

    def again(edited: str) -> Cost:
        if edited != text:
            spec.write_text(edited)
        return bench.compile(place, spec=spec.name)

    title = f"Two sinks, {runs:,} runs, compiled cold and then again with an edit, {bench.pairs} pairs"
    heading(title, "edit", "wall s", "CPU s", "peak MB", "wall / cold", "CPU / cold", "wall above Python's start")
    python = middle([cost((sys.executable, "-c", "pass"), place, bench.environment()) for _ in range(bench.pairs)])
    for name, (old, new) in EDITS.items():
        edited = text.replace(old, new)
        colds, times = in_pairs(first, lambda edited=edited: again(edited), bench.pairs)
        spent, above = middle(times), middle(times).wall - python.wall
        shares = (ratio(times, colds, lambda c: c.wall), ratio(times, colds, lambda c: c.cpu))
        report(name, *shown(spent), *shares, f"{above:.2f} s")


def options() -> argparse.Namespace:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--runs", type=int, default=100_000, help="of the pairs and of what is compiled again")
    said.add_argument("--pairs", type=int, default=7)
    said.add_argument("--growth", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000], metavar="N")
    said.add_argument("--only", nargs="+", default=PARTS, choices=PARTS, metavar="PART", help=", ".join(PARTS))
    said.add_argument("--juicer", default=sys.executable, metavar="PYTHON", help="one that has data-juicer")
    said.add_argument("--folder", type=Path, help="where corpora are made and kept; a temporary one by default")
    said.add_argument("--seed", type=int, default=1)
    return said.parse_args()


def main() -> None:
    given = options()
    with tempfile.TemporaryDirectory(prefix="curatec-bench-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder.resolve(), given.pairs, given.seed)
        variants = [name for name in VARIANTS if name in given.only]
        if variants:
            beside_variants(bench, given.runs, variants)
        if "juicer" in given.only:
            beside_juicer(bench, given.juicer)
        if "growth" in given.only:
            growth(bench, given.growth)
        if "memory" in given.only:
            bounded(bench, max(given.growth))
        if "warm" in given.only:
            warm(bench, given.runs)


if __name__ == "__main__":
    try:
        main()
    except Failed as problem:
        raise SystemExit(str(problem)) from problem
