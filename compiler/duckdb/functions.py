"""How DuckDB computes each function and operator. Each takes lowered arguments, options and argument types.

Where SQL and polars differ unless told how, semantics.md decides, as in `polars_functions`; here, too, floats that the
language does not have are settled by whoever lowers. What SQL has no word for is
a macro of `PRELUDE`, written once; a statement names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from curatec.compiler import regex, text
from curatec.compiler.duckdb.spelling import (
    AND,
    COMPARE,
    CONCAT,
    IS,
    NOT,
    OR,
    PRODUCT,
    SUM,
    Sql,
    all_of,
    bare,
    binary,
    call,
    cast,
    number_of,
    text_literal,
    when,
)
from curatec.compiler.registry import Options
from curatec.compiler.types import Type

Args = Sequence[Sql]
Types = Sequence[Type]

_BLANK = text_literal(text.TRIM_CHARS)
_FLOAT_SHAPE = "[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?"
# name(parameters) → body. A body reads a parameter as often as it has to: DuckDB computes it once.
PRELUDE: dict[str, str] = {
    "settled(x)": "case when x = 0 then 0.0::DOUBLE when isfinite(x) then x end",
    "whole(x)": "case when x = trunc(x) and abs(x) < 9223372036854775808.0::DOUBLE then x::BIGINT end",
    "read_int(x)": "case when regexp_full_match(x, '[+-]?[0-9]{1,18}') then x::BIGINT end",
    "read_float(x)": f"case when regexp_full_match(x, '{_FLOAT_SHAPE}') then try_cast(x as DOUBLE) end",
    "json_number(x, kind)": "case when kind = 'number' then x::DOUBLE end",
    "json_int(x, kind)": (
        "case when kind = 'string' then read_int(x) when kind = 'number' and x::DOUBLE = floor(x::DOUBLE)"
        " and abs(x::DOUBLE) < 1e18::DOUBLE then x::DOUBLE::BIGINT end"
    ),
    "json_whole(x, kind)": (
        "case when kind = 'number' and x::DOUBLE = floor(x::DOUBLE) then try_cast(x::DOUBLE as BIGINT) end"
    ),
    "lower_case(x)": text.lower_sql("x"),
    "trim_blank(x)": f"trim(x, {_BLANK})",
    "estimated(x)": "(strlen(coalesce(x, '')) + 3) // 4",
    "from_point(x, n)": "substring(x, least(greatest(if(n < 0, n + length(x), n), 0), length(x)) + 1)",
    "points(x, n, m)": (
        "case when n is not null and m is not null then left(from_point(x, n),"
        " least(greatest(least(if(n < 0, n + length(x), 0), 0) + greatest(m, 0), 0), length(x))) end"
    ),
    "most(n, x)": "least(greatest(n, 0), length(x))",
    "midway(a, b)": "settled(case when a = b then a else (a + b) / 2 end)",
    "middle(l)": "midway(l[(len(l) + 1) // 2], l[len(l) // 2 + 1])",
    "micro(x)": "round_even(x::DOUBLE * 1000000, 0)::BIGINT",
}


# ---- true and false ----


def both(a: Args, _: Options, __: Types) -> Sql:
    return Sql(f"{a[0].inside(AND)} and {a[1].inside(AND)}", AND)


def either(a: Args, _: Options, __: Types) -> Sql:
    return Sql(f"{a[0].inside(OR)} or {a[1].inside(OR)}", OR)


def negate(a: Args, _: Options, __: Types) -> Sql:
    if a[0].binds == IS and a[0].text.endswith(" is null"):
        return Sql(f"{a[0].text.removesuffix(' is null')} is not null", IS)
    return Sql(f"not {a[0].inside(NOT + 1)}", NOT)


def comparison(symbol: str) -> Callable[[Args, Options, Types], Sql]:
    operator = {"==": "=", "!=": "<>"}.get(symbol, symbol)

    def lowered(a: Args, _: Options, __: Types) -> Sql:
        left, right = bare(a[0]), bare(a[1])
        return Sql(f"{left.inside(COMPARE + 1)} {operator} {right.inside(COMPARE + 1)}", COMPARE)

    return lowered


# ---- numbers ----


def _double(a: Sql, type_: Type) -> Sql:
    """A whole number as a float; a float as it is."""
    return a if type_ is Type.FLOAT else cast(bare(a), "DOUBLE")


def _arithmetic(operator: str, binds: int, a: Args, types: Types) -> Sql:
    if all(t is Type.INT for t in types):
        return binary(operator, binds, a[0], a[1])
    left, right = (_double(x, t) for x, t in zip(a, types, strict=True))
    return binary(operator, binds, left, right)


def add(a: Args, _: Options, types: Types) -> Sql:
    return _arithmetic("+", SUM, a, types)


def subtract(a: Args, _: Options, types: Types) -> Sql:
    return _arithmetic("-", SUM, a, types)


def multiply(a: Args, _: Options, types: Types) -> Sql:
    return _arithmetic("*", PRODUCT, a, types)


def divide(a: Args, _: Options, types: Types) -> Sql:
    above, below = (_double(x, t) for x, t in zip(a, types, strict=True))
    return binary("/", PRODUCT, above, call("nullif", below, "0"))


def power(a: Args, _: Options, types: Types) -> Sql:
    return call("power", *(_double(x, t) for x, t in zip(a, types, strict=True)))


def negative(a: Args, _: Options, types: Types) -> Sql:
    return subtract([Sql("0"), a[0]], {}, [types[0], types[0]])


def absolute(a: Args, _: Options, __: Types) -> Sql:
    return call("abs", a[0])


def ln(a: Args, _: Options, types: Types) -> Sql:
    return call("ln", _double(a[0], types[0]))


def sqrt(a: Args, _: Options, types: Types) -> Sql:
    return call("sqrt", _double(a[0], types[0]))


def round_even(a: Args, _: Options, types: Types) -> Sql:
    return call("round_even", _double(a[0], types[0]), "0")


def _extreme(function: str, a: Args, types: Types) -> Sql:
    if not all(t is Type.INT for t in types):
        a = [_double(x, t) for x, t in zip(a, types, strict=True)]
    known = [Sql(f"{x.inside(COMPARE + 1)} is not null", IS) for x in a if number_of(x) is None]
    picked = call(function, *reversed(a))  # of equal ones, 0.0 and -0.0, the last
    return when(all_of(known), picked) if known else picked


def least(a: Args, _: Options, types: Types) -> Sql:
    return _extreme("least", a, types)


def greatest(a: Args, _: Options, types: Types) -> Sql:
    return _extreme("greatest", a, types)


# ---- text ----


def lower(a: Args, _: Options, __: Types) -> Sql:
    return call("lower_case", a[0])


def trim(a: Args, _: Options, __: Types) -> Sql:
    return call("trim_blank", a[0])


def length(a: Args, _: Options, types: Types) -> Sql:
    return call("len" if types[0] is Type.TEXTS else "length", a[0])


def _small(a: Sql) -> bool:
    """A literal that DuckDB takes as a length or a place."""
    number = number_of(a)
    return number is not None and 0 <= number < 2**31


def slice_text(a: Args, _: Options, __: Types) -> Sql:
    start = number_of(a[1])
    if start is not None and _small(a[1]) and all(_small(x) for x in a[2:]):
        return call("substring", a[0], str(start + 1), *map(bare, a[2:]))
    if len(a) > 2:
        return call("points", a[0], a[1], a[2])
    return when(f"{a[1].inside(COMPARE + 1)} is not null", call("from_point", a[0], a[1]))


def truncate(a: Args, options: Options, __: Types) -> Sql:
    x, n = a
    keep, marker = options.get("keep", "start"), options.get("marker", "")
    size = bare(n) if _small(n) else call("most", n, x)
    if keep == "ends":
        number = number_of(n) if _small(n) else None
        half = binary("//", PRODUCT, size, Sql("2")) if number is None else Sql(str(number // 2))
        rest = binary("-", SUM, size, half) if number is None else Sql(str(number - number // 2))
        parts = [call("left", x, rest), call("right", x, half)]
    else:
        parts = [call({"start": "left", "end": "right"}[keep], x, size)]
    if marker:
        parts.insert(0 if keep == "end" else 1, Sql(text_literal(marker)))
    short = Sql(" || ".join(map(str, parts)), CONCAT) if len(parts) > 1 else parts[0]
    cut = short if len(parts) == 1 else when(f"{call('length', x)} <= {size}", x, short)
    return cut if _small(n) else when(f"{n.inside(COMPARE + 1)} is not null", cut)


def concat(a: Args, _: Options, __: Types) -> Sql:
    return call("concat", *a)


def contains(a: Args, _: Options, __: Types) -> Sql:
    return call("contains", *a)


def starts_with(a: Args, _: Options, __: Types) -> Sql:
    return call("starts_with", *a)


def ends_with(a: Args, _: Options, __: Types) -> Sql:
    return call("ends_with", *a)


def matches(a: Args, options: Options, __: Types) -> Sql:
    return Sql(regex.contains_sql(a[0].text, regex.checked(options["pattern"])))


def extract(a: Args, options: Options, __: Types) -> Sql:
    return Sql(regex.extract_sql(a[0].text, regex.checked(options["pattern"]), options.get("group")))


def replace(a: Args, options: Options, __: Types) -> Sql:
    return Sql(regex.replace_sql(a[0].text, regex.checked(options["pattern"]), options["with"]))


def has(a: Args, _: Options, __: Types) -> Sql:
    found = call("list_contains", *a)
    if a[1].text.startswith("'"):
        return found
    return when(f"{a[1].inside(COMPARE + 1)} is not null", found)  # an empty list has no null either


def join(a: Args, options: Options, __: Types) -> Sql:
    return call("array_to_string", a[0], text_literal(options["between"]))


# ---- choices ----


def _alike(a: Args, types: Types) -> list[Sql]:
    """int beside float reads as float."""
    mixed = {Type.INT, Type.FLOAT} <= set(types)
    return [_double(x, t) if mixed and t is Type.INT else x for x, t in zip(a, types, strict=True)]


def coalesce(a: Args, _: Options, types: Types) -> Sql:
    return call("coalesce", *_alike(a, types))


def conditional(a: Args, _: Options, types: Types) -> Sql:
    return when(a[0], *_alike(a[1:], types[1:]))


def is_null(a: Args, _: Options, __: Types) -> Sql:
    return Sql(f"{a[0].inside(COMPARE + 1)} is null", IS)


def is_empty(a: Args, _: Options, types: Types) -> Sql:
    if types[0] is Type.TEXTS:
        return Sql(f"coalesce(len({a[0]}), 0) = 0", COMPARE)
    return Sql(f"coalesce({a[0]}, '') = ''", COMPARE)


def one_of(a: Args, _: Options, types: Types) -> Sql:
    value, *choices = a
    if types[0].is_number and Type.FLOAT in types:
        value, *choices = (_double(x, t) for x, t in zip(a, types, strict=True))
    return Sql(f"{value.inside(COMPARE + 1)} in ({', '.join(str(bare(c)) for c in choices)})", COMPARE)


def as_int(a: Args, _: Options, types: Types) -> Sql:
    if types[0] is Type.INT:
        return a[0]
    return call("whole" if types[0] is Type.FLOAT else "read_int", a[0])


def as_float(a: Args, _: Options, types: Types) -> Sql:
    return _double(a[0], types[0]) if types[0].is_number else call("read_float", a[0])


def as_text(a: Args, _: Options, __: Types) -> Sql:
    return cast(a[0], "VARCHAR")
