"""Records of side files: JSON, JSON lines, parquet and CSV, each also packed, read strictly.

A corpus is taken as it comes and what is broken in it is set aside; a side table decides what is trained, so that the
first thing wrong with it ends the compile. An object whose values are all objects, alone in its file, is a table by
key: `{"repo-1": {"resolved": true}}` (the form of many evaluation reports).
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.dsl.source import Source, Span
from curatec.runtime import ingest
from curatec.runtime.formats.containers import is_damage, read_records, text_stream
from curatec.runtime.formats.json_stream import Broken
from curatec.runtime.formats.json_text import Repeated
from curatec.runtime.inputs import CODES

_CSV = (".csv", ".csv.gz", ".csv.zst")
_WHOLE = "mend the file: it is read whole or not at all"
_KNOWN = "it is taken for JSON, as what is neither parquet nor called `.csv`"


class Declared(Protocol):
    """A `table` or a `test set`, as the plan has it."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def base(self) -> str: ...
    @property
    def span(self) -> Span: ...
    @property
    def source(self) -> Source | None: ...


@dataclass(frozen=True, slots=True)
class Row:
    """One record: where it stands (`verdicts.csv, line 3`) and its columns. `spelled`: its values are cells of text."""

    place: str
    values: dict[str, Any]
    spelled: frozenset[str] = frozenset()


def fault(declared: Declared, code: str, message: str, *help: str) -> CuratecError:
    """What is wrong with side data, shown where the spec declares it."""
    return CuratecError([Diagnostic(code, message, declared.span, f"`{declared.name}`", help, source=declared.source)])


def rows(declared: Declared, key: str | None, project: Path, allowed: tuple[Path, ...]) -> Iterator[Row]:
    """The records of all files that `path` names. Raises CuratecError (C0411, C0602, C0603, C0604, C0630)."""
    base = Path(declared.base)
    try:
        paths = ingest.resolve(declared.path, base, project, allowed)
    except ingest.IngestError as error:
        help_ = (error.help,) if error.help else ()
        raise fault(declared, CODES[error.kind], error.message, *help_) from None
    for path in paths:
        name = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name
        try:
            if path.name.lower().endswith(_CSV):
                yield from _cells(declared, path, name)
            else:
                yield from _objects(declared, path, name, key)
        except OSError as error:
            message = f"`{name}` cannot be read: {error.strerror or error}"
            raise fault(declared, "C0602", message, "check the file and its rights") from None


def _cells(declared: Declared, path: Path, name: str) -> Iterator[Row]:
    """Rows of a CSV file with a header; an empty cell is null, a blank line is no row."""
    csv.field_size_limit(sys.maxsize)  # texts of tasks are longer than its default
    with io.TextIOWrapper(text_stream(path), encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, [])
            spelled = frozenset(header)
            twice = next((column for column in header if header.count(column) > 1), None)
            if twice is not None:
                raise fault(declared, "C0630", f"`{name}` has two columns `{twice}`", "rename one of them")
            for cells in reader:
                if not cells:
                    continue
                place = f"{name}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise fault(
                        declared,
                        "C0630",
                        f"{place}: {len(cells)} cells under {len(header)} columns",
                        "give each row one cell a column; quote a cell that holds a comma",
                    )
                yield Row(place, {c: cell or None for c, cell in zip(header, cells, strict=True)}, spelled)
        except Exception as error:
            if not isinstance(error, csv.Error | UnicodeDecodeError) and not is_damage(error):
                raise
            message = f"{name}, line {reader.line_num + 1}: {error}"
            raise fault(declared, "C0602", message, "write it as CSV in UTF-8") from None


def _objects(declared: Declared, path: Path, name: str, key: str | None) -> Iterator[Row]:
    for item in read_records(path, frozenset()):
        if isinstance(item, Broken):
            where = f"{name}, record {item.line}" if item.line else name
            raise fault(declared, "C0602", f"{where}: {item.reason}", _WHOLE, _KNOWN)
        unit = "line" if item.container == "lines" else "record"
        place = f"{name}, {unit} {item.line}"
        if not isinstance(item.value, dict):
            raise fault(declared, "C0630", f"{place} is no object", 'write each record as an object: {"task": "a", …}')
        members = _pairs(item.value)
        if item.container == "object" and members and all(isinstance(value, dict) for _, value in members):
            for outer, inner in members:
                own = {} if key is None else {key: outer}
                yield Row(f"{name}, `{outer}`", _record(declared, inner, f"{name}, `{outer}`") | own, frozenset(own))
        else:
            yield Row(place, _record(declared, item.value, place))


def _pairs(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """The members of an object as the file has them, like keys included."""
    return value.pairs if isinstance(value, Repeated) else list(value.items())


def _record(declared: Declared, value: dict[str, Any], place: str) -> dict[str, Any]:
    """The columns of a record, each of which stands there once."""
    if isinstance(value, Repeated):
        names = [name for name, _ in value.pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise fault(declared, "C0630", f"{place}: `{twice}` stands there twice", "keep one of them")
    return value
