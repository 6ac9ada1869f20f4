"""`from`: parsed parts and source settings → the first state, with every fact frozen (semantics 2, 3, 4, 13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl
import xxhash

from curatec.compiler import json_path, plan, regex
from curatec.compiler.core import Core
from curatec.compiler.frames import Frames, meta_column, paths_of
from curatec.compiler.passes import needs_turns
from curatec.compiler.types import Level
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime import ingest
from curatec.runtime.cache import Cache
from curatec.runtime.state import State, Turns
from curatec.runtime.tables import RUNS, TURNS

# Columns of RUNS that stay on disk until a sink writes them.
WIDE = ("tools_json", "reward_parts", "error", "gold_json", "meta_json")


@dataclass(frozen=True)
class Input:
    """One source as read: its parsed corpus and the digest of what its settings name."""

    corpus: plan.Corpus
    parsed: ingest.Corpus
    tools: dict[str | None, str]  # domain (None: all) → tools_json from `tools from`
    system: str | None
    files_digest: str  # of the files that `tools from` and `system from` name


@dataclass(frozen=True)
class Loaded:
    """The state at `from`, and the parts behind it in the order of `rows.part`."""

    state: State
    parts: tuple[ingest.Part, ...]
    inputs: tuple[Input, ...]

    def wide(self, part: int, rows: pl.Series) -> pl.DataFrame:
        """The wide columns of some rows of a part, with `row`."""
        frame = pl.read_parquet(self.parts[part].runs, columns=["row", *WIDE])
        return frame.join(pl.DataFrame({"row": rows}), on="row", how="semi", maintain_order="left")


def read_inputs(
    corpora: Sequence[plan.Corpus],
    project: Path,
    allowed: tuple[Path, ...],
    cache: Cache,
    progress: Callable[[str, ingest.Progress], None] | None = None,
) -> tuple[Input, ...]:
    """Find and parse the files of each source; CuratecError (C06…) when that cannot be done."""
    return tuple(_read_input(corpus, project, allowed, cache, progress) for corpus in corpora)


def _read_input(
    corpus: plan.Corpus,
    project: Path,
    allowed: tuple[Path, ...],
    cache: Cache,
    progress: Callable[[str, ingest.Progress], None] | None,
) -> Input:
    base = Path(corpus.base)
    told = (lambda p: progress(corpus.name, p)) if progress is not None else None
    try:
        paths = ingest.resolve(corpus.path, base, project, allowed)
        parsed = ingest.ingest(paths, base=base, format=corpus.format, cache=cache, on_progress=told)
        side = [_side_file(name, base, project, allowed) for name in (corpus.tools_from, corpus.system_from)]
    except ingest.IngestError as error:
        raise CuratecError([_diagnostic(error, corpus)]) from None
    tools = _tools_by_domain(side[0], corpus) if side[0] is not None else {}
    system = corpus.system if side[1] is None else side[1].decode("utf-8", errors="replace")
    digest = xxhash.xxh3_128_hexdigest(b"\0".join(part or b"" for part in side))
    return Input(corpus, parsed, tools, system, digest)


def _side_file(name: str | None, base: Path, project: Path, allowed: tuple[Path, ...]) -> bytes | None:
    if name is None:
        return None
    found = ingest.resolve([name], base, project, allowed)
    try:
        return found[0].read_bytes()
    except OSError as error:
        raise ingest.IngestError("unreadable", f"`{name}` cannot be read: {error.strerror}", "", name) from error


CODES = {
    "missing_file": "C0603",
    "empty_glob": "C0604",
    "unknown_format": "C0605",
    "outside_project": "C0411",
    "unreadable": "C0602",
    "object_store": "C0501",
    "all_rejected": "C0606",
    "cache": "C0607",
}


def _diagnostic(error: ingest.IngestError, corpus: plan.Corpus) -> Diagnostic:
    return Diagnostic(
        CODES[error.kind],
        error.message,
        corpus.span,
        f"source `{corpus.name}`",
        (error.help,) if error.help else (),
        source=corpus.source,
    )


def _tools_by_domain(raw: bytes, corpus: plan.Corpus) -> dict[str | None, str]:
    """A list of tools for all runs, or an object with one list a domain."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise CuratecError.of("C0602", f"`{corpus.tools_from}` is not JSON: {error}", place=str(corpus.tools_from)) from None
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    listed = {None: value} if isinstance(value, list) else value
    if not isinstance(listed, dict) or not all(isinstance(tools, list) for tools in listed.values()):
        raise CuratecError.of(
            "C0602",
            f"`{corpus.tools_from}` holds no tools",
            help='write a list of tools, or an object with one list for each domain: {"airline": […]}',
            place=str(corpus.tools_from),
        )
    return {domain: orjson.dumps([_as_function(tool) for tool in tools]).decode() for domain, tools in listed.items()}


def _as_function(tool: dict[str, object]) -> dict[str, object]:
    return tool if "function" in tool else {"type": "function", "function": tool}


# ---- the first state ----


def load(inputs: Sequence[Input], cores: Sequence[Core], scratch: Path) -> Loaded:
    """Everything that `from` gives. `cores` are all expressions of the plan, for the paths below `meta` and `args`."""
    meta, args = paths_of(cores, "meta"), paths_of(cores, "args")
    frames: list[pl.DataFrame] = []
    files: list[Path] = []
    parts: list[ingest.Part] = []
    toolsets: dict[str, str] = {}
    for given in inputs:
        settings = [c for c in (given.corpus.error_when, given.corpus.success_when) if c is not None]
        own_args = paths_of(settings, "args")
        for part in given.parsed.parts:
            number = len(parts)
            rows = _rows(given, part, (*meta, *(p for p in paths_of(settings, "meta") if p not in meta)), toolsets)
            turns = _settled_turns(given, part, rows, own_args, scratch / f"part-{number}.arrow")
            rows = _judged(given, rows, Turns((turns,)), own_args, toolsets)
            frames.append(rows.with_columns(part=pl.lit(number, dtype=pl.UInt32)))
            files.append(turns)
            parts.append(part)
    if not frames:  # files without a single record
        frames = [_settled(given, _NOTHING, (), meta, toolsets).with_columns(part=pl.lit(0, dtype=pl.UInt32)) for given in inputs]
    turns_now = Turns(tuple(files))
    rows = _identified(pl.concat(frames, how="diagonal"), State(pl.concat(frames, how="diagonal"), turns_now, toolsets, args))
    return Loaded(State(_with_attempts(rows), turns_now, toolsets, args), tuple(parts), tuple(inputs))


def _rows(given: Input, part: ingest.Part, meta: tuple[json_path.JsonPath, ...], toolsets: dict[str, str]) -> pl.DataFrame:
    """The narrow rows of one part under the language's names, source settings applied."""
    return _settled(given, pl.read_parquet(part.runs, columns=_NOTHING.columns), part.files, meta, toolsets)


_NOTHING = pl.DataFrame(schema={name: dtype for name, dtype in RUNS.items() if name not in ("error", "gold_json", "reward_parts")})


def _settled(
    given: Input, read: pl.DataFrame, files: Sequence[str], meta: tuple[json_path.JsonPath, ...], toolsets: dict[str, str]
) -> pl.DataFrame:
    corpus = given.corpus
    paths = pl.Series("path", list(files), dtype=pl.String).gather(read["file"])
    rows = read.with_columns(
        source=pl.lit(corpus.name),
        path=paths,
        domain=pl.coalesce("domain", _from_path(paths, corpus.domain_from_path), pl.lit(corpus.domain, dtype=pl.String), pl.lit(corpus.name)),
        model=pl.coalesce("model", _from_path(paths, corpus.model_from_path), pl.lit(corpus.model, dtype=pl.String)),
        license=pl.coalesce("license", pl.lit(corpus.license, dtype=pl.String)),
        depth=pl.col("depth").cast(pl.Int64),
        trial=pl.col("trial").cast(pl.Int64),
    )
    tools = pl.Series([t or given.tools.get(d) or given.tools.get(None) for t, d in zip(rows["tools_json"], rows["domain"], strict=True)], dtype=pl.String)
    rows = rows.with_columns(toolset=_toolset(tools, toolsets))
    if meta:
        found = json_path.extract(rows["meta_json"], meta)
        rows = rows.with_columns(found[name].alias(meta_column(name)) for name in found.columns)
    return rows.drop("tools_json", "meta_json", "file", "prompt_tokens", "completion_tokens")


def _from_path(paths: pl.Series, pattern: str | None) -> pl.Expr:
    if pattern is None:
        return pl.lit(None, dtype=pl.String)
    parsed = regex.parse(pattern)
    assert isinstance(parsed, regex.Regex)
    return pl.lit(pl.select(regex.extract(pl.lit(paths), parsed)).to_series())


def _toolset(tools: pl.Series, toolsets: dict[str, str]) -> pl.Series:
    """Each distinct list of tools is kept once, under its hash."""
    names = {text: xxhash.xxh3_128_hexdigest(text.encode()) for text in tools.drop_nulls().unique()}
    toolsets.update({name: text for text, name in names.items()})
    return tools.replace_strict(names, default=None, return_dtype=pl.String) if names else pl.Series([None] * len(tools), dtype=pl.String)


def _settled_turns(given: Input, part: ingest.Part, rows: pl.DataFrame, args: tuple[json_path.JsonPath, ...], target: Path) -> Path:
    """The part's turns with `error when` and `system` applied; the cached file itself where neither is given."""
    if given.corpus.error_when is None and given.system is None:
        return part.turns
    turns = pl.read_parquet(part.turns)
    if given.corpus.error_when is not None:
        errs = Frames(rows, turns, paths=args).series(given.corpus.error_when, Level.TURN)
        told = (pl.col("role").cast(pl.String) == "tool") & errs.is_not_null()
        turns = turns.with_columns(is_error=pl.when(told).then(pl.lit(errs)).otherwise("is_error"))
    if given.system is not None:
        turns = _with_system(turns, rows, given.system)
    turns.write_ipc(target, compression="uncompressed")
    return target


def _with_system(turns: pl.DataFrame, rows: pl.DataFrame, text: str) -> pl.DataFrame:
    """A system turn, numbered -1, for each run that has turns and none of its own."""
    have = turns.filter(pl.col("role").cast(pl.String) == "system")["row"].unique()
    lacking = turns["row"].unique().sort()
    lacking = lacking.filter(~lacking.is_in(have.implode()))
    empty = pl.DataFrame({"row": lacking}, schema={"row": pl.UInt32})
    given = {"turn": -1, "role": "system", "actor": "agent", "content": text, "content_kind": "text", "calls": [], "loss_weight": 1.0, "copied_context": False}
    added = empty.with_columns(
        pl.lit(given.get(name), dtype=dtype).alias(name) for name, dtype in TURNS.items() if name != "row"
    ).select(turns.columns)
    return pl.concat([turns, added]).sort("row", "turn", maintain_order=True)


def _judged(given: Input, rows: pl.DataFrame, turns: Turns, args: tuple[json_path.JsonPath, ...], toolsets: dict[str, str]) -> pl.DataFrame:
    """`success when`, and the outcome that follows from it. A crash stays without a verdict."""
    condition = given.corpus.success_when
    if condition is None:
        return rows
    loaded = turns.load(0, rows["row"]) if needs_turns(condition) else None
    verdict = Frames(rows, loaded, toolsets=toolsets, paths=args).series(condition)
    crashed = pl.col("outcome") == "crash"
    success = pl.when(~crashed).then(pl.lit(verdict))
    return rows.with_columns(
        success=success,
        outcome=pl.when(crashed | (pl.col("outcome") == "truncated"))
        .then("outcome")
        .when(success)
        .then(pl.lit("success"))
        .when(~success)
        .then(pl.lit("failure"))
        .otherwise(pl.lit("unknown")),
    )


def _identified(rows: pl.DataFrame, state: State) -> pl.DataFrame:
    """`id` (a digest, with `~n` for identical records), `task_id` and `task`."""
    rows = rows.with_columns(
        nth=pl.int_range(1, pl.len() + 1).over("digest", order_by=["source", "domain", "model", "part", "row"])
    ).with_columns(
        id=pl.when(pl.col("nth") == 1)
        .then("digest")
        .otherwise(pl.concat_str("digest", pl.lit("~"), pl.col("nth").cast(pl.String)))
    )
    if rows["task_id"].null_count():
        rows = rows.with_columns(task_id=pl.coalesce("task_id", _task_hash(rows, state)))
    return rows.with_columns(task=pl.concat_str("domain", pl.lit("/"), "task_id")).drop("nth")


def _task_hash(rows: pl.DataFrame, state: State) -> pl.Series:
    """A hash of first user text and tools stands for the id of a task that has none."""
    from curatec.compiler.core import Column
    from curatec.compiler.text import hash_key
    from curatec.compiler.types import Type

    first = Column(Level.TRAJECTORY, "task_text", Type.TEXT)
    texts = pl.concat([frames.series(first) for _, frames in state.batches()])
    return hash_key([texts, rows["toolset"]]).str.slice(0, 16)


def _with_attempts(rows: pl.DataFrame) -> pl.DataFrame:
    """`attempts`, `pass_rate`, `spread` per (task, model), over all of `from`; an unknown model is one a source."""
    model = pl.coalesce("model", pl.concat_str(pl.lit("\0"), "source"))
    group = ["task", "_model"]
    attempts = pl.col("success").count().cast(pl.Int64)
    solved = pl.col("success").sum().cast(pl.Float64)
    spread = pl.col("reward").max() - pl.col("reward").min()
    return (
        rows.with_columns(_model=model)
        .with_columns(
            attempts=attempts.over(group),
            pass_rate=pl.when(attempts.over(group) >= 2).then(solved.over(group) / attempts.over(group).cast(pl.Float64)),
            spread=pl.when(pl.col("reward").count().over(group) >= 2).then(spread.over(group)),
        )
        .drop("_model")
        .sort("part", "row")
    )


def unknown_models(rows: pl.DataFrame) -> list[str]:
    """Sources some of whose runs name no model."""
    return sorted(rows.filter(pl.col("model").is_null())["source"].unique().to_list())


