"""Measures near-duplicate search: time and memory over synthetic documents, recall and precision over real runs.

Usage: near.py [--documents N] [--copies SHARE] [--originals N] [--threshold T] [--tau FOLDER]

The synthetic corpus has words of a Zipf-like vocabulary; a share of the documents are copies of others with some words
replaced. The search runs in a process of its own, fed part by part from files as a step feeds it. On real runs all
pairs are compared with plain Python sets: `text`, `task_text` and what single turns say (4,000 contents of ten words
and more). Recall: of the pairs whose exact likeness reaches the threshold, how many are in one component. Precision: of
the pairs that the search gives, how many reach it. Pairs united by a chain are in one component and do not reach it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations
from pathlib import Path

import polars as pl

from curatec.compiler.check.program import check
from curatec.compiler.load import load_text
from curatec.compiler.text import lower_py
from curatec.runtime.cache import Cache
from curatec.runtime.execute import execute
from curatec.runtime.inputs import read_inputs
from curatec.runtime.near import Sketches, components

ROOT = Path(__file__).parent.parent
WORDS = 870  # a document of 5.7 KB
PART = 2_000  # documents
Shingles = frozenset[tuple[str, ...]]


def shingles(text: str) -> Shingles:
    words = re.findall(r"[^ \t\n\v\f\r]+", lower_py(text))
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))) if words else frozenset()


def jaccard(a: Shingles, b: Shingles) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


# ---- synthetic documents ----


def documents(count: int, copies: float, distinct: int) -> Iterator[tuple[str, int]]:
    """(text, the document that it copies or -1). Up to a fifth of a copy's words are others: likeness from 0.4 to 1."""
    chance = random.Random(0)
    vocabulary = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(30_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(30_000)))
    originals: list[tuple[int, list[str]]] = []
    for number in range(count):
        if originals and chance.random() < copies:
            of, original = chance.choice(originals)
            words = list(original)
            for _ in range(chance.randint(0, 170)):
                words[chance.randrange(WORDS)] = chance.choice(vocabulary)
        else:
            of, words = -1, chance.choices(vocabulary, cum_weights=weights, k=WORDS)
            if len(originals) < distinct:
                originals.append((number, words))
        yield " ".join(words), of


def write(folder: Path, count: int, copies: float, distinct: int) -> int:
    """The corpus as parquet parts; bytes of text."""
    size, rows = 0, list[tuple[str, int]]()
    for number, row in enumerate(documents(count, copies, distinct), 1):
        rows.append(row)
        size += len(row[0])
        if len(rows) == PART or number == count:
            pl.DataFrame(rows, schema=["text", "of"], orient="row").write_parquet(folder / f"{number:09}.parquet")
            rows = []
    return size


def search(folder: Path, threshold: float) -> None:
    """The measured process: seconds, megabytes and the components."""
    begun = time.perf_counter()
    sketches = Sketches(threshold, folder, few=0)
    for part in sorted(folder.glob("0*.parquet")):
        sketches.add(pl.read_parquet(part, columns=["text"])["text"])
    sketched = time.perf_counter() - begun
    names = components(len(sketches.numbers), sketches.pairs())
    seconds = time.perf_counter() - begun
    names.to_frame().write_parquet(folder / "components.parquet")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"sketched": sketched, "seconds": seconds, "megabytes": peak, "left": names.n_unique()}))


def synthetic(count: int, copies: float, distinct: int, threshold: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write(folder, count, copies, distinct)
        command = [sys.executable, __file__, "--search", name, "--threshold", str(threshold)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found = pl.read_parquet(folder / "components.parquet")["component"].to_list()
        planted = alike = kept = 0
        texts = pl.concat([pl.read_parquet(part) for part in sorted(folder.glob("0*.parquet"))])
        for row, (text, of) in enumerate(texts.iter_rows()):
            if of >= 0:
                planted += 1
                if jaccard(shingles(text), shingles(texts["text"][of])) >= threshold:
                    alike += 1
                    kept += found[row] == found[of]
    print(
        f"{count} documents of {size / count / 1000:.1f} KB, threshold {threshold}: {told['seconds']:.1f} s "
        f"({told['sketched']:.1f} s of it sketches), peak {told['megabytes']:.0f} MB; {told['left']} left; "
        f"{planted} copies, {alike} alike, {kept} of those found"
    )


# ---- real runs ----

_SOURCES = """curate 1
source tau { path "tau_bench/**/*.json" format tau_bench }
source tau2 { path "tau2_bench/**/trajectories/*.json" format tau2 }
strategy s { from tau, tau2 derive said = text derive asked = task_text emit sft { } }
"""


def real_texts(data: Path) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in ("tau_bench", "tau2_bench"):
            (folder / source).symlink_to(data / source)
        made = check(load_text(_SOURCES, "s.curate", folder)).plan("s")
        inputs = read_inputs(made.corpora, folder, (data,), Cache(folder / "cache"))
        (folder / "scratch").mkdir()
        state = execute(made, inputs, folder / "scratch").shared
        contents = pl.concat([frames.turns["content"] for _, frames in state.batches()])
    texts = {"text": state.rows["said"], "task_text": state.rows["asked"], "content of turns": _some(contents)}
    return {name: column.drop_nulls().to_list() for name, column in texts.items()}


def _some(contents: pl.Series) -> pl.Series:
    """4,000 contents, evenly out of all."""
    worded = contents.filter(contents.str.count_matches(r"\s+") >= 9)
    return worded.gather_every(max(1, len(worded) // 4_000)).head(4_000)


def truth(texts: Sequence[str]) -> list[tuple[int, int, float]]:
    """Every pair with a likeness of 0.3 and more."""
    sets = [shingles(text) for text in texts]
    pairs = ((a, b, jaccard(sets[a], sets[b])) for a, b in combinations(range(len(sets)), 2))
    return [pair for pair in pairs if pair[2] >= 0.3]


def against_all_pairs(name: str, texts: Sequence[str], few: int, known: Sequence[tuple[int, int, float]]) -> None:
    for threshold in (0.5, 0.7, 0.8, 0.9):
        sketches = Sketches(threshold, few=few)
        sketches.add(pl.Series(texts))
        pairs = sketches.pairs()
        names = components(len(texts), pairs).to_list()
        near = {(a, b) for a, b, likeness in known if likeness >= threshold}
        recalled = sum(names[a] == names[b] for a, b in near)
        right = sum((a, b) in near for a, b in pairs.select("left", "right").iter_rows())
        united = [(a, b) for a, b in combinations(range(len(texts)), 2) if names[a] == names[b]]
        chained = sum(pair not in near for pair in united)
        bands = f"{sketches.bands.count} × {sketches.bands.rows}" if not few else "all compared"
        print(
            f"| {name} ({len(texts)}, {len(set(texts))} distinct) | {threshold} | {bands} | {len(near)} | {recalled} | "
            f"{share(recalled, len(near))} | {share(right, pairs.height)} | {chained} of {len(united)} |",
            flush=True,
        )


def share(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else "–"


def real(data: Path) -> None:
    print("| texts | threshold | bands | near pairs | in one component | recall | precision | united by a chain |")
    print("|---|---|---|---|---|---|---|---|")
    for name, texts in real_texts(data).items():
        known = truth(texts)
        for few in (0, 2_000) if len(texts) <= 2_000 else (0,):
            against_all_pairs(name, texts, few, known)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--copies", type=float, default=0.1)
    options.add_argument("--originals", type=int, default=20_000, help="of how many documents there are copies")
    options.add_argument("--threshold", type=float, default=0.8)
    options.add_argument("--tau", type=Path, default=ROOT.parent / "shared" / "data")
    options.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.search:
        search(given.search, given.threshold)
        return
    if given.documents:
        synthetic(given.documents, given.copies, given.originals, given.threshold)
    if given.tau.exists():
        real(given.tau)


if __name__ == "__main__":
    main()
