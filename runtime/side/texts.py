"""The texts of trajectories in which a leak is looked for."""

from __future__ import annotations

import json
import re

import polars as pl

from curatec.compiler.frames import Frames
from curatec.runtime.formats.json_text import mend_text
from curatec.runtime.side.leaks import TEXTS

# A string of a JSON text, and the colon that makes it a key. Read by hand, so that both of two like keys count.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*:)?', re.DOTALL)
_SAID = pl.col("role").is_in(["user", "assistant"])


def texts_of(frames: Frames, at_least: int = 1) -> pl.DataFrame:
    """TEXTS of the runs of a batch, `row` being the position in `frames.runs`: contents and reasoning of turns that are
    neither system nor event, and the strings in arguments of calls of `at_least` code points."""
    turns = frames.turns.with_columns(pl.col("role").cast(pl.String))
    turns = turns.filter(~pl.col("role").is_in(["system", "event"]))
    told = [turns.select(row="run", text=name, said=_SAID) for name in ("content", "reasoning")]
    return pl.concat([*told, _handed_over(turns, at_least)]).drop_nulls("text").cast(TEXTS)


def _handed_over(turns: pl.DataFrame, at_least: int) -> pl.DataFrame:
    calls = turns.select("run", "calls").explode("calls", empty_as_null=False, keep_nulls=False).unnest("calls")
    calls = calls.filter(pl.coalesce("args_json", "args_raw").str.len_chars() >= at_least)
    rows: list[tuple[int, str]] = []
    for run, args, raw in calls.select("run", "args_json", "args_raw").iter_rows():
        rows += [(run, raw)] if args is None else [(run, text) for text in strings(args)]
    return pl.DataFrame(rows, schema={"row": pl.UInt32, "text": pl.String}, orient="row").with_columns(
        said=pl.lit(False)
    )


def strings(args_json: str) -> list[str]:
    """The strings in a JSON text, keys left out."""
    return [_plain(inside) if "\\" in inside else inside for inside, colon in _STRING.findall(args_json) if not colon]


def _plain(inside: str) -> str:
    try:
        return mend_text(json.loads(f'"{inside}"', strict=False), set())
    except json.JSONDecodeError:
        return inside
