"""`from`: parsed parts and source settings → the first state, with every fact frozen (semantics 2, 3, 4, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import polars as pl
import xxhash

from curatec.compiler import json_path, regex
from curatec.compiler.core import Core
from curatec.compiler.engine import POLARS, Engine
from curatec.compiler.frames import meta_column, paths_of
from curatec.compiler.json_path import JsonPath
from curatec.compiler.passes.projection import needs_turns
from curatec.compiler.types import Level
from curatec.runtime import arrow_file, ingest, turns
from curatec.runtime.facts import identified, with_attempts
from curatec.runtime.formats.counts import COUNTS, column
from curatec.runtime.inputs import Input
from curatec.runtime.state import State
from curatec.runtime.tables import RUNS, TURNS
from curatec.runtime.turns import Parsed, shifted

# Columns of RUNS that stay on disk until a sink writes them.
WIDE = ("tools_json", "reward_parts", "error", "gold_json", "meta_json")


# Parts are put together up to this many turns: every pass over turns pays for each part.
_TOGETHER = 50_000


@dataclass(frozen=True)
class Piece:
    """A parsed part inside a part of the state: its rows follow those of the pieces before it."""

    part: ingest.Part
    offset: int


@dataclass(frozen=True)
class Loaded:
    """The state at `from`, and what each of its parts was put together from, in the order of `rows.part`."""

    state: State
    pieces: tuple[tuple[Piece, ...], ...]
    inputs: tuple[Input, ...]

    def wide(self, state: State, rows: pl.DataFrame) -> pl.DataFrame:
        """`id` and the wide columns of some rows of a state, in their order; what a step wrote anew is new."""
        homes = rows.select("id", "home_part", "home_row")
        found = [self._read(int(part)) for part in homes["home_part"].unique().sort()]
        read = homes.join(pl.concat(found), on=["home_part", "home_row"], how="left", maintain_order="left")
        return _anew(read.drop("home_part", "home_row"), state.rewritten)

    def with_meta(self, state: State, paths: Sequence[JsonPath]) -> State:
        """With a column for each path below `meta`. These are facts: whenever they are asked for, they are as read."""
        lacking = [path for path in paths if meta_column(str(path)) not in state.rows.columns]
        if not lacking:
            return state
        homes = state.rows.select("home_part", "home_row")
        read = [self._read(int(part), ("meta_json",)) for part in homes["home_part"].unique().sort()]
        texts = homes.join(
            pl.concat([_NO_META, *read]), on=["home_part", "home_row"], how="left", maintain_order="left"
        )
        found = json_path.extract(texts["meta_json"], lacking)
        columns = (found[name].alias(meta_column(name)) for name in found.columns)
        return replace(state, rows=state.rows.with_columns(columns))

    def _read(self, part: int, columns: Sequence[str] = WIDE) -> pl.DataFrame:
        read = [shifted(arrow_file.read(p.part.runs, ["row", *columns]), p.offset) for p in self.pieces[part]]
        return pl.concat(read).rename({"row": "home_row"}).with_columns(home_part=pl.lit(part, dtype=pl.UInt32))


_NO_META = pl.DataFrame(schema={"home_row": pl.UInt32, "meta_json": pl.String, "home_part": pl.UInt32})


def _anew(read: pl.DataFrame, rewritten: Mapping[str, Mapping[str, str]]) -> pl.DataFrame:
    """With the texts that stand for what was read."""
    new = [rewritten.get(id_, {}) for id_ in read["id"]]
    return read.with_columns(
        pl.Series(name, [said.get(name, old) for said, old in zip(new, read[name], strict=True)], dtype=pl.String)
        for name in sorted({name for said in new for name in said})
    )


def load(inputs: Sequence[Input], cores: Sequence[Core], scratch: Path, engine: Engine = POLARS) -> Loaded:
    """Everything that `from` gives. `cores` are all expressions of the plan, for the paths below `meta` and `args`."""
    meta, args = paths_of(cores, "meta"), paths_of(cores, "args")
    toolsets: dict[str, str] = {}
    frames: list[pl.DataFrame] = []
    now = turns.Turns(kept=turns.kept(engine.memory))
    groups = list(_groups(inputs))
    for number, group in enumerate(groups):
        rows, changed = _settled_group(group, meta, toolsets, engine)
        frames.append(rows.with_columns(part=pl.lit(number, dtype=pl.UInt32)))
        if changed is None:
            now = now.opened(_parsed(group))
        else:
            now = now.written(number, changed, scratch / f"part-{number}.arrow")
    if not frames:  # files without a single record
        nothing = [_settled_rows(given, _NOTHING, (), meta, toolsets) for given in inputs]
        frames = [rows.with_columns(part=pl.lit(0, dtype=pl.UInt32)) for rows in nothing]
    rows = pl.concat(frames, how="diagonal")
    rows = with_attempts(identified(rows, State(rows, now, toolsets, args, engine=engine)), engine)
    rows = rows.with_columns(origin="id", home_part="part", home_row="row")
    # Counts hold until the turns change, and a source may change them.
    known: dict[Core, str] = {} if any(map(_changes_turns, inputs)) else {count: column(count) for count in COUNTS}
    rows = rows.drop([column(count) for count in COUNTS if count not in known])
    return Loaded(State(rows, now, toolsets, args, known, engine=engine), pieces_of(inputs), tuple(inputs))


def pieces_of(inputs: Sequence[Input]) -> tuple[tuple[Piece, ...], ...]:
    """What each part of the state at `from` is put together from."""
    groups = _groups(inputs)
    return tuple(tuple(Piece(part, at) for (_, part), at in zip(g, _starts(g), strict=False)) for g in groups)


_Group = list[tuple[Input, ingest.Part]]  # parsed parts that are one part of the state


def _groups(inputs: Sequence[Input]) -> list[_Group]:
    """Neighbours that together have few turns."""
    groups: list[_Group] = []
    held = 0
    for given in inputs:
        for part in given.parsed.parts:
            if not groups or held + part.n_turns > _TOGETHER:
                groups.append([])
                held = 0
            groups[-1].append((given, part))
            held += part.n_turns
    return groups


def _starts(group: _Group) -> list[int]:
    """What is added to the rows of each; one number more than there are parts."""
    return list(accumulate((part.n_runs for _, part in group), initial=0))


def _parsed(group: _Group) -> Parsed:
    return Parsed(tuple((part.turns, at) for (_, part), at in zip(group, _starts(group), strict=False)))


def _settled_group(
    group: _Group, meta: tuple[JsonPath, ...], toolsets: dict[str, str], engine: Engine
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Rows, and turns where a source has something to say of them; null where they are as they were read."""
    changes = any(_changes_turns(given) for given, _ in group)
    rows: list[pl.DataFrame] = []
    changed: list[pl.DataFrame] = []
    for (given, part), at in zip(group, _starts(group), strict=False):
        own, turns_now = _settled_part(given, part, meta, toolsets, engine, whole=changes)
        rows.append(shifted(own, at))
        if turns_now is not None and changes:
            changed.append(shifted(turns_now, at))
    together = pl.concat(changed, rechunk=True).with_columns(edited=pl.lit(False)) if changes else None
    return pl.concat(rows, how="diagonal"), together


def _changes_turns(given: Input) -> bool:
    """Whether the source says more of its turns than its files do."""
    return given.corpus.error_when is not None or given.system is not None


def _settled_part(
    given: Input,
    part: ingest.Part,
    meta: tuple[JsonPath, ...],
    toolsets: dict[str, str],
    engine: Engine,
    *,
    whole: bool,
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Rows and turns of a parsed part, the settings of its source applied; turns only if they are asked for, `whole`,
    or if `success when` reads them."""
    settings = [c for c in (given.corpus.error_when, given.corpus.success_when) if c is not None]
    args = paths_of(settings, "args")
    own_meta = (*meta, *(path for path in paths_of(settings, "meta") if path not in meta))
    columns = [name for name in _NOTHING.columns if name != "meta_json" or own_meta]
    rows = _settled_rows(given, arrow_file.read(part.runs, columns), part.files, own_meta, toolsets)
    verdict = given.corpus.success_when
    if not whole and (verdict is None or not needs_turns(verdict)):
        return _judged(given, rows, None, args, toolsets, engine), None
    told = _settled_turns(given, arrow_file.read(part.turns), rows, args, engine)
    return _judged(given, rows, told, args, toolsets, engine), told


_NOTHING = pl.DataFrame(
    schema={name: dtype for name, dtype in RUNS.items() if name not in ("error", "gold_json", "reward_parts")}
    | {column(count): pl.Int64 for count in COUNTS}
)


def _settled_rows(
    given: Input, read: pl.DataFrame, files: Sequence[str], meta: tuple[JsonPath, ...], toolsets: dict[str, str]
) -> pl.DataFrame:
    """The narrow rows of one part under the language's names."""
    corpus = given.corpus
    paths = pl.Series("path", list(files), dtype=pl.String).gather(read["file"])
    said = {
        name: pl.lit(value, dtype=pl.String) for name, value in (("domain", corpus.domain), ("model", corpus.model))
    }
    rows = read.with_columns(
        source=pl.lit(corpus.name),
        path=paths,
        domain=pl.coalesce("domain", _from_path(paths, corpus.domain_from_path), said["domain"], pl.lit(corpus.name)),
        model=pl.coalesce("model", _from_path(paths, corpus.model_from_path), said["model"]),
        license=pl.coalesce("license", pl.lit(corpus.license, dtype=pl.String)),
        depth=pl.col("depth").cast(pl.Int64),
        trial=pl.col("trial").cast(pl.Int64),
    )
    rows = rows.with_columns(toolset=_toolset(_tools(given, rows), toolsets))
    if meta:
        found = json_path.extract(rows["meta_json"], meta)
        rows = rows.with_columns(found[name].alias(meta_column(name)) for name in found.columns)
    return rows.drop("tools_json", "meta_json", "file", "prompt_tokens", "completion_tokens", strict=False)


def _tools(given: Input, rows: pl.DataFrame) -> pl.Series:
    """The tools of each run: its own, else those that the source names for its domain, else for all."""
    own = rows["tools_json"].replace("", None)
    if not given.tools:
        return own
    named = {domain: tools for domain, tools in given.tools.items() if domain is not None}
    of_domain = rows["domain"].replace_strict(named, default=given.tools.get(None), return_dtype=pl.String)
    return pl.select(pl.coalesce(pl.lit(own), pl.lit(of_domain))).to_series()


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
    if not names:
        return pl.Series([None] * len(tools), dtype=pl.String)
    return tools.replace_strict(names, default=None, return_dtype=pl.String)


def _settled_turns(
    given: Input, turns: pl.DataFrame, rows: pl.DataFrame, args: tuple[JsonPath, ...], engine: Engine
) -> pl.DataFrame:
    """The turns of a part with `error when` and `system` applied."""
    if given.corpus.error_when is not None:
        errs = engine.batch(rows, turns, paths=args).series(given.corpus.error_when, Level.TURN)
        told = (pl.col("role").cast(pl.String) == "tool") & errs.is_not_null()
        turns = turns.with_columns(is_error=pl.when(told).then(pl.lit(errs)).otherwise("is_error"))
    return turns if given.system is None else _with_system(turns, given.system)


def _with_system(turns: pl.DataFrame, text: str) -> pl.DataFrame:
    """A system turn, numbered -1, for each run that has turns and none of its own."""
    have = turns.filter(pl.col("role").cast(pl.String) == "system")["row"].unique()
    lacking = turns["row"].unique().sort()
    lacking = lacking.filter(~lacking.is_in(have.implode()))
    empty = pl.DataFrame({"row": lacking}, schema={"row": pl.UInt32})
    given = {
        "turn": -1,
        "role": "system",
        "actor": "agent",
        "content": text,
        "content_kind": "text",
        "calls": [],
        "loss_weight": 1.0,
        "copied_context": False,
    }
    added = empty.with_columns(
        pl.lit(given.get(name), dtype=dtype).alias(name) for name, dtype in TURNS.items() if name != "row"
    ).select(turns.columns)
    return pl.concat([turns, added]).sort("row", "turn", maintain_order=True)


def _judged(
    given: Input,
    rows: pl.DataFrame,
    turns: pl.DataFrame | None,
    args: tuple[JsonPath, ...],
    toolsets: dict[str, str],
    engine: Engine,
) -> pl.DataFrame:
    """`success when`, and the outcome that follows from it. A crash stays without a verdict."""
    condition = given.corpus.success_when
    if condition is None:
        return rows
    verdict = engine.batch(rows, turns, toolsets=toolsets, paths=args).series(condition)
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
