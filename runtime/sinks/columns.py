"""How a row is laid out in parquet and in JSON lines, and what Hugging Face `datasets` makes of it.

Messages and tool schemas are open-shaped: as nested columns each would carry the keys of all the others as nulls, and a
trainer would write those into the prompt. So each message and each schema is one JSON text in parquet, of Arrow's JSON
type: `datasets` gives objects back (its `Json` feature), DuckDB has JSON, pyarrow and pandas have texts, polars has
texts behind `.ext.storage()`. JSON lines hold the very same text, as objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson
import polars as pl
import pyarrow as pa

Kind = Literal["text", "texts", "int", "ints", "floats", "objects", "spans", "terms"]

_SPAN = {"message": pa.int64(), "part": pa.string(), "call": pa.int64(), "start": pa.int64(), "end": pa.int64()}
_TERM = {"name": pa.string(), "weight": pa.float64()}
_ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "int": pa.int64(),
    "ints": pa.list_(pa.int64()),
    "floats": pa.list_(pa.float64()),
    "objects": pa.list_(pa.json_()),
    "spans": pa.list_(pa.struct(list(_SPAN.items()))),
    "terms": pa.list_(pa.struct(list(_TERM.items()))),
}
_PLAIN = {pa.string(): pl.String, pa.int64(): pl.Int64, pa.float64(): pl.Float64}
_POLARS: dict[Kind, pl.DataType | type[pl.DataType]] = {
    "text": pl.String,
    "texts": pl.List(pl.String),
    "int": pl.Int64,
    "ints": pl.List(pl.Int64),
    "floats": pl.List(pl.Float64),
    "objects": pl.List(pl.String),
    "spans": pl.List(pl.Struct({name: _PLAIN[dtype] for name, dtype in _SPAN.items()})),
    "terms": pl.List(pl.Struct({name: _PLAIN[dtype] for name, dtype in _TERM.items()})),
}


def _value(dtype: str) -> dict[str, Any]:
    return {"dtype": dtype, "_type": "Value"}


def _list(feature: dict[str, Any]) -> dict[str, Any]:
    return {"feature": feature, "_type": "List"}


def _struct(fields: dict[str, pa.DataType]) -> dict[str, Any]:
    names = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64"}
    return {name: _value(names[dtype]) for name, dtype in fields.items()}


_FEATURES: dict[Kind, dict[str, Any]] = {
    "text": _value("string"),
    "texts": _list(_value("string")),
    "int": _value("int64"),
    "ints": _list(_value("int64")),
    "floats": _list(_value("float64")),
    "objects": _list({"_type": "Json"}),
    "spans": _list(_struct(_SPAN)),
    "terms": _list(_struct(_TERM)),
}


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
    Col("n_tokens", "int", "estimated tokens of all texts of the row, tool schemas apart"),
    Col("n_trained", "int", "estimated tokens of the text that is trained"),
)


def arrow_schema(columns: tuple[Col, ...]) -> pa.Schema:
    """Types of the parquet file, with the features for `datasets` in its metadata."""
    features = {c.name: _FEATURES[c.kind] for c in columns}
    about = orjson.dumps({"info": {"features": features}})
    return pa.schema([(c.name, _ARROW[c.kind]) for c in columns], metadata={b"huggingface": about})


def table(columns: tuple[Col, ...], rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as they go to parquet. Arrow takes no Python values into its JSON type, so they pass through texts.

    polars builds the columns: pyarrow's own reader of Python lists loads pandas first, where that is installed.
    """
    data = {c.name: pl.Series(c.name, [row[c.name] for row in rows], dtype=_POLARS[c.kind]) for c in columns}
    return (
        pl.DataFrame(data)
        .to_arrow(compat_level=pl.CompatLevel.oldest())
        .cast(_texts(columns))
        .cast(arrow_schema(columns))
    )


def _texts(columns: tuple[Col, ...]) -> pa.Schema:
    return pa.schema([(c.name, _ARROW["texts"] if c.kind == "objects" else _ARROW[c.kind]) for c in columns])


def json_line(columns: tuple[Col, ...], row: dict[str, Any]) -> bytes:
    """One row as a line of JSON, keys in the order of the columns."""
    return orjson.dumps({c.name: _as_json(c.kind, row[c.name]) for c in columns}, option=orjson.OPT_APPEND_NEWLINE)


def _as_json(kind: Kind, value: Any) -> Any:
    if kind == "objects" and value is not None:
        return [orjson.Fragment(text) for text in value]
    return value
