"""The registry's functions and operators."""

from __future__ import annotations

from collections.abc import Sequence

from curatec.compiler import polars_functions as p
from curatec.compiler.core import Apply, Core, walk
from curatec.compiler.duckdb import functions as d
from curatec.compiler.registry import Entry, Parameter, WindowEntry, numeric
from curatec.compiler.types import NUMBERS, Type

T, TS, B, I, F = Type.TEXT, Type.TEXTS, Type.BOOL, Type.INT, Type.FLOAT  # noqa: E741
_ANY = (B, I, F, T, Type.TIME)


def _one(name: str, *types: Type) -> Parameter:
    return Parameter(name, types)


def _same(types: Sequence[Type]) -> Type:
    if Type.UNKNOWN in types:
        return Type.UNKNOWN
    known = [t for t in types if t is not Type.NULL]
    if not known:
        return Type.NULL
    return numeric(known) if all(t.is_number for t in known) else known[0]


def _branches(types: Sequence[Type]) -> Type:
    return _same(types[1:])


_BOOLEAN = (
    Entry("and", (_one("a", B), _one("b", B)), B, "three-valued", "Both hold.", "true and 1 / 0 > 1", None, p.both, d.both, True),
    Entry("or", (_one("a", B), _one("b", B)), B, "three-valued", "At least one holds.", "true or 1 / 0 > 1", True, p.either, d.either, True),
    Entry("not", (_one("a", B),), B, "three-valued", "It does not hold.", "not false", True, p.negate, d.negate, True),
)
_COMPARISON = tuple(
    Entry(op, (_one("a", *_ANY), _one("b", *_ANY)), B, "null in, null out", doc, example, gives, p.comparison(op), d.comparison(op), True)
    for op, doc, example, gives in (
        ("==", "Equal. Numbers compare with numbers, texts with texts.", '"a" == "a"', True),
        ("!=", "Not equal; null when either side is.", "1 != 2", True),
        ("<", "Less; texts by code point.", "1 < 1.5", True),
        ("<=", "Less or equal.", '"a" <= "B"', False),
        (">", "Greater.", "2 > 3", False),
        (">=", "Greater or equal.", "3 >= 3", True),
    )
)
_NUMBER = (
    Entry("+", (_one("a", *NUMBERS), _one("b", *NUMBERS)), numeric, "null in, null out", "Sum. Past 64 bits is an error.", "1 + 2", 3, p.add, d.add, True, unsettled=True, hands_on=2),
    Entry("-", (_one("a", *NUMBERS), _one("b", *NUMBERS)), numeric, "null in, null out", "Difference.", "1 - 2.5", -1.5, p.subtract, d.subtract, True, unsettled=True, hands_on=2),
    Entry("*", (_one("a", *NUMBERS), _one("b", *NUMBERS)), numeric, "null in, null out", "Product.", "3 * 4", 12, p.multiply, d.multiply, True, unsettled=True, hands_on=2),
    Entry("/", (_one("a", *NUMBERS), _one("b", *NUMBERS)), F, "null in, null out", "Quotient, always a float; by zero it is null.", "1 / 0", None, p.divide, d.divide, True, unsettled=True, hands_on=1, repeats=2),
    Entry("**", (_one("a", *NUMBERS), _one("b", *NUMBERS)), F, "null in, null out", "Power, always a float; null where it is not a finite number.", "2 ** 3", 8.0, p.power, d.power, True, unsettled=True),
    Entry("negative", (_one("a", *NUMBERS),), numeric, "null in, null out", "Minus.", "-(2)", -2, p.negative, d.negative, True, unsettled=True, hands_on=1),
    Entry("abs", (_one("x", *NUMBERS),), numeric, "null in, null out", "Absolute value.", "abs(-2)", 2, p.absolute, d.absolute, hands_on=1),
    Entry("ln", (_one("x", *NUMBERS),), F, "null in, null out", "Natural logarithm; null unless x > 0.", "ln(1)", 0.0, p.ln, d.ln, unsettled=True),
    Entry("sqrt", (_one("x", *NUMBERS),), F, "null in, null out", "Square root; null below 0.", "sqrt(9)", 3.0, p.sqrt, d.sqrt, unsettled=True),
    Entry("round", (_one("x", *NUMBERS),), F, "null in, null out", "Nearest whole number, halves to the even one; a float.", "round(2.5)", 2.0, p.round_even, d.round_even, unsettled=True, hands_on=1),
    Entry("least", (_one("a", *NUMBERS), Parameter("b", NUMBERS, repeated=True)), numeric, "null in, null out", "The smallest.", "least(3, 2)", 2, p.least, d.least, repeats=2),
    Entry("greatest", (_one("a", *NUMBERS), Parameter("b", NUMBERS, repeated=True)), numeric, "null in, null out", "The largest.", "greatest(3, 2)", 3, p.greatest, d.greatest, repeats=2),
)
_TEXT = (
    Entry("lower", (_one("text", T),), T, "null in, null out", "Lower case, defined once for all engines.", 'lower("ÄB")', "äb", p.lower, d.lower),
    Entry("trim", (_one("text", T),), T, "null in, null out", "Without space, tab, CR, LF and FF at both ends.", 'trim("  a\\n")', "a", p.trim, d.trim),
    Entry("length", (_one("value", T, TS),), I, "null in, null out", "Code points of a text; items of a list.", 'length("naïve")', 5, p.length, d.length),
    Entry("slice", (_one("text", T), _one("start", I), Parameter("count", (I,), optional=True)), T, "null in, null out", "`count` code points from `start` (from 0), to the end without `count`.", 'slice("abcd", 1, 2)', "bc", p.slice_text, d.slice_text, repeats=8),
    Entry("truncate", (_one("text", T), _one("n", I), Parameter("keep", (T,), literal=True, optional=True, words=("start", "end", "ends")), Parameter("marker", (T,), literal=True, optional=True)), T, "null in, null out", "At most `n` code points of the text; `keep: ends` keeps head and tail; `marker` stands where something is missing.", 'truncate("abcdef", 4, keep: ends)', "abef", p.truncate, d.truncate, repeats=4),
    Entry("concat", (_one("a", T), Parameter("b", (T,), repeated=True, optional=True)), T, "nulls ignored", "One text after the other; null counts as nothing.", 'concat("a", null, "b")', "ab", p.concat, d.concat),
    Entry("contains", (_one("text", T), _one("part", T)), B, "null in, null out", "Whether the text has the part in it, letter for letter.", 'contains("abc", "b")', True, p.contains, d.contains),
    Entry("starts_with", (_one("text", T), _one("part", T)), B, "null in, null out", "Whether the text begins with the part.", 'starts_with("abc", "ab")', True, p.starts_with, d.starts_with),
    Entry("ends_with", (_one("text", T), _one("part", T)), B, "null in, null out", "Whether the text ends with the part.", 'ends_with("abc", "bc")', True, p.ends_with, d.ends_with),
    Entry("extract", (_one("text", T), Parameter("pattern", (T,), literal=True, pattern=True), Parameter("group", (I,), literal=True, optional=True)), T, "null in, null out", "What a group of the pattern matched first; the first group, or all without one. No match is null.", 'extract("order W12", r"W([0-9]+)")', "12", p.extract, d.extract, repeats=2),
    Entry("replace", (_one("text", T), Parameter("pattern", (T,), literal=True, pattern=True), Parameter("with", (T,), literal=True)), T, "null in, null out", "Every match replaced; `${1}` is the first group.", 'replace("a1b2", r"[0-9]", "")', "ab", p.replace, d.replace),
    Entry("matches", (_one("text", T), Parameter("pattern", (T,), literal=True, pattern=True)), B, "null in, null out", "`text ~ pattern`: whether the pattern occurs in the text.", '"order W12" ~ r"W[0-9]+"', True, p.matches, d.matches, True),
    Entry("has", (_one("list", TS), _one("item", T)), B, "null in, null out", "Whether a list has the item.", 'has(["a", "b"], "b")', True, p.has, d.has, repeats=2),
    Entry("join", (_one("list", TS), Parameter("between", (T,), literal=True)), T, "null in, null out", "The items of a list with a text between them.", 'join(["a", "b"], "+")', "a+b", p.join, d.join),
)
_CHOICE = (
    Entry("coalesce", (_one("a", *_ANY), Parameter("b", _ANY, repeated=True)), _same, "nulls ignored", "The first that is not null.", "coalesce(null, 2)", 2, p.coalesce, d.coalesce),
    Entry("if", (_one("condition", B), _one("then", *_ANY), _one("else", *_ANY)), _branches, "three-valued", "`if c then a else b`; null counts as false.", "if 1 / 0 > 1 then 1 else 2", 2, p.conditional, d.conditional, True),
    Entry("is_null", (_one("value", *_ANY, TS),), B, "never null", "Whether there is no value.", "null is null", True, p.is_null, d.is_null, True),
    Entry("is_empty", (_one("value", T, TS),), B, "never null", 'Whether it is null, `""` or a list without items.', '"" is empty', True, p.is_empty, d.is_empty, True),
    Entry("one_of", (_one("value", I, F, T, B), Parameter("choices", (I, F, T, B), repeated=True)), B, "null in, null out", "`value in {…}`.", '"a" in {"a", "b"}', True, p.one_of, d.one_of, True),
    Entry("as_int", (_one("value", T, I, F),), I, "null in, null out", "`[+-]?[0-9]{1,18}`, or a whole number; else null.", '"12" as int', 12, p.as_int, d.as_int, True, repeats=2),
    Entry("as_float", (_one("value", T, I, F),), F, "null in, null out", "A finite decimal number; else null.", '"1.5" as float', 1.5, p.as_float, d.as_float, True, unsettled=True, repeats=2),
    Entry("as_text", (_one("value", T, I, B),), T, "null in, null out", "A whole number or flag as text.", "12 as text", "12", p.as_text, d.as_text, True),
)

FUNCTIONS: dict[str, Entry] = {entry.name: entry for entry in (*_BOOLEAN, *_COMPARISON, *_NUMBER, *_TEXT, *_CHOICE)}


def unsettled(core: Core) -> bool:
    """Whether what the lowerings of an expression give has to be settled: infinity and no number are null, -0.0 is 0.0."""
    if not isinstance(core, Apply) or core.type is not Type.FLOAT or core.function not in FUNCTIONS:
        return False
    entry = FUNCTIONS[core.function]
    return entry.unsettled or any(map(unsettled, core.args[: entry.hands_on]))


_SETTLED = 3  # how often what settles a float holds it
_ENOUGH = 100
_MUCH = 1_000_000


def repetitive(core: Core) -> bool:
    """Whether an engine's expression would hold the parts of this one very many times: it is to be a column first."""
    return isinstance(core, Apply) and _copies(core) > max(_ENOUGH, 8 * sum(1 for _ in walk(core)))


def _copies(core: Core) -> int:
    """How many nodes the engine's expression has, about."""
    nodes = _nodes(core)
    return nodes * _SETTLED if unsettled(core) else nodes


def _nodes(core: Core) -> int:
    """The same before it is settled."""
    if not isinstance(core, Apply) or core.function not in FUNCTIONS:
        return 1
    entry = FUNCTIONS[core.function]
    open_ = entry.hands_on if core.type is Type.FLOAT else 0
    inside = sum((_nodes if i < open_ else _copies)(a) for i, a in enumerate(core.args))
    return min(1 + inside * entry.repeats, _MUCH)


# What can be written as `name(…)`.
CALLABLE = {name: entry for name, entry in FUNCTIONS.items() if not entry.operator}

WINDOWS: dict[str, WindowEntry] = {
    entry.name: entry
    for entry in (
        WindowEntry("count", None, I, "Rows of the group.", "count() over (task)"),
        WindowEntry("sum", NUMBERS, None, "Sum; of nothing 0.", "sum(cost) over (model)"),
        WindowEntry("mean", NUMBERS, F, "Mean; of nothing null.", "mean(reward) over (task)"),
        WindowEntry("std", NUMBERS, F, "Standard deviation of the sample; null below two values.", "std(reward) over (task)"),
        WindowEntry("min", NUMBERS, None, "Smallest.", "min(turn_count) over (task)"),
        WindowEntry("max", NUMBERS, None, "Largest.", "max(reward) over (task)"),
        WindowEntry("median", NUMBERS, F, "Median, linear between the middle two.", "median(turn_count) over (task)"),
        WindowEntry("share", (B,), F, "Rows of the group where it holds, among all of them.", "share(success) over (task)"),
        WindowEntry("rank", (I, F, T), I, "1 for the first; equal values share the smaller rank. `desc` turns it round.", "rank(reward desc) over (task)"),
    )
}
