"""The checked regex subset: one meaning, three spellings.

`parse` reads a pattern into a tree of plain sets of code points, or says by name what is outside the subset; the tree
is then spelled for Rust's regex (polars), for RE2 (DuckDB) and for Python.

The meaning: `\\w` is `[0-9A-Za-z_]`, `\\d` is `[0-9]`, `\\s` is `[ \\t\\r\\n\\f]` (what `trim` strips), `\\b` looks at
ASCII word characters, `(?i)` joins ASCII letters only, `.` is anything but `\\n`, `$` is the very end of the text.
Flags are `(?i)`, `(?s)` (`.` takes `\\n` too) and `(?m)` (`^` and `$` at each line, where only `\\n` parts lines),
together at the very start. The first alternative that matches wins, lazy quantifiers are lazy. Code points are
matched, never bytes or grapheme clusters. A group that took no part in a match extracts ""; no match extracts null.

Rust and RE2 run in time linear in the text. Python backtracks and can hang: `to_python` is for tests only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from curatec.compiler.regex_parser import parse
from curatec.compiler.regex_tree import (
    LAST,
    Anchor,
    Chars,
    Choice,
    Group,
    Node,
    Ranges,
    Regex,
    RegexProblem,
    Repeat,
    Sequence,
    complement,
)

__all__ = [
    "Regex",
    "RegexProblem",
    "check_replacement",
    "checked",
    "contains",
    "contains_sql",
    "extract",
    "extract_sql",
    "parse",
    "replace",
    "replace_sql",
    "to_python",
    "to_re2",
    "to_re2_template",
    "to_rust",
    "to_rust_template",
]


def checked(pattern: str) -> Regex:
    """The pattern of a spec that has already passed `parse`. Raises ValueError, naming the first problem."""
    regex = parse(pattern)
    if isinstance(regex, Regex):
        return regex
    raise ValueError(regex[0].message)


# --- spelling -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Dialect:
    code: Callable[[int], str]  # the escape of a code point
    end: str
    word: str


def _braced(code: int) -> str:
    return f"\\x{{{code:x}}}"


def _fixed(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\U{code:08x}"


_RUST: Final = _Dialect(_braced, r"\z", r"(?-u:\b)")
_RE2: Final = _Dialect(_braced, r"\z", r"\b")
_PYTHON: Final = _Dialect(_fixed, r"\Z", r"\b")
# RE2 reads [Kk] as a `k` of any case and, joining it with its neighbours in an alternation, lets it match U+212A; [Ss]
# and U+017F are the other such pair. Written as two alternatives they stay what they are.
_RE2_FOLDS: Final = tuple(tuple((ord(char), ord(char)) for char in pair) for pair in ("Kk", "Ss"))
_META: Final = frozenset(r"\.+*?()|[]{}^$#&-~")


def _char(code: int, dialect: _Dialect) -> str:
    char = chr(code)
    if char in _META:
        return "\\" + char
    return char if char.isprintable() else dialect.code(code)


def _class(ranges: Ranges, dialect: _Dialect) -> str:
    # A set with both extremes was written with a negation, and is short and readable that way.
    negated = len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == LAST
    spans = []
    for low, high in complement(ranges) if negated else ranges:
        dash = "-" if high > low + 1 else ""
        spans.append(_char(low, dialect) + (dash + _char(high, dialect) if high > low else ""))
    return f"[{'^' if negated else ''}{''.join(spans)}]"


def _spell(node: Node, dialect: _Dialect) -> str:
    if isinstance(node, Chars):
        if dialect is _RE2 and node.ranges in _RE2_FOLDS:
            return f"(?:{chr(node.ranges[0][0])}|{chr(node.ranges[1][0])})"
        (low, high), *rest = node.ranges
        return _char(low, dialect) if low == high and not rest else _class(node.ranges, dialect)
    if isinstance(node, Anchor):
        places = {"start": r"\A", "end": dialect.end, "word": dialect.word}
        return places.get(node.place) or {"line_start": "(?m:^)", "line_end": "(?m:$)"}[node.place]
    if isinstance(node, Sequence):
        return "".join(
            _closed(item, dialect) if isinstance(item, Choice) else _spell(item, dialect) for item in node.items
        )
    if isinstance(node, Choice):
        return "|".join(_spell(branch, dialect) for branch in node.branches)
    if isinstance(node, Group):
        return f"({_spell(node.body, dialect)})"
    body = _spell(node.body, dialect) if isinstance(node.body, Chars | Group) else _closed(node.body, dialect)
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    count = f"{{{node.low}}}" if node.low == node.high else f"{{{node.low},{'' if node.high is None else node.high}}}"
    return body + signs.get((node.low, node.high), count) + "?" * node.lazy


def _closed(node: Node, dialect: _Dialect) -> str:
    return f"(?:{_spell(node, dialect)})"


def to_rust(regex: Regex) -> str:
    """The pattern for polars. It never matches part of a character: only its `\\b` leaves Unicode mode."""
    return _spell(regex.tree, _RUST)


def to_re2(regex: Regex) -> str:
    """The pattern for DuckDB."""
    return _spell(regex.tree, _RE2)


def to_python(regex: Regex) -> re.Pattern[str]:
    """The pattern for Python's `re`. It can take exponential time: for tests, never for a corpus."""
    return re.compile(_spell(regex.tree, _PYTHON), re.ASCII)


# --- replacement templates --------------------------------------------------------------------------------------------

_PART = re.compile(r"\$\$|\$\{([0-9]+)\}|\$(?:\w+|\{[^}]*\}?)?|[^$]+")
MAX_GROUP: Final = 9


def check_replacement(template: str, group_count: int) -> tuple[RegexProblem, ...]:
    """What is wrong with a replacement: `${1}` .. `${9}` are groups, `${0}` the match, `$$` a dollar sign."""
    problems = []
    for match in _PART.finditer(template):
        text = match[0]
        if not text.startswith("$") or text == "$$":
            continue
        if match[1] is None:
            message = f"{text!r} is neither a group nor a dollar sign"
            problem = ("bare dollar", message, "write ${1} for a group, $$ for the character")
        elif int(match[1]) > MAX_GROUP:
            problem = ("group over 9", f"{text} is beyond ${{{MAX_GROUP}}}", "write (?: ) for groups that are not used")
        elif int(match[1]) > group_count:
            problem = (
                "unknown group",
                f"the pattern has no group {match[1]}",
                "groups count from ${1}",
            )
        else:
            continue
        problems.append(RegexProblem(match.start(), match.end(), *problem))
    return tuple(problems)


def _parts(template: str) -> Iterator[str | int]:
    for match in _PART.finditer(template):
        if match[1] is not None:
            yield int(match[1])
        elif match[0] != "$$" and match[0].startswith("$"):
            raise ValueError(f"unchecked replacement template {template!r}")
        else:
            yield "$" if match[0] == "$$" else match[0]


def to_rust_template(template: str) -> str:
    """A checked template for polars. Raises ValueError for an unchecked one."""
    return "".join(f"${{{part}}}" if isinstance(part, int) else part.replace("$", "$$") for part in _parts(template))


def to_re2_template(template: str) -> str:
    """A checked template for DuckDB. Raises ValueError for an unchecked one."""
    return "".join(f"\\{part}" if isinstance(part, int) else part.replace("\\", "\\\\") for part in _parts(template))


# --- the three operations, in both engines --------------------------------------------------------------------------


def _group(regex: Regex, group: int | None) -> int:
    chosen = min(regex.group_count, 1) if group is None else group
    if not 0 <= chosen <= min(regex.group_count, MAX_GROUP):
        raise ValueError(f"the pattern has no group {chosen} (of at most {MAX_GROUP})")
    return chosen


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def contains(e: pl.Expr, regex: Regex) -> pl.Expr:
    """Whether the pattern matches anywhere: String -> Boolean, null for null."""
    return e.str.contains(to_rust(regex))


def contains_sql(x: str, regex: Regex) -> str:
    """DuckDB text of `contains` over the SQL expression `x`."""
    return f"regexp_matches({x}, {_quoted(to_re2(regex))})"


def extract(e: pl.Expr, regex: Regex, group: int | None = None) -> pl.Expr:
    """A group of the first match, by default the first group or, without groups, the match: String -> String.

    No match gives null, a group that took no part gives "". Raises ValueError for a group that is not there.
    """
    chosen = _group(regex, group)
    part = e.str.extract(to_rust(regex), chosen)
    return part if chosen == 0 else pl.when(contains(e, regex)).then(part.fill_null(""))


def extract_sql(x: str, regex: Regex, group: int | None = None) -> str:
    """DuckDB text of `extract` over the SQL expression `x`."""
    part = f"regexp_extract({x}, {_quoted(to_re2(regex))}, {_group(regex, group)})"
    return f"case when {contains_sql(x, regex)} then {part} end"


def replace(e: pl.Expr, regex: Regex, template: str) -> pl.Expr:
    """Every match replaced by a checked template: String -> String, null for null.

    An empty match just after another match is none: `x*` in "axb" is replaced at 0, 1 to 2 and 3.
    """
    taken_out = _taken_out(regex) if not template else None
    if taken_out is not None:
        return e.map_batches(lambda texts: _without(texts, taken_out), return_dtype=pl.String)
    return e.str.replace_all(to_rust(regex), to_rust_template(template))


def _taken_out(regex: Regex) -> bytes | None:
    """The characters that go one by one where every match gives way to nothing (`\\s+`); null where matches are longer
    than that, or hold more than ASCII."""
    node = regex.tree
    # One of which a lazy repetition takes nothing is left alone.
    if isinstance(node, Repeat) and node.low <= 1 and node.high != 0 and not (node.lazy and node.low == 0):
        node = node.body
    if not isinstance(node, Chars) or not node.ranges or node.ranges[-1][1] > 127:
        return None
    return bytes(code for low, high in node.ranges for code in range(low, high + 1))


def _without(texts: pl.Series, characters: bytes) -> pl.Series:
    """Byte by byte, in a third of the time that an automaton takes: ASCII is no part of any longer code point."""
    kept = [None if text is None else text.translate(None, characters) for text in texts.cast(pl.Binary).to_list()]
    return pl.Series(texts.name, kept, dtype=pl.Binary).cast(pl.String)


def replace_sql(x: str, regex: Regex, template: str) -> str:
    """DuckDB text of `replace` over the SQL expression `x`."""
    return f"regexp_replace({x}, {_quoted(to_re2(regex))}, {_quoted(to_re2_template(template))}, 'g')"
