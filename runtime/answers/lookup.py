"""What a user names in an output: a run, an example, a record, a line that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.answers.output import Output

_SHOWN = 5


@dataclass(frozen=True)
class Found:
    """`runs` are ids of runs or of rows that steps made. `example` is set when a row of a sink was named, `reject` when
    it is such a line."""

    runs: tuple[str, ...] = ()
    example: str | None = None
    sinks: tuple[str, ...] = ()  # of the example
    reject: dict[str, Any] | None = None


def find(output: Output, name: str) -> Found:
    """By id or its beginning, example id, the record's own id, or FILE:LINE. Raises CuratecError (C0622, C0623)."""
    if name in output.runs["id"]:
        return Found((name,))
    if name in output.made:
        return Found((name,), name, _sinks(output, name))
    example = _example(output, name)
    if example is not None:
        return example
    for column, matches in (
        ("id", pl.col("id").str.starts_with(name)),
        ("record_id", pl.col("record_id") == name),
        ("record_id", pl.col("record_id").str.starts_with(name)),
    ):
        rows = output.runs.filter(matches) if name and column in output.runs.columns else output.runs.clear()
        if rows.height == 1:
            return Found((rows["id"][0],))
        if rows.height:
            raise _ambiguous(output, name, rows)
    begun = {id_ for id_ in (*output.ledger["example_id"].drop_nulls().unique(), *output.made) if id_.startswith(name)}
    if name and len(begun) == 1:
        return find(output, begun.pop())
    if name and begun:
        made = pl.DataFrame({"id": sorted(begun)}).with_columns(task=pl.lit("made from others"))
        raise _ambiguous(output, name, made, "rows")
    return _reject(output, name)


def _sinks(output: Output, example: str) -> tuple[str, ...]:
    kept = output.ledger.filter((pl.col("example_id") == example) & (pl.col("action") == "kept"))
    return tuple(kept["sink"].drop_nulls().unique().sort())


def _example(output: Output, name: str) -> Found | None:
    made = output.ledger.filter((pl.col("example_id") == name) & pl.col("action").is_in(["kept", "created"]))
    parents = made["traj_id"].unique(maintain_order=True).to_list()
    lineage = output.lineage.filter(pl.col("out") == name).sort("ordinal")["in"].to_list()
    if not made.height and not lineage:
        return None
    known = {*output.runs["id"], *output.made}
    runs = tuple(dict.fromkeys(run for run in (*lineage, *parents) if run in known))
    sinks = tuple(made["sink"].drop_nulls().unique().sort())
    return Found(runs, name, sinks)


def _ambiguous(output: Output, name: str, rows: pl.DataFrame, what: str = "runs") -> CuratecError:
    some = [f"{row['id']}  {row['task']}" for row in rows.sort("id").head(_SHOWN).iter_rows(named=True)]
    more = [f"and {rows.height - _SHOWN} more"] if rows.height > _SHOWN else []
    message = f"`{name}` could be {rows.height} {what}"
    return CuratecError.of("C0623", message, help=("write more of one of them:", *some, *more), place=str(output.root))


def _reject(output: Output, name: str) -> Found:
    file, _, line = name.rpartition(":")
    for reject in output.rejects:
        if file and line.isdigit() and reject["line"] == int(line) and _same_file(reject["file"], file):
            return Found(reject=reject)
    help_: tuple[str, ...] = (
        "name a run by the beginning of its id, an example, a record's own id, or FILE:LINE of a rejected record",
    )
    if output.runs.height:
        help_ = (*help_, f"for example {output.runs['id'][0][:12]}")
    raise CuratecError.of("C0622", f"nothing in this output is called `{name}`", help=help_, place=str(output.root))


def _same_file(shown: str, asked: str) -> bool:
    return shown == asked or shown.endswith(f"/{asked}") or asked.endswith(f"/{shown}")
