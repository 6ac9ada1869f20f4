"""Values of every type, the extreme ones among them, and the arguments that each function may take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl
from hypothesis import strategies as st

from curatec.compiler.core import Apply, Column, Const, Core
from curatec.compiler.frames import DTYPES
from curatec.compiler.registry import Entry, Parameter
from curatec.compiler.types import Level, Type

WHOLE = (0, 1, -1, 2, 3, 10, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 10**18)
FLOATS = (
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 0.1, 0.3, 1 / 3, 1e-7, 5e-324, -5e-324, 2.2250738585072014e-308, 1e15 + 0.5,
    4503599627370497.5, 0.49999999999999994, float(2**53), float(2**63), -float(2**63), 1e17, 1e300, -1e300,
    sys.float_info.max, -sys.float_info.max,
)  # fmt: skip
TEXTS = (
    "", "a", "b", "ab", "A", "é", "e\u0301", "\u0301", "東京", "東booked", "booked", "😀", "👩\u200d💻", "ΣΑΣ", "ς",
    "İ", "ı", "ß", "ﬁ", "\ufffd", "\U0010ffff", "\ue000", "\u00a0", " \t\r\n\f", "\v", "\x1f", "\x7f", "\r", "a\rb",
    "a\nb\n", "\x85", "\u2028", "12", "+12", "-12", "+-12", "1.5", "+1.5", "1e400", "1e-400", "00", "9" * 18, "1" * 19,
    "0x10", "1_0", "١٢", "12\n", " 12", "nan", "inf", "Infinity", "true", "null", "'", '"', "\\", "%", "_", "$1", "\\1",
    "${0}", "x" * 300, "é" * 100, "ab" * 5_000, "Ａ", "\U00010400", "\u1c89", "\ua7cb", "K", "\u212a", "ſ", "s",
)  # fmt: skip
PATTERNS = (
    r"[0-9]+", r"^o", r"(a|b)$", r"\bbooked\b", r"\bb", r"(?i)k", r"(?i)[a-z]+", r"(?i)s", r"[^a-z ]", r"x*",
    r"(a)|(b)", r"\S\s", r"\s+", r".", r"(?s).", r"(?m)^b", r"(?m)a$", r"a{2,3}?", r"\w+", r"\W", r"[\r\n]", r"é",
    r"[東-龍]", r"(é|e).?", r"$", r"^", r"\\", r"[k-s]",
)  # fmt: skip
REPLACEMENTS = ("", "-", "<${0}>", "$$", "\\1", "\\", "é")


def alphabet() -> st.SearchStrategy[str]:
    """Every code point that a text may hold, and small ones more often."""
    return st.one_of(st.characters(exclude_categories=("Cs",)), st.sampled_from("abAB01 \t\n\r.+-eé\0"))


VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.BOOL: st.booleans(),
    Type.INT: st.one_of(st.sampled_from(WHOLE), st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20)),
    Type.FLOAT: st.one_of(st.sampled_from(FLOATS), st.floats(allow_nan=False, allow_infinity=False)),
    Type.TEXT: st.one_of(st.sampled_from(TEXTS), st.text(alphabet(), max_size=12)),
    Type.TEXTS: st.lists(st.one_of(st.sampled_from(TEXTS[:30]), st.text(alphabet(), max_size=4)), max_size=4),
    Type.TIME: st.datetimes(datetime(1677, 9, 22), datetime(2262, 4, 10)).map(lambda t: t.replace(tzinfo=UTC)),
}
FAMILIES = ((Type.BOOL,), (Type.INT, Type.FLOAT), (Type.TEXT,), (Type.TIME,), (Type.TEXTS,))
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "pattern": st.sampled_from(PATTERNS),
    "with": st.sampled_from(REPLACEMENTS),
    "between": st.sampled_from(("", "+", ", ", "é", "\n", "\\n'")),
    "keep": st.sampled_from(("start", "end", "ends")),
    "marker": st.sampled_from(("", "…", "'", "\n[cut]\n")),
    "group": st.just(0),
}
# Arguments that are lengths or places: mostly such as cut something off.
SMALL = st.one_of(st.integers(-7, 14), VALUES[Type.INT])


def column(name: str, type_: Type, drawn: Sequence[Any]) -> pl.Series:
    return pl.Series(name, list(drawn), dtype=DTYPES[type_])


def constant(value: Any, type_: Type) -> Const:
    if isinstance(value, datetime):
        value = value.isoformat()
    return Const(tuple(value) if isinstance(value, list) else value, type_)


@st.composite
def applied(draw: st.DrawFn, entry: Entry) -> tuple[Core, pl.DataFrame]:
    """The function over columns and constants, and the rows that hold its columns."""
    height = draw(st.integers(1, 6))
    cores: list[Core] = []
    columns: list[pl.Series] = []
    for parameter, type_ in typed(draw, entry):
        wanted = SMALL if type_ is Type.INT and parameter.name in ("n", "start", "count") else VALUES[type_]
        if (parameter.repeated and entry.name == "one_of") or draw(st.integers(0, 3)) == 0:
            cores.append(constant(draw(wanted), type_))
        else:
            name = f"x{len(columns)}"
            drawn = draw(st.lists(st.one_of(wanted, wanted, wanted, st.none()), min_size=height, max_size=height))
            columns.append(column(name, type_, drawn))
            cores.append(Column(Level.TRAJECTORY, name, type_))
    options = tuple(
        (p.name, draw(OPTIONS[p.name]))
        for p in entry.parameters
        if p.literal and (not p.optional or draw(st.booleans()))
    )
    runs = pl.DataFrame([pl.int_range(height, dtype=pl.UInt32, eager=True).alias("row"), *columns])
    return Apply(entry.name, tuple(cores), entry.result([core.type for core in cores]), options), runs


def typed(draw: st.DrawFn, entry: Entry) -> list[tuple[Parameter, Type]]:
    """Each argument with a type: those that may be several things are all of one kind."""
    open_ = [p for p in entry.parameters if not p.literal]
    kinds = [f for f in FAMILIES if all(set(f) & set(p.types) for p in open_ if len(kinds_of(p)) > 1)]
    kind = draw(st.sampled_from(kinds)) if kinds else ()
    found: list[tuple[Parameter, Type]] = []
    for parameter in open_:
        types = [t for t in parameter.types if t in kind] if len(kinds_of(parameter)) > 1 else list(parameter.types)
        times = draw(st.integers(0 if parameter.optional else 1, 3 if parameter.repeated else 1))
        found += [(parameter, draw(st.sampled_from(types))) for _ in range(times)]
    return found


def kinds_of(parameter: Parameter) -> list[tuple[Type, ...]]:
    return [family for family in FAMILIES if set(family) & set(parameter.types)]
