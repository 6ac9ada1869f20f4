"""What raw files hold, before any spec: formats, runs, turns, calls, outcomes, defects, and hints for a spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime import arrow_file, ingest
from curatec.runtime.cache import Cache
from curatec.runtime.formats.defects import DEFECTS
from curatec.runtime.inputs import CODES

# What a tool result that reports an error often begins with.
ERROR_BEGINNINGS = r"^(Error|ERROR|error|Traceback|Exception|Failed|FAILED)\b"
_SHOWN_REJECTS = 5


@dataclass
class Profile:
    """Counts over a corpus. Mappings go from what is counted to its number, most frequent first when shown."""

    files: int = 0
    empty_files: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    duplicates: int = 0  # runs that are equal to an earlier one
    turns: int = 0
    turns_per_run: dict[str, float] = field(default_factory=dict)
    calls: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    schemas: int = 0  # runs with tool schemas
    results: int = 0  # tool turns
    judged_results: int = 0  # those that say whether they are errors
    failed_results: int = 0
    error_beginnings: Counter[str] = field(default_factory=Counter)  # first word of results that look like errors
    outcomes: Counter[str] = field(default_factory=Counter)
    rewards: dict[str, float] = field(default_factory=dict)
    models: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    tasks: int = 0  # distinct task ids
    without_task: int = 0
    attempts: float = 0.0  # runs a task
    reasoning: int = 0  # turns with reasoning kept apart
    defects: Counter[str] = field(default_factory=Counter)
    rejects: list[dict[str, Any]] = field(default_factory=list)
    rejected: int = 0
    longest: int = 0  # characters of the longest tool result

    def data(self) -> dict[str, Any]:
        """JSON-ready; each defect with its meaning."""
        plain = {
            name: dict(value.most_common()) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }
        plain["defects"] = [
            {"name": n, "runs": c, "meaning": DEFECTS.get(n, "")} for n, c in self.defects.most_common()
        ]
        return plain | {"hints": list(hints(self))}


def read(
    paths: Sequence[str],
    base: Path,
    cache: Cache | None = None,
    *,
    format: str | None = None,
    on_progress: Callable[[ingest.Progress], None] | None = None,
) -> ingest.Corpus:
    """Files, folders and patterns as a corpus; they may lie anywhere. Raises CuratecError (C06…)."""
    try:
        found = ingest.resolve(paths, base, Path(base.anchor or "/"))
        return ingest.ingest(found, base=base, format=format, cache=cache, on_progress=on_progress)
    except ingest.IngestError as error:
        help_ = (error.help,) if error.help else ()
        raise CuratecError.of(CODES[error.kind], error.message, help=help_, place=error.path) from None


def profile(corpus: ingest.Corpus) -> Profile:
    """Counts over all parts, one in memory at a time."""
    found = Profile(files=len(corpus.files), empty_files=len(corpus.empty_files), formats=Counter(corpus.formats))
    found.rejected = len(corpus.rejects)
    found.rejects = [{"file": r.file, "line": r.line, "reason": r.reason} for r in corpus.rejects[:_SHOWN_REJECTS]]
    narrow: list[pl.DataFrame] = []
    lengths: list[pl.Series] = []
    for part in corpus.parts:
        narrow.append(_runs(found, arrow_file.read(part.runs)))
        lengths.append(_turns(found, arrow_file.read(part.turns), part.n_runs))
    if narrow:
        _whole(found, pl.concat(narrow), pl.concat(lengths))
    return found


def _runs(found: Profile, runs: pl.DataFrame) -> pl.DataFrame:
    found.runs += runs.height
    found.schemas += runs["tools_json"].len() - runs["tools_json"].null_count()
    for name, counter in (
        ("outcome", found.outcomes),
        ("model", found.models),
        ("domain", found.domains),
        ("license", found.licenses),
    ):
        counter.update({str(value): n for value, n in runs[name].drop_nulls().value_counts().iter_rows()})
    defects = runs["defects"].explode(empty_as_null=False, keep_nulls=False)
    found.defects.update({str(value): n for value, n in defects.value_counts().iter_rows()})
    return runs.select("digest", "task_id", "reward", "success")


def _turns(found: Profile, turns: pl.DataFrame, runs: int) -> pl.Series:
    """Turns of each run, system and event turns left out."""
    role = pl.col("role").cast(pl.String)
    found.turns += turns.height
    found.reasoning += int(turns["reasoning"].is_not_null().sum())
    calls = turns.select("calls").explode("calls", empty_as_null=False, keep_nulls=False).unnest("calls")
    found.calls += calls.height
    found.tools.update({str(name): n for name, n in calls["name"].fill_null("(no name)").value_counts().iter_rows()})
    results = turns.filter(role == "tool")
    found.results += results.height
    found.judged_results += results.height - results["is_error"].null_count()
    found.failed_results += int(results["is_error"].sum() or 0)
    lengths = results["content"].str.len_chars().drop_nulls()
    found.longest = max([found.longest, *lengths.top_k(1)])
    begun = results["content"].str.extract(ERROR_BEGINNINGS, 1).drop_nulls()
    found.error_beginnings.update({str(word): n for word, n in begun.value_counts().iter_rows()})
    spoken = turns.filter(~role.is_in(["system", "event"])).group_by("row").len()["len"].cast(pl.Int64)
    silent = pl.Series([0] * (runs - len(spoken)), dtype=pl.Int64)
    return pl.concat([spoken.rename("n"), silent.rename("n")])


def _whole(found: Profile, runs: pl.DataFrame, lengths: pl.Series) -> None:
    found.duplicates = runs.height - runs["digest"].n_unique()
    found.without_task = runs["task_id"].null_count()
    tasks = runs["task_id"].drop_nulls()
    found.tasks = tasks.n_unique()
    found.attempts = round(len(tasks) / found.tasks, 2) if found.tasks else 0.0
    found.turns_per_run = _spread(lengths)
    found.rewards = _spread(runs["reward"].drop_nulls())


def _spread(values: pl.Series) -> dict[str, float]:
    if not len(values):
        return {}
    ordered = [float(v) for v in values.sort()]
    middle = ordered[len(ordered) // 2]
    return {
        "count": len(ordered),
        "min": ordered[0],
        "median": middle,
        "mean": round(sum(ordered) / len(ordered), 4),
        "max": ordered[-1],
    }


# ---- hints ----


def hints(p: Profile) -> Iterator[str]:
    """What a spec for this corpus should say, and why."""
    if not p.runs:
        return
    if p.judged_results < p.results and p.error_beginnings:
        seen = sum(p.error_beginnings.values())
        yield f"{seen:,} tool results begin like errors and do not say so: `error when content ~ {error_pattern(p)}`"
    if not p.models:
        yield 'no record names a model: `model "…"` or `model from path r"…"`, or pass rates pool all runs'
    if not p.schemas and p.calls:
        yield 'no record has tool schemas: `tools from "tools.json"`, or a trainer shows the model no tools'
    if p.outcomes.get("crash"):
        yield f'{p.outcomes["crash"]:,} runs crashed: `drop where outcome == "crash"`'
    if not p.rewards and p.outcomes.get("unknown", 0) == p.runs:
        yield "no record says how it ended: `success when …`, or keep runs by what they did"
    if p.without_task:
        yield f"{p.without_task:,} runs have no task id: a hash of their first message and tools stands for it"
    if p.attempts >= 2 and judged(p):
        yield f"{p.attempts:g} runs a task: rl can keep what is learnable, `keep where pass_rate between 0.1 and 0.9`"
    if p.duplicates:
        yield f"{p.duplicates:,} runs are copies of another one: `dedup exact on task, calls_text`"
    if p.longest > 20_000:
        cut = "turns set content = truncate(content, 4000, keep: ends)"
        yield f"the longest tool result has {p.longest:,} characters: `{cut}`"
    if p.licenses.total() < p.runs:
        yield 'no licence is known for some runs: `license "…"` in the source'


def judged(p: Profile) -> bool:
    """Whether some runs succeed and some fail."""
    return bool(p.outcomes.get("success") and p.outcomes.get("failure"))


def error_pattern(p: Profile) -> str:
    """A raw string for `error when`."""
    words = sorted(p.error_beginnings)
    return f'r"^{words[0]}\\b"' if len(words) == 1 else f'r"^({"|".join(words)})\\b"'
