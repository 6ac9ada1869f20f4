"""JSON texts of whole columns, byte for byte as orjson writes them one by one."""

from __future__ import annotations

import polars as pl


def json_text(values: pl.Expr) -> pl.Expr:
    """Each value as JSON: texts, numbers, truth values, lists and structs of them; null as `null`."""
    return pl.struct(values.alias("")).struct.json_encode().str.slice(len('{"":')).str.head(-1)


def json_members(*members: pl.Expr) -> pl.Expr:
    """The members of an object, without its braces: `"name":value,…`, named as the expressions are."""
    return pl.struct(*members).struct.json_encode().str.slice(1).str.head(-1)
