"""`parse(print(ast)) == ast`, and the one form that is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from lark import Token

from curatec.dsl import ast
from curatec.dsl.fmt import format_text
from curatec.dsl.nodes import Name, Node
from curatec.dsl.parse import parse
from curatec.dsl.printing.literals import PLAIN_NAME
from curatec.dsl.printing.printer import print_file, print_node
from tests import strategies as some

quick = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def parsed(text: str) -> ast.File:
    result = parse(text)
    assert result.ok, (text, result.diagnostics)
    return result.file


def same(first: Node, second: Node) -> bool:
    """Equal, and `1` is not `1.0`."""
    return first == second and first.model_dump_json() == second.model_dump_json()


def expression(text: str) -> Any:
    declaration = parsed(f"failure f {{ when {text} }}").declarations[0]
    assert isinstance(declaration, ast.Failure)
    return declaration.when


def statement(text: str) -> Any:
    declaration = parsed(f"strategy s {{ {text} }}").declarations[0]
    assert isinstance(declaration, ast.Strategy)
    return declaration.body[0]


def setting(text: str) -> Any:
    sink = statement(f"emit e {{ {text} }}")
    assert isinstance(sink, ast.Sink)
    return sink.body[0]


# ---- what is printed is read back ----


@quick
@given(some.files())
def test_files(file: ast.File) -> None:
    text = print_file(file)
    assert same(parsed(text), file)
    again = format_text(text)
    assert not again.diagnostics
    assert again.text == text


@quick
@given(some.expressions())
def test_expressions(node: Any) -> None:
    text = print_node(node)
    assert same(expression(text), node)
    assert not text.endswith("\n")


@quick
@given(some.from_steps() | some.steps() | some.stages() | some.sinks())
def test_statements(node: Any) -> None:
    assert same(statement(print_node(node)), node)


@quick
@given(some.settings())
def test_settings(node: Any) -> None:
    assert same(setting(print_node(node)), node)


@quick
@given(some.declarations())
def test_declarations(node: Any) -> None:
    file = ast.File(declarations=(node,))
    assert print_node(node) + "\n" == print_file(file)


@quick
@given(some.files())
def test_no_back_quotes_too_many(file: ast.File) -> None:
    """Without any one pair of its back-quotes the text says something else, or nothing."""
    text = print_file(file)
    tokens = parse(text).tokens
    for token in tokens:
        if token.type == "QUOTED_NAME" and PLAIN_NAME.fullmatch(token[1:-1]):
            bare = f"{text[: token.start_pos]} {token[1:-1]} {text[token.end_pos :]}"
            result = parse(bare)
            assert not result.ok or _types(result.tokens) != _types(tokens)


def _types(tokens: tuple[Token, ...]) -> list[str]:
    return [token.type.removeprefix("QUOTED_") for token in tokens]


CORPUS = [path for folder in ("fmt", "specs") for path in sorted((Path(__file__).parent / folder).rglob("*.curate"))]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_corpus(path: Path) -> None:
    file = parsed(path.read_text(encoding="utf-8"))
    assert same(parsed(print_file(file)), file)
    for node in file.declarations:
        assert same(parsed(print_node(node)), ast.File(declarations=(node,)))


# ---- forms ----


@pytest.mark.parametrize(
    "text",
    [
        "a or b and not c",
        "(a or b) and c",
        "not (a and b)",
        "(not a) == b",
        "a - (b - c)",
        "a - b - c",
        "a / (b * c)",
        "a ** b ** c",
        "(a ** b) ** c",
        "-a ** b",
        "(-a) ** b",
        "-1",
        "(-1) ** 2",
        "a - -1",
        "--a",
        "a * -b",
        "a as int ** 2",
        "(a ** 2) as float",
        "(a + b) as int",
        "(a == b) == c",
        "a between b + 1 and c",
        "(if a then b else c) or d",
        "if a then b else c or d",
        "if if a then b else c then d else e",
        '(a + b).c["d"].e[0]',
        "(-a)[0]",
        "last(turns where is_error).content",
        "count(calls) > 2",
        "count() over (failure)",
        "rank(reward desc, keep: ends)",
        'f(["a", "b"], [])',
        'a in {b, "c", -1, 5%, true}',
        "a not in t.c",
        "a is not null and b is empty",
        'a ~ r"^Error" and b !~ r"\\d+"',
        "a == null",
        "10% + 0.5",
        "source == reward and key != failure",
        "`if` or `not` or `true` or `null`",
        "`My field` + `größe`",
        "then",
        "f(desc desc)",
    ],
)
def test_expression_forms(text: str) -> None:
    """Minimal already, so it is printed as it stands."""
    assert print_node(expression(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a) and (b))", "a and b"),
        ("(a * b) + c", "a * b + c"),
        ("`a` + `source`", "a + source"),
        ("- 1", "-1"),
        ("1e3", "1000.0"),
        ("1_2", "12"),
        ("10000", "10_000"),
        ('"a\\\\d"', 'r"a\\d"'),
        ('"a\\\\"', '"a\\\\"'),
        ('a ~ "x"', 'a ~ r"x"'),
        ('a ~ "\\n"', 'a ~ "\\n"'),
        ('"\\u{200b}"', '"\\u{200b}"'),
        ("count(turns,)", "count(turns)"),
    ],
)
def test_expressions_printed(text: str, printed: str) -> None:
    assert print_node(expression(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "limit 4 per `each`.x order by each",
        'judge `turns` in {a, `true`} using turns "?"',
        'judge turns turns in {a} using m "?" votes 3 on fail drop',
        "`A b`: from source, keep",
        "keep: drop where keep",
        "turns set keep = `not` where drop",
        "dedup near on text threshold 0.8 over (task) best by reward desc, turn_count",
        "mix { a 70% b 30% } by tokens to at most 20_000_000",
        "sample 10% per task seed 3",
        'decompose at a context { system, last 5 results, elide "…" } because "x" see "y" see "z"',
        "redact pii, secrets in all",
        "stage hard from s { tag failure }",
    ],
)
def test_statement_forms(text: str) -> None:
    assert print_node(statement(text)) == text


def test_no_keyword_hides_a_hyper() -> None:
    text = 'recipe r { sft { limit 1 value -2 group 8 loss "x" seed 3 format 10% } }\n'
    assert print_file(parsed(text)) == text


def test_prompts_of_many_lines_are_long_strings() -> None:
    text = '''strategy s {
  hard: judge difficulty: int in 1 .. 5 using grader """
    How hard is this?
      Think {task_text}

    "ok"
  """ because "why"

  emit sft {
    rewrite content using grader """
      Short.
      Please.
    """ where role == "user"
    format trl
  }
}
'''
    assert print_file(parsed(text)) == text


@pytest.mark.parametrize("value", ["  a\n  b", 'a\n"""', "a\nb ", "\n", "\r\n", "a\n\n", "\ta\n\tb"])
def test_prompts_that_the_dedent_would_change(value: str) -> None:
    node = ast.Rewrite(field=Name(name="f"), model=Name(name="m"), prompt=ast.Text(value=value))
    assert same(statement(print_node(node)), node)


def test_settings_stand_in_the_order_of_the_fields() -> None:
    text = "evolve e { seeds 3 budget { minutes 5 usd 1 } strategy s objective a - b }"
    assert print_file(parsed(text)) == (
        "evolve e {\n  strategy s\n  objective a - b\n  seeds 3\n  budget { usd 1 minutes 5 }\n}\n"
    )


def test_declarations_of_one_line_stand_together() -> None:
    text = 'curate 1\n\nimport "a"\nimport "b"\n\nparam a = 1 in 0 .. 2\nparam b = c in {c, d}\n'
    assert print_file(parsed(text)) == text


def test_nothing_is_printed_of_nothing() -> None:
    assert print_file(ast.File()) == ""


def test_what_the_language_cannot_say_is_refused() -> None:
    for node in (
        ast.Failure(name=Name(name="a`b"), when=ast.Null()),
        ast.Failure(name=Name(name=""), when=ast.Null()),
        ast.Strategy(name=Name(name="s"), body=(ast.Limit(count=ast.Number(value=-1), per=(ast.Null(),)),)),
    ):
        with pytest.raises(ValueError, match=r"name|cannot say"):
            print_node(node)
