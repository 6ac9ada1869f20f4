"""How polars computes each function and operator. Each takes lowered arguments, options and argument types.

Where polars and SQL differ unless told how, semantics.md decides: x/0 is null, integers that do not fit in 64 bits are
an error, division goes by a true column. Floats that the language does not have are settled by whoever lowers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce

import polars as pl

from curatec.compiler import regex, text
from curatec.compiler.registry import Options
from curatec.compiler.types import Type

Args = Sequence[pl.Expr]
Types = Sequence[Type]


# ---- true and false ----


def both(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0] & a[1]


def either(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0] | a[1]


def negate(a: Args, _: Options, __: Types) -> pl.Expr:
    return ~a[0]


def comparison(symbol: str) -> Callable[[Args, Options, Types], pl.Expr]:
    compare = {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }[symbol]

    def lowered(a: Args, _: Options, __: Types) -> pl.Expr:
        return compare(a[0], a[1])  # type: ignore[no-any-return]

    return lowered


# ---- numbers ----


def settled(values: pl.Series) -> pl.Series:
    """Floats as the language has them: infinity and no number are null, -0.0 is 0.0 (semantics 14)."""
    return pl.select(pl.when(values == 0).then(0.0).when(values.is_finite()).then(values)).to_series()


def _arithmetic(compute: Callable[[pl.Expr, pl.Expr], pl.Expr], a: Args, types: Types) -> pl.Expr:
    if all(t is Type.INT for t in types):
        # 128 bits hold any sum or product of two 64-bit integers; the strict cast raises where 64 do not.
        return compute(a[0].cast(pl.Int128), a[1].cast(pl.Int128)).cast(pl.Int64)
    return compute(a[0].cast(pl.Float64), a[1].cast(pl.Float64))


def add(a: Args, _: Options, types: Types) -> pl.Expr:
    return _arithmetic(operator.add, a, types)


def subtract(a: Args, _: Options, types: Types) -> pl.Expr:
    return _arithmetic(operator.sub, a, types)


def multiply(a: Args, _: Options, types: Types) -> pl.Expr:
    return _arithmetic(operator.mul, a, types)


def _as_column(e: pl.Expr) -> pl.Expr:
    """A divisor or exponent becomes a column of its own: by a literal, or a column that it knows to be constant (also
    one that comes out of `when`), polars divides through the reciprocal and takes powers as products, in the last bit
    wrong."""
    return e + pl.int_range(pl.len()) * 0.0


def divide(a: Args, _: Options, __: Types) -> pl.Expr:
    divisor = a[1].cast(pl.Float64)
    return pl.when(divisor != 0).then(a[0].cast(pl.Float64) / _as_column(divisor))


def power(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].cast(pl.Float64).pow(_as_column(a[1].cast(pl.Float64)))


def negative(a: Args, _: Options, types: Types) -> pl.Expr:
    return subtract([pl.lit(0), a[0]], {}, [types[0], types[0]])


def absolute(a: Args, _: Options, types: Types) -> pl.Expr:
    return a[0].cast(pl.Int128).abs().cast(pl.Int64) if types[0] is Type.INT else a[0].abs()


def ln(a: Args, _: Options, __: Types) -> pl.Expr:
    x = a[0].cast(pl.Float64)
    return pl.when(x > 0).then(x.log())


def sqrt(a: Args, _: Options, __: Types) -> pl.Expr:
    x = a[0].cast(pl.Float64)
    return pl.when(x >= 0).then(x.sqrt())


def round_even(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].cast(pl.Float64).round(mode="half_to_even")


def _extreme(pick: Callable[[pl.Expr, pl.Expr], pl.Expr], a: Args, types: Types) -> pl.Expr:
    if not all(t is Type.INT for t in types):
        a = [x.cast(pl.Float64) for x in a]
    return reduce(lambda x, y: pl.when(x.is_not_null() & y.is_not_null()).then(pick(x, y)), a)


def least(a: Args, _: Options, types: Types) -> pl.Expr:
    return _extreme(pl.min_horizontal, a, types)


def greatest(a: Args, _: Options, types: Types) -> pl.Expr:
    return _extreme(pl.max_horizontal, a, types)


# ---- text ----


def lower(a: Args, _: Options, __: Types) -> pl.Expr:
    return text.lower(a[0])


def trim(a: Args, _: Options, __: Types) -> pl.Expr:
    return text.trim(a[0])


def length(a: Args, _: Options, types: Types) -> pl.Expr:
    return a[0].list.len().cast(pl.Int64) if types[0] is Type.TEXTS else text.length(a[0])


def slice_text(a: Args, _: Options, __: Types) -> pl.Expr:
    return text.slice_text(a[0], a[1], a[2] if len(a) > 2 else None)


def truncate(a: Args, options: Options, __: Types) -> pl.Expr:
    return text.truncate(a[0], a[1], options.get("keep", "start"), options.get("marker", ""))


def concat(a: Args, _: Options, __: Types) -> pl.Expr:
    return text.concat(*(x.cast(pl.String) for x in a))


def contains(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].str.contains(a[1], literal=True)


def starts_with(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].str.starts_with(a[1])


def ends_with(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].str.ends_with(a[1])


def _regex(options: Options) -> regex.Regex:
    parsed = regex.parse(options["pattern"])
    assert isinstance(parsed, regex.Regex), parsed  # the checker refused it otherwise
    return parsed


def matches(a: Args, options: Options, __: Types) -> pl.Expr:
    return regex.contains(a[0], _regex(options))


def extract(a: Args, options: Options, __: Types) -> pl.Expr:
    return regex.extract(a[0], _regex(options), options.get("group"))


def replace(a: Args, options: Options, __: Types) -> pl.Expr:
    return regex.replace(a[0], _regex(options), options["with"])


def has(a: Args, _: Options, __: Types) -> pl.Expr:
    return pl.when(a[1].is_not_null()).then(a[0].list.contains(a[1]))


def join(a: Args, options: Options, __: Types) -> pl.Expr:
    return a[0].list.join(options["between"])


# ---- choices ----


def coalesce(a: Args, _: Options, types: Types) -> pl.Expr:
    return pl.coalesce(_alike(a, types))


def conditional(a: Args, _: Options, types: Types) -> pl.Expr:
    then, otherwise = _alike(a[1:], types[1:])
    return pl.when(a[0]).then(then).otherwise(otherwise)


def _alike(a: Args, types: Types) -> list[pl.Expr]:
    """int beside float reads as float."""
    mixed = {Type.INT, Type.FLOAT} <= set(types)
    return [x.cast(pl.Float64) if mixed and t is Type.INT else x for x, t in zip(a, types, strict=True)]


def is_null(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].is_null()


def is_empty(a: Args, _: Options, types: Types) -> pl.Expr:
    size = a[0].list.len() if types[0] is Type.TEXTS else a[0].str.len_bytes()
    return a[0].is_null() | (size == 0).fill_null(False)


def one_of(a: Args, _: Options, types: Types) -> pl.Expr:
    value, *choices = a
    if types[0].is_number and Type.FLOAT in types:
        value, choices = value.cast(pl.Float64), [c.cast(pl.Float64) for c in choices]
    return reduce(operator.or_, [value == choice for choice in choices])


def as_int(a: Args, _: Options, types: Types) -> pl.Expr:
    if types[0] is Type.INT:
        return a[0]
    if types[0] is Type.FLOAT:
        return pl.when((a[0] == a[0].round()) & (a[0].abs() < 2**63)).then(a[0]).cast(pl.Int64, strict=False)
    digits = a[0].str.extract(r"^\+?(-?[0-9]{1,18})$", 1)
    return pl.when(~a[0].str.contains(r"^\+-")).then(digits).cast(pl.Int64, strict=False)


def as_float(a: Args, _: Options, types: Types) -> pl.Expr:
    if types[0].is_number:
        return a[0].cast(pl.Float64)
    shape = a[0].str.contains(r"^[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$")
    return pl.when(shape).then(a[0].str.strip_prefix("+")).cast(pl.Float64, strict=False)


def as_text(a: Args, _: Options, __: Types) -> pl.Expr:
    return a[0].cast(pl.String)
