"""Measures what the command line promises, beside what a bare script costs. `make bench` runs it.

Every figure is a whole process, warmed up once, median of several runs; times of the two sides of a ratio alternate.
Usage: figures.py [--runs N] [--gigabytes G] [--tau FOLDER]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
CURATEC = (sys.executable, "-m", "curatec.runtime.cli")
# Compiled Python files are what a user has.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


Command = tuple[str, ...]


def timed(command: Command, cwd: Path) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.decode())
    return time.perf_counter() - begun


def median(command: Command, cwd: Path, times: int = 7) -> float:
    timed(command, cwd)
    return statistics.median(timed(command, cwd) for _ in range(times))


def pairs(a: Command, b: Command, cwd: Path, times: int = 5) -> list[float]:
    """(a, b, ratio): medians over alternating runs; the ratio is the median of the pairs."""
    timed(a, cwd), timed(b, cwd)
    found = [(timed(a, cwd), timed(b, cwd)) for _ in range(times)]
    return [statistics.median(x) for x in (*zip(*found, strict=True), [one / other for one, other in found])]


def row(what: str, figure: str, beside: str = "") -> None:
    print(f"| {what} | {figure} | {beside} |", flush=True)


def thousand_lines(folder: Path) -> Path:
    """A dense spec of a thousand lines: families, filters with quantifiers and windows, twenty strategies."""
    lines = ["curate 1", 'source a { path "x/*.jsonl" }']
    for i in range(40):
        lines += [
            f"failure f{i} {{",
            f'  when any(turns where is_error and content ~ r"^E{i}") and call_count > {i}',
            "}",
        ]
    for s in range(20):
        lines += [f"strategy s{s} {{", "  from a", "  split by task { train 90% validation 10% } seed 7"]
        lines += [f'  k{i}: drop where turn_count > {60 + i} or any(calls where args.x == "{i}")' for i in range(28)]
        lines += ["  tagged: tag failure", "  emit sft {"]
        lines += [
            f"    w{i}: keep where reward >= 0.{i} and rank(reward desc) over (task) <= {i + 3}" for i in range(8)
        ]
        lines += ["    loss on assistant where none(calls where is_error)", "  }", "}"]
    path = folder / "thousand.curate"
    path.write_text("\n".join(lines) + "\n")
    return path


def start_up(folder: Path) -> None:
    bare = median((sys.executable, "-c", "pass"), folder)
    row("`curatec --help`", f"{median((*CURATEC, '--help'), folder):.2f} s", f"Python's start {bare:.2f} s")
    spec = thousand_lines(folder)
    lines = spec.read_text().count("\n")
    row(f"`check`, {lines} lines", f"{median((*CURATEC, 'check', str(spec)), folder, 5):.2f} s", "bar 1 s")
    timed((*CURATEC, "fmt", str(spec)), folder)
    row("`fmt` of the same, laid out already", f"{median((*CURATEC, 'fmt', str(spec)), folder, 5):.2f} s")


def corpus(folder: Path, runs: int) -> Path:
    """The quickstart's corpus, made larger."""
    maker = ROOT / "specs" / "quickstart" / "make_corpus.py"
    timed((sys.executable, str(maker), "--out", str(folder / "runs"), "--runs", str(runs)), folder)
    shutil.copy(HERE / "quickstart_sft.curate", folder)
    return folder / "runs"


def against_a_script(folder: Path, runs: int) -> None:
    """The same selection; the script keeps no ledger, card, report, digests, parquet, split or reasons."""
    corpus(folder, runs)
    script = (sys.executable, str(HERE / "hand_written.py"), "runs", "by_hand.jsonl")
    compiled = (*CURATEC, "compile", "quickstart_sft.curate", "-o", "out", "-q")
    for name, extra in (("cold", ("--no-cache",)), ("warm", ())):
        ours, theirs, ratio = pairs((*compiled, *extra), script, folder)
        row(f"compile {runs} quickstart runs, {name}", f"{ours:.2f} s", f"script {theirs:.2f} s; ratio {ratio:.2f}")
    selected = sum(1 for _ in (folder / "by_hand.jsonl").open())
    made = sum(1 for _ in (folder / "out" / "sft" / "train.jsonl").open())
    if selected != made:
        raise SystemExit(f"the two select different rows: {made} and {selected}")


def tau(folder: Path, data: Path) -> None:
    for name in ("tau_bench", "tau2_bench"):
        (folder / name).symlink_to(data / name)
    shutil.copy(ROOT / "specs" / "tau_service.curate", folder)
    command = (*CURATEC, "compile", "tau_service.curate", "-o", "out-tau", "-q", "--allow-path", str(data))
    row("compile 570 tau runs, cold", f"{median((*command, '--no-cache'), folder):.2f} s", "bar 10 s")
    row("compile 570 tau runs, warm", f"{median(command, folder, 9):.2f} s", "bar 1 s")


_INGEST = """
import sys
from pathlib import Path
from curatec.runtime.cache import Cache
from curatec.runtime.ingest import ingest
path = Path(sys.argv[1])
print(sum(ingest([path], base=path.parent, cache=Cache(path.parent / "parsed")).formats.values()))
"""


def ingest_memory(folder: Path, gigabytes: float) -> None:
    """One JSONL file of that size, made of the quickstart's lines under new ids."""
    lines = (folder / "runs" / "week-1.jsonl").read_bytes().splitlines()
    big = folder / "big.jsonl"
    written, target = 0, int(gigabytes * 1e9)
    with big.open("wb") as file:
        while written < target:
            for line in lines:
                written += file.write(line.replace(b'"id"', b'"n": %d, "id"' % written, 1) + b"\n")
    seconds = timed((sys.executable, "-c", _INGEST, str(big)), folder)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    row(f"ingest {gigabytes:g} GB of JSONL", f"{seconds:.1f} s", f"largest process so far {peak:.0f} MB; bar 2000 MB")
    big.unlink()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--gigabytes", type=float, default=1.0)
    options.add_argument("--tau", type=Path, default=ROOT.parent / "shared" / "data")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="curatec-bench-") as name:
        folder = Path(name)
        ENVIRONMENT["CURATEC_CACHE_DIR"] = str(folder / "cache")
        print("| what | figure | beside |\n|---|---|---|")
        start_up(folder)
        if (given.tau / "tau_bench").exists():
            tau(folder, given.tau.resolve())
        against_a_script(folder, given.runs)
        if given.gigabytes:
            ingest_memory(folder, given.gigabytes)


if __name__ == "__main__":
    main()
