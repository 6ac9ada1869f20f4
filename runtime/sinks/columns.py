"""How a row is laid out in parquet and in JSON lines, and what Hugging Face `datasets` makes of it.

Messages and tool schemas are open-shaped: as nested columns each would carry the keys of all the others as nulls, and a
trainer would write those into the prompt. So each message and each schema is one JSON text in parquet, of Arrow's JSON
type: `datasets` gives objects back (its `Json` feature), DuckDB has JSON, pyarrow and pandas have texts, polars has
texts behind `.ext.storage()`. JSON lines hold the very same text, as objects.

Messages of a closed shape (`entries`, `parts` and `chat`, for loaders of other targets) are nested columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import orjson
import polars as pl
import pyarrow as pa

from curatec.runtime.json_columns import json_members

Kind = Literal[
    "text", "texts", "int", "ints", "float", "floats", "flag", "json", "objects", "spans", "terms",
    "entry", "entries", "parts", "chat",
]  # fmt: skip

_SPAN = {"message": pa.int64(), "part": pa.string(), "call": pa.int64(), "start": pa.int64(), "end": pa.int64()}
_TERM = {"name": pa.string(), "weight": pa.float64()}
_ENTRY = {"from": pa.string(), "value": pa.string()}
_PART = {"type": pa.string(), "value": pa.string()}
_PARTS = {"role": pa.string(), "content": pa.list_(pa.struct(list(_PART.items()))), "loss_weight": pa.float64()}
_FUNCTION = {"name": pa.string(), "arguments": pa.string()}
_CALL = {"id": pa.string(), "type": pa.string(), "function": pa.struct(list(_FUNCTION.items()))}
_CHAT = {
    "role": pa.string(), "content": pa.string(), "reasoning_content": pa.string(),
    "tool_calls": pa.list_(pa.struct(list(_CALL.items()))), "tool_call_id": pa.string(), "name": pa.string(),
    "trainable": pa.bool_(),
}  # fmt: skip
_ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "int": pa.int64(),
    "ints": pa.list_(pa.int64()),
    "floats": pa.list_(pa.float64()),
    "objects": pa.list_(pa.json_()),
    "spans": pa.list_(pa.struct(list(_SPAN.items()))),
    "terms": pa.list_(pa.struct(list(_TERM.items()))),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "json": pa.json_(),
    "entry": pa.struct(list(_ENTRY.items())),
    "entries": pa.list_(pa.struct(list(_ENTRY.items()))),
    "parts": pa.list_(pa.struct(list(_PARTS.items()))),
    "chat": pa.list_(pa.struct(list(_CHAT.items()))),
}
_TEXTS: dict[Kind, pa.DataType] = _ARROW | {"json": pa.string(), "objects": _ARROW["texts"]}
_PLAIN = {pa.string(): pl.String, pa.int64(): pl.Int64, pa.float64(): pl.Float64, pa.bool_(): pl.Boolean}


def _polars(dtype: pa.DataType) -> pl.DataType | type[pl.DataType]:
    if pa.types.is_list(dtype):
        return pl.List(_polars(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pl.Struct({field.name: _polars(field.type) for field in dtype})
    return _PLAIN[dtype]


def _feature(dtype: pa.DataType) -> dict[str, Any]:
    """A type as `datasets` writes it into the metadata of a file."""
    if isinstance(dtype, pa.JsonType):
        return {"_type": "Json"}
    if pa.types.is_list(dtype):
        return {"feature": _feature(dtype.value_type), "_type": "List"}
    if pa.types.is_struct(dtype):
        return {field.name: _feature(field.type) for field in dtype}
    names = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool"}
    return {"dtype": names[dtype], "_type": "Value"}


@dataclass(frozen=True, slots=True)
class Col:
    """One column: `about` says in one line what it holds."""

    name: str
    kind: Kind
    about: str


COMMON = (
    Col("example_id", "text", "id of the row; of the trajectory where the row is one"),
    Col("parents", "texts", "ids of the trajectories that the row comes from"),
    Col("source", "text", "name of the source in the spec"),
    Col("license", "text", "license of the source, if it is known"),
    Col("task", "text", "domain/task_id"),
    Col("split", "text", "train or validation"),
    Col("n_tokens", "int", "tokens of all texts of the row: exact after `render`, else estimated, tool schemas apart"),
    Col("n_trained", "int", "tokens of the text that is trained, counted alike"),
)


def arrow_schema(columns: tuple[Col, ...]) -> pa.Schema:
    """Types of the parquet file, with the features for `datasets` in its metadata."""
    features = {c.name: _feature(_ARROW[c.kind]) for c in columns}
    about = orjson.dumps({"info": {"features": features}})
    return pa.schema([(c.name, _ARROW[c.kind]) for c in columns], metadata={b"huggingface": about})


def frame(columns: tuple[Col, ...], rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as columns; messages and schemas are JSON texts. Of a closed shape, a key that a row lacks is null.

    polars builds the columns: pyarrow's own reader of Python lists loads pandas first, where that is installed.
    """
    types = schema(columns)
    return pl.DataFrame([pl.Series(name, [row[name] for row in rows], dtype=types[name]) for name in types])


def schema(columns: tuple[Col, ...]) -> dict[str, Any]:
    """Types of the columns in polars."""
    return {c.name: _polars(_TEXTS[c.kind]) for c in columns}


def as_arrow(columns: tuple[Col, ...], rows: pl.DataFrame) -> pa.Table:
    """Rows as they go to parquet. Arrow takes no other values into its JSON type, so they pass through texts."""
    # In one piece: where pages end depends on how a column is cut.
    table = rows.select(c.name for c in columns).rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return table.cast(_texts(columns)).cast(arrow_schema(columns))


def _texts(columns: tuple[Col, ...]) -> pa.Schema:
    return pa.schema([(c.name, _TEXTS[c.kind]) for c in columns])


def lines(columns: tuple[Col, ...], rows: pl.DataFrame) -> pl.Series:
    """Each row as a line of JSON, keys in the order of the columns: what `json_line` writes, by columns. Kinds whose
    objects may lack a key have no such line (`has_lines`)."""
    pieces = [pl.lit("{")]  # joined in the end, all at once: each step on the way would copy all texts
    for hold_json, some in groupby(columns, key=lambda c: c.kind in _HOLD_JSON):
        if hold_json:
            members = [[pl.lit(f'"{c.name}":'), *_json_of(c, rows[c.name])] for c in some]
        else:
            members = [[json_members(*(pl.col(c.name) for c in some))]]
        for member in members:
            pieces += [pl.lit(","), *member] if len(pieces) > 1 else member
    return rows.select(line=pl.concat_str(*pieces, pl.lit("}\n"))).to_series()


def has_lines(columns: tuple[Col, ...]) -> bool:
    """Whether lines can be told from columns."""
    return not any(c.kind in ("parts", "chat") for c in columns)


_HOLD_JSON = ("objects", "json")


def _json_of(col: Col, texts: pl.Series) -> list[pl.Expr]:
    """A column of JSON texts, in pieces."""
    if col.kind == "json":
        return [pl.col(col.name).fill_null("null")]
    listed = [pl.lit("["), pl.col(col.name).list.join(","), pl.lit("]")]
    return [pl.concat_str(*listed).fill_null("null")] if texts.null_count() else listed


def json_line(columns: tuple[Col, ...], row: dict[str, Any]) -> bytes:
    """One row as a line of JSON, keys in the order of the columns."""
    return orjson.dumps({c.name: _as_json(c.kind, row[c.name]) for c in columns}, option=orjson.OPT_APPEND_NEWLINE)


def _as_json(kind: Kind, value: Any) -> Any:
    if kind == "objects" and value is not None:
        return [orjson.Fragment(text) for text in value]
    if kind == "json" and value is not None:
        return orjson.Fragment(value)
    return value
