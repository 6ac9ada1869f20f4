"""Values of side files, read strictly as their declared types: what does not fit is an error, never a null."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from curatec.compiler.plan import Table
from curatec.compiler.types import Type, article
from curatec.dsl.diagnostics import CuratecError, did_you_mean
from curatec.runtime.formats.json_text import NonFinite, Spelled
from curatec.runtime.formats.values import text_of
from curatec.runtime.side.records import Declared, Row, fault

_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Misfit(Exception):
    """A value that its column cannot hold."""


def shown(value: Any) -> str:
    """A value as a message quotes it."""
    text = value.text if isinstance(value, Spelled) else value if isinstance(value, str) else str(value)
    text = f'"{text}"' if isinstance(value, str) else {"True": "true", "False": "false"}.get(text, text)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read(declared: Declared, row: Row, column: str, type_: Type) -> Any:
    """The value of a column, null where it is absent. Raises CuratecError (C0630)."""
    value = row.values.get(column)
    try:
        return cell(value, type_, spelled=column in row.spelled)
    except Misfit:
        raise fault(
            declared,
            "C0630",
            f"{row.place}: {shown(value)} in column `{column}` is not {article(type_)}",
            _advice(declared, value, column, type_),
        ) from None


def _advice(declared: Declared, value: Any, column: str, type_: Type) -> str:
    wanted = "true or false" if type_ is Type.BOOL else article(type_)
    found = {bool: "bool", int: "int", float: "float", str: "text"}.get(type(value))
    if isinstance(declared, Table) and found is not None and found != type_:
        return f"declare what the file holds, `{column}: {found}`, or write the value as {wanted}"
    return f"write the value as {wanted}, or leave it out"


def cell(value: Any, type_: Type, *, spelled: bool = False) -> Any:
    """A value as its declared type; NaN is null, a whole number is an int however it is spelled. Raises Misfit.

    `spelled`: the value is a cell of text, in which `true`, `false` and numbers are written out.
    """
    if value is None or (isinstance(value, NonFinite) and value.text == "NaN"):
        return None
    if type_ is Type.TEXT:
        if isinstance(value, str):
            return value
    elif type_ is Type.BOOL:
        return _bool(value, spelled)
    elif spelled:
        return _spelled_number(value, type_)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value, type_)
    raise Misfit


def _bool(value: Any, spelled: bool) -> bool:
    if isinstance(value, bool):
        return value
    if spelled and value.lower() in ("true", "false"):
        return bool(value.lower() == "true")
    raise Misfit


def _spelled_number(text: str, type_: Type) -> int | float:
    if type_ is Type.INT and _WHOLE.fullmatch(text):
        return _number(int(text.partition(".")[0]), type_)
    if type_ is Type.FLOAT and _NUMBER.fullmatch(text):
        return _number(float(text), type_)
    raise Misfit


def _number(value: int | float, type_: Type) -> int | float:
    if type_ is Type.FLOAT and isfinite(value):
        return float(value)
    if type_ is Type.INT and isfinite(value) and value == int(value) and -(2**63) <= int(value) < 2**63:
        return int(value)
    raise Misfit


def identifier(declared: Declared, row: Row, column: str) -> str | None:
    """An id as text, as ids of runs are read: a number by its digits. Raises CuratecError (C0630)."""
    value = row.values.get(column)
    found = text_of(value)
    if value is not None and (found is None or isinstance(value, NonFinite)):
        raise fault(
            declared,
            "C0630",
            f"{row.place}: {shown(value)} in column `{column}` is no id",
            "an id is a text or a number",
        )
    return found


def missing(declared: Declared, column: str, seen: Sequence[str]) -> CuratecError:
    """No record has a column."""
    listed = f"there are {', '.join(f'`{name}`' for name in seen[:12])}{' …' if len(seen) > 12 else ''}"
    help_ = (*did_you_mean(column, seen), listed)
    return fault(declared, "C0630", f"no record of `{declared.name}` has a column `{column}`", *help_)
