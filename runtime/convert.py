"""Runs of any known format → one file in a target's form, without a spec.

What a run shows is made as for a sink, and nothing is decided: every run gives one row, in the order of the files and
their records, or is refused with the target's reason. Loss weights are those of the source. What is known about a run
stands beside its messages under the names that the formats read again (`FACTS`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import polars as pl

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime import arrow_file, targets
from curatec.runtime.conversation import messages as m
from curatec.runtime.ingest import Corpus, Part
from curatec.runtime.publish import recover, undisturbed
from curatec.runtime.sinks.buckets import Buckets
from curatec.runtime.sinks.columns import Col, arrow_schema, as_arrow, frame, json_line
from curatec.runtime.targets import REASONS, Target

_GROUP = 512  # rows

_PLAIN = (
    Col("id", "text", "the record's own id"),
    Col("task_id", "text", "the task's own id"),
    Col("domain", "text", "domain of the task"),
    Col("trial", "int", "number of the attempt"),
    Col("model", "text", "the model that was run"),
    Col("agent", "text", "the agent that was run"),
    Col("session_id", "text", "id of the session"),
    Col("parent_id", "text", "the run that this one was started by"),
    Col("depth", "int", "how many runs it was started below"),
    Col("reward", "float", "reward of the run"),
    Col("success", "flag", "whether the run succeeded"),
    Col("outcome", "text", "success, failure, crash or truncated"),
    Col("error", "text", "what the harness said when it failed"),
    Col("license", "text", "license of the run"),
    Col("started_at", "text", "when the run began, UTC"),
    Col("duration", "float", "seconds"),
    Col("cost", "float", "US dollars"),
)
_OPEN = (
    Col("gold", "json", "gold calls or reference answer"),
    Col("meta", "json", "everything else that the record says"),
)
FACTS: dict[str, tuple[Col, ...]] = {
    "trl": (*_PLAIN, *_OPEN),
    "openai": (*_PLAIN, *_OPEN),
    # Their loaders guess types from the first rows: values of any shape would stop them.
    "sharegpt": _PLAIN,
    "llamafactory": _PLAIN,
    "verl": _PLAIN,
    "atif": (),  # stands under `extra`; the format forbids other members
}
"""What is written beside a target's own columns, where a run has it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that gave no row. `line` as in `RUNS.line`; `raw` is the text of one that could not be read at all."""

    file: str
    line: int
    id: str | None
    reason: str
    raw: str | None = None


@dataclass(frozen=True)
class Converted:
    """What was made of a corpus; `refused` counts runs by reason, most frequent first."""

    target: Target
    rows: int
    formats: dict[str, int]
    refusals: tuple[Refused, ...]
    unreadable: tuple[Refused, ...]

    @property
    def runs(self) -> int:
        return self.rows + len(self.refusals)

    @property
    def refused(self) -> dict[str, int]:
        return dict(Counter(refusal.reason for refusal in self.refusals).most_common())


def convert(corpus: Corpus, target: Target, out: Path, stream: BinaryIO | None = None) -> Converted:
    """Write the runs of a corpus to `out`, whole or not at all; to `stream` as JSON lines where one is given.

    The ending of `out` says what it is: `.jsonl` and `.ndjson` lines, `.json` a list, `.parquet`. Raises CuratecError:
    C0613 when it cannot be written, C0635 when the target refuses every run, C0636 when there is none.
    """
    with _scratch(out if stream is None else None) as scratch:
        rows = _Rows(target, Buckets(scratch))
        for part, positions in _placed(corpus):
            rows.take(part, positions)
        found = _account(rows, corpus)
        if not found.rows:
            raise _nothing(found)
        if stream is not None:
            rows.write(stream, ".jsonl")
        else:
            _write_file(rows.write, out, scratch / "made")
    return found


@contextlib.contextmanager
def _scratch(out: Path | None, option: str = "-o") -> Iterator[Path]:
    """Room beside the output, where it can be renamed from; what a killed process left there is removed."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="curatec-") as name:
            yield Path(name)
        return
    recover(out)
    scratch = out.parent / f".{out.name}.curatec-{os.getpid()}"
    try:
        scratch.mkdir(parents=True)
    except OSError as error:
        raise _unwritable(out, error, option) from None
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_file(write: Callable[[BinaryIO, str], None], out: Path, made: Path, option: str = "-o") -> None:
    with made.open("wb") as file:
        write(file, out.suffix.lower())
        file.flush()
        os.fsync(file.fileno())
    try:
        with undisturbed():
            os.replace(made, out)
    except OSError as error:
        raise _unwritable(out, error, option) from None


def _unwritable(path: Path, error: OSError, option: str) -> CuratecError:
    help_ = f"choose another place with `{option}`"
    return CuratecError.of("C0613", f"`{path}` cannot be written: {error.strerror}", help=help_, place=str(path))


# ---- rows ----


@dataclass
class _Rows:
    """The rows of all parts, put in order on disk."""

    target: Target
    buckets: Buckets
    count: int = 0
    known: set[str] = field(default_factory=set)  # facts that some row has
    refusals: list[tuple[int, Refused]] = field(default_factory=list)

    def take(self, part: Part, positions: Sequence[int]) -> None:
        """The rows of one part."""
        runs = arrow_file.read(part.runs)
        turns = arrow_file.read(part.turns).rename({"row": "run"})
        weights = turns.select(_WEIGHT).to_series().to_list()
        tools = m.Tools({text: text for text in runs["tools_json"].drop_nulls().unique()})
        grouped = m.by_run(m.turn_rows(turns), runs.height)
        for run, position, shown in zip(runs.iter_rows(named=True), positions, grouped, strict=True):
            facts = _facts(run)
            row = self._row(run, m.messages_of(shown, self.target.form), weights, tools, facts)
            if isinstance(row, str):
                refused = Refused(part.files[run["file"]], run["line"], run["record_id"], row)
                self.refusals.append((position, refused))
                continue
            beside = {c.name: facts.get(c.name) for c in FACTS[self.target.name]}
            self.known |= {name for name, value in beside.items() if value is not None}
            self.buckets.add(position, row | beside)
            self.count += 1

    def _row(
        self, run: dict[str, Any], shown: list[m.Message], weights: list[float], tools: m.Tools, facts: dict[str, Any]
    ) -> dict[str, Any] | str:
        schemas, unreadable = tools(run["tools_json"])
        if unreadable is not None:
            return unreadable
        return targets.row(self.target, "sft", shown, schemas, [weights[message.at] for message in shown], facts)

    @property
    def columns(self) -> tuple[Col, ...]:
        beside = (c for c in FACTS[self.target.name] if c.name in self.known)
        return (*beside, *self.target.columns["sft"])

    def write(self, stream: BinaryIO, ending: str) -> None:
        """All rows in their order."""
        rows = (row for _, row in self.buckets)
        lines = _Lines(stream, frozenset(c.name for c in FACTS[self.target.name]))
        if ending == ".parquet":
            _write_parquet(stream, self.columns, rows)
        elif ending == ".json":
            lines.array(self.columns, rows)
        else:
            lines.lines(self.columns, rows)


_WEIGHT = (
    pl.when((pl.col("role").cast(pl.String) == "assistant") & ~pl.col("copied_context").fill_null(False))
    .then(pl.col("loss_weight").cast(pl.Float64).fill_null(1.0))
    .otherwise(0.0)
)


@dataclass(frozen=True)
class _Lines:
    """Rows as JSON. A target's own members are always there; a fact that a run lacks is left out."""

    stream: BinaryIO
    beside: frozenset[str]

    def lines(self, columns: tuple[Col, ...], rows: Iterator[dict[str, Any]]) -> None:
        for row in rows:
            self.stream.write(self._line(columns, row))

    def array(self, columns: tuple[Col, ...], rows: Iterator[dict[str, Any]]) -> None:
        for number, row in enumerate(rows):
            self.stream.write(b",\n" if number else b"[\n")
            self.stream.write(self._line(columns, row).rstrip(b"\n"))
        self.stream.write(b"\n]\n")

    def _line(self, columns: tuple[Col, ...], row: dict[str, Any]) -> bytes:
        return json_line(tuple(c for c in columns if c.name not in self.beside or row[c.name] is not None), row)


def _write_parquet(stream: BinaryIO, columns: tuple[Col, ...], rows: Iterator[dict[str, Any]]) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, arrow_schema(columns), compression="zstd", compression_level=3) as writer:
        group: list[dict[str, Any]] = []
        for row in rows:
            group.append(row)
            if len(group) == _GROUP:
                writer.write_table(as_arrow(columns, frame(columns, group)), row_group_size=_GROUP)
                group = []
        if group:
            writer.write_table(as_arrow(columns, frame(columns, group)), row_group_size=_GROUP)


def _facts(run: dict[str, Any]) -> dict[str, Any]:
    """What a run says of itself, under the names of `FACTS`; what it does not say is null."""
    facts = {c.name: run.get(c.name) for c in _PLAIN}
    facts["id"] = run["record_id"]
    facts["depth"] = run["depth"] or None
    facts["outcome"] = run["outcome"] if run["outcome"] != "unknown" else None
    facts["started_at"] = run["started_at"].isoformat() if run["started_at"] is not None else None
    facts["gold"] = run["gold_json"]
    facts["meta"] = run["meta_json"] if run["meta_json"] not in (None, "{}") else None
    return facts


# ---- order and account ----


def _placed(corpus: Corpus) -> Iterator[tuple[Part, list[int]]]:
    """Each part with the places of its runs: files in their order, records as they stand in their file."""
    order = {name: number for number, name in enumerate(corpus.files)}
    keys: list[tuple[int, int, int, int]] = []
    for number, part in enumerate(corpus.parts):
        where = arrow_file.read(part.runs, ["file", "line", "row"]).select("file", "line", "row")
        keys += [(order[part.files[file]], line, number, row) for file, line, row in where.iter_rows()]
    places = {(number, row): place for place, (_, _, number, row) in enumerate(sorted(keys))}
    for number, part in enumerate(corpus.parts):
        yield part, [places[number, row] for row in range(part.n_runs)]


def _account(rows: _Rows, corpus: Corpus) -> Converted:
    refusals = tuple(refused for _, refused in sorted(rows.refusals, key=lambda found: found[0]))
    unreadable = tuple(Refused(r.file, r.line, None, r.reason, r.raw) for r in corpus.rejects)
    return Converted(rows.target, rows.count, corpus.formats, refusals, unreadable)


def _nothing(found: Converted) -> CuratecError:
    if not found.refusals:
        return CuratecError.of("C0636", "the files hold no run", help="`curatec inspect` says what is in them")
    reasons = tuple(f"{reason} ({n:,}): {REASONS.get(reason, reason)}" for reason, n in found.refused.items())
    message = f"`{found.target.name}` can express none of the {found.runs:,} runs"
    return CuratecError.of("C0635", message, help=(*reasons, "choose another form with `--to`"))


def write_rejects(found: Converted, path: Path) -> None:
    """What gave no row, one JSON object a line: what could not be read, then what the target refuses."""
    lines = []
    for refused in (*found.unreadable, *found.refusals):
        facts = {"file": refused.file, "line": refused.line, "id": refused.id, "reason": refused.reason}
        lines.append(orjson.dumps(facts | ({"raw": refused.raw} if refused.raw is not None else {})) + b"\n")
    if path.exists() and not path.is_file():  # a device or a pipe, which nothing can take the place of
        try:
            path.write_bytes(b"".join(lines))
        except OSError as error:
            raise _unwritable(path, error, "--rejects") from None
        return
    with _scratch(path, "--rejects") as scratch:
        _write_file(lambda file, _: file.writelines(lines), path, scratch / "made", "--rejects")
