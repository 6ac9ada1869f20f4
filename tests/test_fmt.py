"""The formatter changes white space only, always in the same way, or says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatec.dsl import ast, fmt
from curatec.dsl.fmt import diff, format_text
from curatec.dsl.parse import Parsed, parse
from curatec.dsl.printing.layout import lay_out
from curatec.dsl.printing.printer import print_file
from tests import strategies as some

ROOT = Path(__file__).parent.parent
CASES = Path(__file__).parent / "fmt"
GOLDEN = sorted(path.name.removesuffix(".in.curate") for path in CASES.glob("*.in.curate"))
CORPUS = sorted({*CASES.glob("*.curate"), *ROOT.glob("tests/specs/**/*.curate"), *ROOT.glob("specs/**/*.curate")})
WRONG = sorted(ROOT.glob("tests/errors/syntax/*.curate"))

quick = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def said(parsed: Parsed) -> tuple[list[tuple[str, str]], list[str]]:
    """Tokens and comments; the white space before a label's colon is the only one that is inside a token."""
    tokens = [(t.type, t[:-1].rstrip(" \n") + ":" if t.type == "LABEL" else str(t)) for t in parsed.tokens]
    return tokens, [comment.rstrip() for comment in parsed.comments]


def check(text: str) -> str:
    before = parse(text)
    assert before.ok, (text, before.diagnostics)
    result = format_text(text)
    assert not result.diagnostics, (text, result.diagnostics)
    assert result.changed == (result.text != text)
    after = parse(result.text)
    assert said(after) == said(before)
    assert after.file == before.file
    again = format_text(result.text)
    assert again.text == result.text
    assert not again.changed
    assert_tidy(result.text, after)
    return result.text


def assert_tidy(text: str, parsed: Parsed) -> None:
    strings = [range(t.line or 0, t.end_line or 0) for t in parsed.tokens if t.type == "LONG_STRING"]
    inside = {line for lines in strings for line in lines}
    lines = text.split("\n")
    assert not text or (lines[-1] == "" and lines[-2] != "" and lines[0] != "")
    for number, line in enumerate(lines[:-1], start=1):
        if number not in inside:
            assert line == line.rstrip(), (number, line)
            assert line or lines[number], (number, "two empty lines")


# ---- golden cases ----


@pytest.mark.parametrize("case", GOLDEN)
def test_golden(case: str) -> None:
    text = (CASES / f"{case}.in.curate").read_text(encoding="utf-8")
    assert check(text) == (CASES / f"{case}.out.curate").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_corpus(path: Path) -> None:
    check(path.read_text(encoding="utf-8"))


# ---- generated texts ----

_GAPS = [" ", " ", " ", "\n", "\n\n", "\n\n\n\n", "\t", " \r\n  ", " # c\n", "\n# own\n", "\n\n  # a  \n\n# b\n"]


@st.composite
def texts(draw: Callable[[Any], Any]) -> str:
    """The tokens of a printed file with any white space and comments between them."""
    tokens = parse(print_file(draw(some.files()))).tokens
    out = [draw(st.sampled_from(_GAPS))]
    wild = draw(st.booleans())
    for token in tokens:
        word = str(token)
        out.append(word[:-1] + " \n :" if wild and token.type == "LABEL" else word)
        out.append(draw(st.sampled_from(_GAPS)) if wild else draw(st.sampled_from(_GAPS[:6])))
    return "".join(out)


@quick
@given(texts())
def test_any_white_space_and_comments(text: str) -> None:
    check(text)


@quick
@given(some.files(), st.data())
def test_a_comment_anywhere(file: ast.File, data: st.DataObject) -> None:
    """In a text that is laid out already, one comment changes no line but its own and those it breaks."""
    text = print_file(file)
    tokens = parse(text).tokens
    at = data.draw(st.sampled_from([0, *(token.end_pos or 0 for token in tokens)]))
    check(text[:at] + data.draw(st.sampled_from(["# here\n", "  # here \n\n", "\n# here\n"])) + text[at:])


# ---- what is refused ----


@pytest.mark.parametrize(
    "faulty",
    [
        lambda text: text.replace("0.5", "0.6"),
        lambda text: text.replace("keep", "drop"),
        lambda text: text.replace("# why", "# what"),
        lambda text: text.replace("# why", ""),
        lambda text: text.replace("}", "", 1),
        lambda text: text.replace("or", "and"),
        lambda text: text + "# more\n",
        lambda text: text + "curate 1\n",
        lambda text: text.replace('"x  y"', '"x y"'),
        lambda text: text.replace("per", "perper"),
        lambda _: "",
    ],
)
def test_a_faulty_layout_is_not_written(monkeypatch: pytest.MonkeyPatch, faulty: Callable[[str], str]) -> None:
    monkeypatch.setattr(fmt, "lay_out", lambda *given: faulty(lay_out(*given)))
    text = 'strategy s { keep where a > 0.5 or b == "x  y" limit 3 per task # why\n }'
    result = format_text(text, "s.curate")
    assert result.text == text
    assert not result.changed
    (problem,) = result.diagnostics
    assert (problem.code, problem.message) == ("C0117", "the formatter would change the meaning")
    assert problem.source is not None
    assert problem.source.name == "s.curate"


def test_the_first_difference_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fmt, "lay_out", lambda *given: lay_out(*given).replace("0.5", "0.6"))
    text = "strategy s { keep where a > 0.5 }   "
    (problem,) = format_text(text).diagnostics
    assert problem.span is not None
    assert problem.source is not None
    assert problem.source.excerpt(problem.span) == "0.5"


def test_a_text_with_errors_stays_as_it_is() -> None:
    text = "strategy   s { keep when a }\n"
    result = format_text(text, "s.curate")
    assert result.text == text
    assert not result.changed
    assert result.diagnostics == parse(text, "s.curate").diagnostics
    assert result.diagnostics


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.name)
def test_errors_are_those_of_the_parser(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    result = format_text(text, path.name)
    assert (result.text, result.changed) == (text, False)
    assert result.diagnostics == parse(text, path.name).diagnostics != ()


# ---- line ends and small texts ----


@pytest.mark.parametrize("text", ["", " \n\t\n", "\r\n"])
def test_nothing_stays_nothing(text: str) -> None:
    assert format_text(text).text == ""


def test_only_comments() -> None:
    assert check("\n\n  # a\n\n\n  # b  ") == "# a\n\n# b\n"


def test_line_ends_become_line_feeds() -> None:
    text = "# a\r\nstrategy s {\r\n  tag failure  # b\r\n\r\n\r\n  tag failure\r\n}\r\n"
    assert check(text) == "# a\nstrategy s {\n  tag failure  # b\n\n  tag failure\n}\n"


def test_line_ends_inside_a_prompt_are_no_part_of_it() -> None:
    text = 'strategy s {\r\n  rewrite f using m """\r\n    a\r\n  """\r\n}\r\n'
    formatted = format_text(text)
    assert formatted.text == text.replace("\r\n", "\n")
    assert parse(text).file == parse(formatted.text).file


def test_a_byte_order_mark_goes() -> None:
    assert format_text("\ufeffcurate 1\n").text == "curate 1\n"


def test_a_string_of_many_lines_is_left_alone() -> None:
    text = 'strategy s {\n  rewrite f using m """\n      a\n\n\n   b  \n """\n}\n'
    assert check(text) == text


def test_the_width_counts_no_trailing_comment() -> None:
    text = f'strategy s {{\n  keep where a == 1 because "x"  # {"c" * 100}\n}}\n'
    assert check(text) == text


# ---- diff ----


def test_diff() -> None:
    assert diff("a\nb\n", "a\nb\n", "s.curate") == ""
    assert diff("a\nb", "a\nc\n", "s.curate") == (
        "--- a/s.curate\n+++ b/s.curate\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    )
    # A line separator inside a string is no line end.
    assert diff("\u2028a\n", "\u2028b\n", "s") == "--- a/s\n+++ b/s\n@@ -1 +1 @@\n-\u2028a\n+\u2028b\n"
