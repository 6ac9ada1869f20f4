"""Hypothesis strategies for words, literals and expressions. See `strategies.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from curatec.dsl import ast
from curatec.dsl.grammar import grammar
from curatec.dsl.nodes import Name, Node

Nodes = st.SearchStrategy[Any]
LARGEST = 2**63 - 1

# ---- words, numbers, texts ----

_FIELDS = ["task", "content", "role", "reward", "calls", "x1", "_n", "r"]
_STRANGE = ["Total", "größe", "a b", "a-b", "1st", "x:", "#", '"', "{", "ü\u00a0"]


@cache
def words() -> st.SearchStrategy[str]:
    """Names: common ones, every keyword, and some that cannot be written without back-quotes."""
    return st.sampled_from(_FIELDS) | st.sampled_from(sorted(grammar().keywords)) | st.sampled_from(_STRANGE)


@cache
def names() -> st.SearchStrategy[Name]:
    return words().map(lambda word: Name(name=word))


@cache
def texts() -> st.SearchStrategy[str]:
    """Any text but lone surrogates, which no UTF-8 file holds."""
    special = st.text(alphabet=st.sampled_from('"\\\n\t\r ab#{}/0\u200b'), max_size=12)
    return special | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)


@cache
def prompts() -> st.SearchStrategy[ast.Text]:
    """Texts of several lines, indented in all ways."""
    lines = st.lists(st.text(alphabet=st.sampled_from(' \tab"\\{x}'), max_size=8), min_size=1, max_size=5)
    return (lines.map("\n".join) | texts()).map(lambda value: ast.Text(value=value))


@cache
def text_nodes() -> st.SearchStrategy[ast.Text]:
    return texts().map(lambda value: ast.Text(value=value))


def _amounts(lowest: int) -> st.SearchStrategy[int | float]:
    floats = st.floats(min_value=float(lowest), allow_nan=False, allow_infinity=False)
    return st.integers(lowest, 20) | st.integers(lowest, LARGEST) | floats.map(abs if lowest >= 0 else float)


@cache
def counts() -> st.SearchStrategy[ast.Number]:
    """Where the grammar takes no sign and no percent."""
    return st.builds(ast.Number, value=_amounts(0))


@cache
def percents() -> st.SearchStrategy[ast.Number]:
    return st.builds(ast.Number, value=_amounts(0), percent=st.just(True))


@cache
def numbers() -> st.SearchStrategy[ast.Number]:
    return st.builds(ast.Number, value=_amounts(-LARGEST), percent=st.booleans())


@cache
def literals() -> Nodes:
    """What stands in `{…}` and behind `param n =`."""
    word = st.builds(ast.Word, value=words())
    return numbers() | text_nodes() | st.builds(ast.Flag, value=st.booleans()) | word


def tuples(items: Nodes, least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def maybe(items: Nodes) -> Nodes:
    return st.none() | items


def some(node: Callable[..., Node], **fields: Nodes) -> Nodes:
    """A node with at least one of its optional fields given, where the grammar takes no empty braces."""
    return st.fixed_dictionaries({}, optional=fields).filter(bool).map(lambda given: node(**given))


# ---- expressions ----

_OPERATORS = ["or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "**"]
QUANTIFIERS = ["any", "all", "none", "count", "first", "last"]
COLLECTIONS = ["turns", "calls", "tools"]


@cache
def expressions() -> Nodes:
    leaves = st.one_of(
        numbers(),
        text_nodes(),
        st.builds(ast.Flag, value=st.booleans()),
        st.just(ast.Null()),
        st.builds(ast.Reference, name=words()),
        st.builds(
            ast.Quantifier,
            quantifier=st.sampled_from(QUANTIFIERS),
            collection=st.sampled_from(COLLECTIONS).map(lambda word: Name(name=word)),
        ),
    )
    return st.recursive(leaves, _larger, max_leaves=8)


def _larger(inner: Nodes) -> Nodes:
    negated = st.booleans()
    return st.one_of(
        st.builds(ast.Attribute, base=inner, name=names()),
        st.builds(ast.Index, base=inner, key=texts() | st.integers(0, LARGEST)),
        calls(inner),
        st.builds(ast.Quantifier, quantifier=st.sampled_from(QUANTIFIERS), collection=names(), where=inner),
        st.builds(ast.ListOf, items=tuples(inner)),
        st.builds(ast.Unary, operator=st.just("not"), operand=inner),
        # A minus before a number is part of the number.
        st.builds(ast.Unary, operator=st.just("-"), operand=inner.filter(lambda n: not isinstance(n, ast.Number))),
        st.builds(ast.Binary, operator=st.sampled_from(_OPERATORS), left=inner, right=inner),
        st.builds(ast.Between, operand=inner, low=inner, high=inner),
        st.builds(ast.In, operand=inner, choices=tuples(literals(), 1), negated=negated),
        st.builds(ast.InColumn, operand=inner, table=names(), column=names(), negated=negated),
        st.builds(ast.Is, operand=inner, state=st.sampled_from(["null", "empty"]), negated=negated),
        st.builds(ast.Match, operand=inner, pattern=text_nodes(), negated=negated),
        st.builds(ast.Conditional, condition=inner, then=inner, otherwise=inner),
        st.builds(ast.Cast, operand=inner, type=names()),
    )


def calls(inner: Nodes) -> Nodes:
    argument = st.builds(ast.Argument, value=inner, descending=st.booleans()) | st.builds(
        ast.Argument, name=words(), value=inner
    )
    call = st.builds(ast.Call, function=names(), arguments=tuples(argument), over=maybe(tuples(inner, 1, 2)))
    return call.filter(lambda node: not _says_quantifier(node))


def _says_quantifier(call: ast.Call) -> bool:
    """`count(turns)` is read as a quantifier, whatever else stands around the collection."""
    return (
        call.function.name in QUANTIFIERS
        and len(call.arguments) == 1
        and isinstance(call.arguments[0].value, ast.Reference)
        and call.arguments[0].value.name in COLLECTIONS
    )


@cache
def order_keys() -> Nodes:
    return st.builds(ast.OrderKey, value=expressions(), descending=st.booleans())
