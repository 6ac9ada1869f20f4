"""The regex subset: one answer from polars, DuckDB and Python; every forbidden construct by name and place."""

from __future__ import annotations

import re
from itertools import pairwise

import duckdb
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from curatec.compiler import regex as R
from curatec.compiler.regex import Regex, RegexProblem, parse
from curatec.compiler.regex_tree import matches_empty

quick = settings(max_examples=200, deadline=None, derandomize=True)


def accepted(pattern: str) -> Regex:
    regex = parse(pattern)
    assert isinstance(regex, Regex), regex
    return regex


def replace_py(regex: Regex, template: str, text: str) -> str:
    """The reference of `replace`: from left to right, no empty match where the one before it ended."""
    pieces, at, last = [], 0, -1
    for match in python_matches(R.to_python(regex), text):
        if match.start() == match.end() == last:
            continue
        filled = re.sub(r"\$(\$|\{(\d)\})", lambda m, match=match: match[int(m[2])] or "" if m[2] else "$", template)
        pieces += [text[at : match.start()], filled]
        at = last = match.end()
    return "".join([*pieces, text[at:]])


def python_matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """As Rust and RE2 go on: from the end of a match, one further when that match was empty or only touches it."""
    found: list[re.Match[str]] = []
    at, last = 0, -1
    while at <= len(text) and (match := pattern.search(text, at)):
        if match.start() == match.end() == last:
            at += 1
            continue
        found.append(match)
        at = last = match.end()
    return found


def polars(regex: Regex, texts: list[str | None], template: str) -> list[tuple[object, ...]]:
    frame = pl.DataFrame({"t": texts}, schema={"t": pl.String})
    t = pl.col("t")
    groups = [R.extract(t, regex, g).alias(f"g{g}") for g in range(min(regex.group_count, 9) + 1)]
    return frame.select(R.contains(t, regex).alias("c"), R.replace(t, regex, template).alias("r"), *groups).rows()


def duck(regex: Regex, texts: list[str | None], template: str) -> list[tuple[object, ...]]:
    frame = pl.DataFrame({"t": texts}, schema={"t": pl.String})
    groups = [R.extract_sql("t", regex, g) for g in range(min(regex.group_count, 9) + 1)]
    columns = [R.contains_sql("t", regex), R.replace_sql("t", regex, template), *groups]
    assert frame.height == len(texts)
    return duckdb.sql(f"select {', '.join(columns)} from frame").fetchall()


def python(regex: Regex, texts: list[str | None], template: str) -> list[tuple[object, ...]]:
    count = min(regex.group_count, 9) + 1
    rows: list[tuple[object, ...]] = []
    for text in texts:
        match = None if text is None else R.to_python(regex).search(text)
        groups = [match[g] or "" if match else None for g in range(count)]
        rows.append(
            (None, None, *groups) if text is None else (match is not None, replace_py(regex, template, text), *groups)
        )
    return rows


def same_everywhere(pattern: str, texts: list[str | None], template: str = "<${0}>") -> list[tuple[object, ...]]:
    regex = accepted(pattern)
    want = python(regex, texts, template)
    assert polars(regex, texts, template) == want, R.to_rust(regex)
    assert duck(regex, texts, template) == want, R.to_re2(regex)
    return want


# --- a table of patterns and texts ------------------------------------------------------------------------------------

TABLE: list[tuple[str, list[str], list[str]]] = [
    ("", ["", "東"], []),
    ("^Error", ["Error: x"], ["An Error", "x\nError", "error"]),
    ("end$", ["the end"], ["end\n", "end\nx"]),
    (r"\Aa\z", ["a"], ["a\n", "ba"]),
    (r"(?m)^a$", ["b\na\nc", "a"], ["b\na\r\nc", "a\rb", "a\u2028b"]),
    (r"(?m)^$", ["", "a\n\nb", "a\n"], ["a", "\r"]),
    ("a.b", ["a b", "a\rb", "a\u2028b", "a\u0085b", "a😀b", "a\x00b"], ["a\nb", "ab", "a👩‍💻b"]),
    ("(?s)a.b", ["a\nb"], ["ab"]),
    ("(?ism)^A.b$", ["x\na\nB\ny"], ["xa\nb"]),
    ("(?i)straße k", ["STRAßE K"], ["STRASSE k", "straße \u212a", "STRAẞE k"]),
    ("(?i)[a-z]+$", ["Q"], ["\u212a", "\u017f"]),
    ("(?i)[^k]", ["\u212a"], ["k", "K"]),
    ("(?i)é", ["é"], ["É", "e\u0301"]),
    (r"\bbooked\b", ["東booked", "booked東", "x booked.", "ébookedé"], ["xbooked", "booked_"]),
    (r"\w", ["a", "_", "7"], ["é", "東", "٣", "-", "e\u0301"[1:]]),
    (r"\d", ["0"], ["٣", "²", "०"]),
    (r"\s", [" ", "\t", "\n", "\r", "\f"], ["\u00a0", "\v", "\u2003", "\x1c", "\x85"]),
    (r"\W", ["é", "東", "\n", "😀"], ["a"]),
    (r"[^\W_]", ["a", "0"], ["_", "é"]),
    (r"[^\S ]", ["\t"], [" ", "\u00a0", "a"]),
    (r"[\d\s]", ["1", "\n"], ["a"]),
    (r"[]a]", ["]", "a"], ["[", "b"]),
    (r"[^]a]", ["b"], ["]", "a"]),
    (r"[-a]", ["-", "a"], ["b"]),
    (r"[a-]", ["-", "a"], ["b"]),
    (r"[a\-z]", ["-", "a"], ["b"]),
    (r"[-+]", ["+", "-"], [","]),
    (r"[\^\]\[\\]", ["^", "]", "[", "\\"], ["a"]),
    (r"[a^$.|?*+(){}]", ["^", "$", "}", "("], ["b"]),
    (r"[&~-]", ["&", "~", "-"], ["a"]),
    ("[一-龥]+", ["東京"], ["abc", "カ"]),
    (r"[\x{1f600}-\x{1f64f}]", ["😀"], ["🤖", "a"]),
    (r"\x41\x{e9}", ["Aé"], ["A\xc3\xa9"]),
    (r"\.\*\/\-\ \"\'\#\&\~\%\@\_\!", [".*/- \"'#&~%@_!"], [""]),
    (r"\n\t\r\f\v", ["\n\t\r\f\v"], [" "]),
    ("}]", ["}]"], ["{"]),
    ("a|", ["a", "", "b"], []),
    ("(a||b)c", ["c", "ac"], ["a"]),
    ("(?:)", ["", "x"], []),
    ("()x", ["x"], [""]),
    ("a{2,3}b", ["aab", "aaab"], ["ab"]),
    ("^a{2,}$", ["aa", "aaaa"], ["a"]),
    ("^(?:ab){0}$", [""], ["ab"]),
    ("^.{2}$", ["東京", "e\u0301", "😀😀"], ["é", "👩‍💻"]),
    ("(a+?)(a*)", ["aaa"], ["b"]),
    ("(a|ab)(c|bcd)(d*)", ["abcd"], [""]),
    (r"(\w+)@(\w+)(\.com)?", ["me@host", "me@host.com"], ["@"]),
    ("(?:x(a)|(b))+", ["xab", "bxa"], ["a"]),
    ("a{1000}", ["a" * 1000], ["a" * 999]),
    ("^(?:(?:a{10}){10}){10}$", ["a" * 1000], ["a" * 999]),
    ("a\x00b", ["a\x00b"], ["ab"]),
]


@pytest.mark.parametrize(("pattern", "matching", "others"), TABLE, ids=[ascii(row[0]) for row in TABLE])
def test_table(pattern: str, matching: list[str], others: list[str]) -> None:
    rows = same_everywhere(pattern, [*matching, *others, None])
    assert [row[0] for row in rows] == [True] * len(matching) + [False] * len(others) + [None]


def test_extract_by_example() -> None:
    def one(pattern: str, text: str, group: int | None = None) -> object:
        frame = pl.DataFrame({"t": [text]})
        mine = frame.select(R.extract(pl.col("t"), accepted(pattern), group)).item()
        assert duckdb.sql(f"select {R.extract_sql('t', accepted(pattern), group)} from frame").fetchall() == [(mine,)]
        return mine

    assert one(r"(airline|retail)", "data/retail-1.json") == "retail"
    assert one(r"retail", "data/retail-1.json") == "retail"
    assert one(r"x(y)?", "ax") == ""
    assert one(r"x(y)?", "a") is None
    assert one(r"(\d+)-(\d+)", "a12-34", 2) == "34"
    assert one(r"(\d+)-(\d+)", "a12-34", 0) == "12-34"
    with pytest.raises(ValueError, match="no group 3"):
        one(r"(\d+)-(\d+)", "a12-34", 3)


def test_spelling() -> None:
    regex = accepted(r"(?i)\bk[^a-z\n]+?(?:.|é)$")
    assert R.to_rust(regex) == r"(?-u:\b)[Kk][^\x{a}A-Za-z]+?(?:[^\x{a}]|é)\z"
    assert R.to_re2(regex) == r"\b(?:K|k)[^\x{a}A-Za-z]+?(?:[^\x{a}]|é)\z"
    assert R.to_python(regex).pattern == r"\b[Kk][^\x0aA-Za-z]+?(?:[^\x0a]|é)\Z"
    assert R.to_python(regex).flags & re.ASCII
    assert accepted("(a)(?:b)((c))").group_count == 3
    assert R.checked("a") == accepted("a")
    with pytest.raises(ValueError, match="look-around"):
        R.checked("(?=a)")


# --- replacement ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "template", "text", "want"),
    [
        (r"(\w+)=(\w+)", "${2}=${1}", "a=1, b=2", "1=a, 2=b"),
        (r"\d", "$$${0}", "a1", "a$1"),
        (r"(x)(y)?", "${2}", "xyx", "y"),
        (r"\s+", r"\1 $$1 \\ '", "a b", r"a\1 $1 \\ 'b"),
        ("x*", "-", "axb東", "-a-b-東-"),
        (r"\s*$", "", "a  \n", "a"),
        ("", "·", "é😀", "·é·😀·"),
        ("(?m)^", "> ", "a\nb", "> a\n> b"),
        (r"\s+", "", " a\t東 b\r\n\f😀\u00a0", "a東b😀\u00a0"),
        (r"\s", "", " a\t東 b", "a東b"),
        (r"\s*?", "", " a b", " a b"),
        (r"\s{1,2}", "", "a   b", "ab"),
        (r"\s{2}", "", "a   b", "a b"),
        (r"a{0}", "", "aa東", "aa東"),
        (r"[a-c\n]+", "", "xaby\ncé", "xyé"),
        (r"[aé]+", "", "aéb", "b"),
        (r"[^a]", "", "ba東a", "aa"),
    ],
)
def test_replace(pattern: str, template: str, text: str, want: str) -> None:
    regex = accepted(pattern)
    assert R.check_replacement(template, regex.group_count) == ()
    assert same_everywhere(pattern, [text], template)[0][1] == want


@pytest.mark.parametrize(
    ("template", "kind", "span"),
    [
        ("a$1", "bare dollar", (1, 3)),
        ("5$", "bare dollar", (1, 2)),
        ("$name!", "bare dollar", (0, 5)),
        ("${name}", "bare dollar", (0, 7)),
        ("${1", "bare dollar", (0, 3)),
        ("$$$", "bare dollar", (2, 3)),
        ("東${3}", "unknown group", (1, 5)),
        ("${10}", "group over 9", (0, 5)),
    ],
)
def test_check_replacement(template: str, kind: str, span: tuple[int, int]) -> None:
    (problem,) = R.check_replacement(template, 2)
    assert (problem.kind, (problem.start, problem.end)) == (kind, span)
    assert problem.message
    assert problem.help
    if kind == "bare dollar":
        with pytest.raises(ValueError, match="unchecked"):
            R.to_re2_template(template)


# --- what is refused --------------------------------------------------------------------------------------------------

FORBIDDEN = [
    ("a(?=b)", "look-around", "(?="),
    ("(?!b)", "look-around", "(?!"),
    ("(?<=b)a", "look-around", "(?<="),
    ("東(?<!b)a", "look-around", "(?<!"),
    ("(?P<x>a)", "named group", "(?P<x>"),
    ("(?<x>a)", "named group", "(?<x>"),
    ("(?'x'a)", "named group", "(?'x'"),
    (r"(a)\1", "back-reference", r"\1"),
    (r"(a)\12", "back-reference", r"\12"),
    (r"(a)\k<x>", "back-reference", r"\k<x>"),
    (r"(a)\g{1}", "back-reference", r"\g{1}"),
    ("(?P=x)", "back-reference", "(?P=x"),
    ("(?>a)", "atomic group", "(?>"),
    ("a++", "possessive quantifier", "++"),
    ("a*+", "possessive quantifier", "*+"),
    ("a{2}+", "possessive quantifier", "{2}+"),
    ("a**", "double repetition", "**"),
    ("a{2}{3}", "double repetition", "{2}{3}"),
    ("a+??", "double repetition", "+??"),
    ("(?#c)a", "comment", "(?#c"),
    ("(?|a)", "branch reset", "(?|"),
    ("(a)(?(1)b|c)", "conditional", "(?(1)"),
    ("a(?R)", "recursion", "(?R"),
    ("(a)(?1)", "recursion", "(?1"),
    ("a(?i)b", "flag", "(?i)"),
    ("(?i:a)", "flag", "(?i:"),
    ("(?x)a", "flag", "(?x)"),
    ("(?U)a", "flag", "(?U)"),
    ("(?-s)a", "flag", "(?-s)"),
    ("(?i)(?s)a", "flag", "(?s)"),
    ("(?~a)", "unknown group", "(?"),
    (r"\0", "octal escape", r"\0"),
    (r"a\012", "octal escape", r"\012"),
    (r"\101", "octal escape", r"\101"),
    (r"\pL+", "Unicode class", r"\pL"),
    (r"a\p{Han}", "Unicode class", r"\p{Han}"),
    (r"[\P{Greek}]", "Unicode class", r"\P{Greek}"),
    (r"a\B", "negated word boundary", r"\B"),
    (r"\b{start}a", "word boundary kind", r"\b{start}"),
    (r"a\Z", "end before a newline", r"\Z"),
    (r"\u00e9", "bad escape", r"\u00e9"),
    (r"\u{e9}", "bad escape", r"\u{e9}"),
    (r"\Qa", "quotation", r"\Q"),
    (r"\x4", "bad escape", r"\x4"),
    (r"\x{}", "bad escape", r"\x{}"),
    (r"\x{d800}", "bad escape", r"\x{d800}"),
    (r"\x{110000}", "bad escape", r"\x{110000}"),
    (r"a\<b", "bad escape", r"\<"),
    (r"\>", "bad escape", r"\>"),
    (r"\é", "bad escape", r"\é"),
    (r"\h", "bad escape", r"\h"),
    (r"\R", "bad escape", r"\R"),
    (r"\X", "bad escape", r"\X"),
    (r"\C", "bad escape", r"\C"),
    (r"\a", "bad escape", r"\a"),
    (r"[\b]", "bad escape", r"\b"),
    (r"[\A]", "bad escape", r"\A"),
    ("a\\", "bad escape", "\\"),
    ("[a[b]", "nested class", "["),
    ("[[a]", "nested class", "["),
    ("[[:alpha:]]", "POSIX class", "[:alpha:]"),
    ("[^[:^digit:]]", "POSIX class", "[:^digit:]"),
    ("[a&&b]", "set operator", "&&"),
    ("[a--b]", "set operator", "--"),
    ("[a~~b]", "set operator", "~~"),
    ("[a-c-e]", "bad range", "-"),
    ("[z-a]", "bad range", "z-a"),
    (r"[a-\d]", "bad range", r"a-\d"),
    (r"[\w-z]", "bad range", r"\w-z"),
    (r"[^\x{0}-\x{10ffff}]", "empty class", r"[^\x{0}-\x{10ffff}]"),
    (r"[^\d\D]", "empty class", r"[^\d\D]"),
    ("a[b", "unterminated class", "["),
    ("a[]", "unterminated class", "["),
    ("a(b", "unbalanced parenthesis", "("),
    ("a)b", "unbalanced parenthesis", ")"),
    ("*a", "nothing to repeat", "*"),
    ("a|+", "nothing to repeat", "+"),
    ("(?:?)", "nothing to repeat", "?"),
    ("{2}", "nothing to repeat", "{2}"),
    ("a{", "bare brace", "{"),
    ("a{,3}", "bare brace", "{"),
    ("{x}", "bare brace", "{"),
    ("a{3,2}", "bad repetition", "{3,2}"),
    ("a{1001}", "repetition over 1,000", "{1001}"),
    ("a{1,99999999999999999999}", "repetition over 1,000", "{1,99999999999999999999}"),
    ("(?:a{100}){11}", "repetition over 1,000", "{11}"),
    ("(?:a*)*", "repetition of the empty text", "(?:a*)*"),
    ("x^*", "repetition of the empty text", "^*"),
    (r"\b+", "repetition of the empty text", r"\b+"),
    ("(|a){2}", "repetition of the empty text", "(|a){2}"),
    ("a" * 4097, "pattern over 4 kB", "a" * 4097),
    ("é" * 2049, "pattern over 4 kB", "é" * 2049),
    ("[^a]{1000}[^b]{1000}", "pattern too large", "[^a]{1000}[^b]{1000}"),
    ("a\ud800", "lone surrogate", "\ud800"),
    ("(" * 101 + ")" * 101, "too deep", "("),
]


@pytest.mark.parametrize(("pattern", "kind", "part"), FORBIDDEN, ids=[f"{ascii(r[0])[:30]}-{r[1]}" for r in FORBIDDEN])
def test_forbidden(pattern: str, kind: str, part: str) -> None:
    problems = parse(pattern)
    assert isinstance(problems, tuple)
    assert [(p.kind, pattern[p.start : p.end]) for p in problems] == [(kind, part)]
    assert problems[0].message
    assert problems[0].help


def test_places() -> None:
    def places(pattern: str) -> list[tuple[str, int, int]]:
        problems = parse(pattern)
        assert isinstance(problems, tuple)
        return [(p.kind, p.start, p.end) for p in problems]

    assert places("[a[b]") == [("nested class", 2, 3)]
    assert places("[a-c-e]") == [("bad range", 4, 5)]
    assert places("a{100001}b") == [("repetition over 1,000", 1, 9)]
    assert places(r"😀(?=a)\1[x&&y](?P<n>b)++") == [
        ("look-around", 1, 4),
        ("back-reference", 6, 8),
        ("set operator", 10, 12),
        ("named group", 14, 20),
        ("possessive quantifier", 22, 24),
    ]


# --- any pattern, any text --------------------------------------------------------------------------------------------

LETTERS = "abAkK_0 \n\r\té東😀\u212a\u017f\u0301-.^"
ATOMS = [
    *"abkK_0é東😀.^$",
    " ",
    "\\.",
    "\\-",
    "\\n",
    r"\d",
    r"\w",
    r"\s",
    r"\D",
    r"\W",
    r"\S",
    r"\b",
    r"\A",
    r"\z",
    r"\x{301}",
]
CLASSES = ["[a-c]", "[^a]", r"[\w東]", r"[^\s]", "[é-龥]", "[-a]", r"[^\x00-\x{7f}]", r"[K\x{212a}]", "[^😀]"]
COUNTS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{1,2}?", "{0}"]
PIECES = st.recursive(
    st.sampled_from(ATOMS) | st.sampled_from(CLASSES),
    lambda inner: (
        st.builds(
            lambda opener, branches, count: f"{opener}{'|'.join(map(''.join, branches))}){count}",
            st.sampled_from(["(", "(?:"]),
            st.lists(st.lists(inner, max_size=3), min_size=1, max_size=3),
            st.sampled_from(COUNTS),
        )
        | st.builds(lambda piece, count: piece + count, inner, st.sampled_from(COUNTS))
    ),
    max_leaves=8,
)
PATTERNS = st.builds(
    lambda flags, parts: flags + "".join(parts),
    st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)", "(?im)", "(?ism)"]),
    st.lists(PIECES, min_size=1, max_size=4),
)
SUBJECTS = st.lists(
    st.text(st.sampled_from(LETTERS) | st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=6
)


@quick
@given(PATTERNS, SUBJECTS)
@example("(?m)$\\b|^", ["\n\n", "a\n"])
@example("(?i)(a|k)(s|é)|k|s", ["\u212a\u017f", "aS"])
@example("[Kk]|[Ss]|a", ["\u212a\u017f"])
def test_three_engines_agree(pattern: str, texts: list[str]) -> None:
    regex = parse(pattern)
    assume(isinstance(regex, Regex))
    assert isinstance(regex, Regex)
    template = "<${0}|${1}$$>" if regex.group_count else "<${0}>"
    same_everywhere(pattern, [*texts, *LETTERS, "aab", "a\nb", ""], template)


@quick
@given(st.text(st.sampled_from("ab(?:)[]{}|*+?^$\\dwpx<>=!P&-0123,~é i"), max_size=14))
def test_any_text_parses_or_says_why(pattern: str) -> None:
    regex = parse(pattern)
    if isinstance(regex, Regex):
        same_everywhere(pattern, ["", "ab", "aé-0(", "x\n"])
        return
    assert regex
    for one, two in pairwise(regex):
        assert one.start <= two.start
    for problem in regex:
        assert isinstance(problem, RegexProblem)
        assert 0 <= problem.start < problem.end <= len(pattern)


def test_no_pattern_is_slow_to_parse() -> None:
    for unit in ("(", "[", "a{2}", "(?:", "(?=", "\\", "[^a-z]", "|", "(?#", "(?P<", "a**", "[a-"):
        parse(unit * (4096 // len(unit)))


def test_the_largest_pattern_compiles_and_does_not_hang() -> None:
    regex = accepted("(?:[^é東]{190}x?){5}")
    big = accepted("[^a]{990}" + "b" * 2000 + "(?:cd?){200}")
    text = "cab" * 3000
    for each in (regex, big):
        assert polars(each, [text], "")[0][0] == duck(each, [text], "")[0][0]
    hard = accepted(r"(?:a|a)+(?:a|aa)+$")
    assert polars(hard, ["a" * 5000 + "b"], "")[0][0] is False
    assert duck(hard, ["a" * 5000 + "b"], "")[0][0] is False
    assert not matches_empty(hard.tree)
