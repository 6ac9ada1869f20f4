"""Hypothesis strategies for statements, stages, sinks and strategies. See `strategies.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

from hypothesis import strategies as st

from curatec.dsl import ast
from curatec.dsl.nodes import Node
from tests.strategies_expr import (
    LARGEST,
    Nodes,
    calls,
    counts,
    expressions,
    literals,
    maybe,
    names,
    numbers,
    order_keys,
    percents,
    prompts,
    some,
    text_nodes,
    texts,
    tuples,
)

# ---- pieces of statements ----


@cache
def shares() -> Nodes:
    return tuples(st.builds(ast.Share, name=names(), percent=percents()), 1)


@cache
def ranges() -> Nodes:
    return st.builds(ast.Range, low=numbers(), high=numbers())


@cache
def choices() -> Nodes:
    return st.builds(ast.Choices, values=tuples(literals(), 1))


@cache
def contexts() -> Nodes:
    yes = st.just(True)
    return some(
        ast.Context,
        system=yes,
        task=yes,
        last_results=st.integers(0, LARGEST),
        all_calls=yes,
        elide=texts(),
    )


@cache
def verdicts() -> Nodes:
    return (
        st.builds(ast.Verdict, name=names())
        | st.builds(ast.Verdict, name=names(), range=ranges())
        | st.builds(ast.Verdict, name=names(), choices=choices())
    )


# ---- statements ----


def _notes(*, labelled: bool = True) -> dict[str, Nodes]:
    return {
        "label": maybe(names()) if labelled else st.none(),
        "because": maybe(texts()),
        "see": tuples(texts(), 0, 2),
    }


@cache
def steps() -> Nodes:
    """What may stand in a strategy, a stage and a sink."""
    many, keys, verbs = tuples(expressions(), 1), tuples(order_keys()), st.sampled_from(["keep", "drop"])
    fields: list[tuple[Callable[..., Node], dict[str, Nodes]]] = [
        (ast.Join, {"table": names(), "on": expressions(), "required": st.booleans()}),
        (ast.Split, {"by": expressions(), "shares": shares(), "seed": st.integers(0, LARGEST)}),
        (ast.Split, {"by": expressions(), "near": names(), "near_threshold": counts(), "shares": shares()}),
        (ast.Render, {"tokenizer": text_nodes(), "template": maybe(text_nodes())}),
        (ast.View, {"side": names()}),
        (ast.Filter, {"verb": verbs, "where": expressions()}),
        (ast.TurnsFilter, {"verb": verbs, "where": expressions(), "repair": st.booleans()}),
        (ast.TurnsSet, {"field": names(), "value": expressions(), "where": maybe(expressions())}),
        (
            ast.TurnsCut,
            {
                "side": st.sampled_from(["after", "before"]),
                "pick": _picks(),
                "where": expressions(),
                "repair": st.booleans(),
            },
        ),
        (ast.ToolsFilter, {"verb": verbs, "where": expressions()}),
        (ast.Redact, {"families": tuples(names(), 1), "scope": names()}),
        (ast.DedupExact, {"on": many, "best": keys}),
        (ast.DedupNear, {"on": expressions(), "threshold": counts(), "over": tuples(expressions()), "best": keys}),
        (ast.Limit, {"count": counts(), "per": many, "order": keys}),
        (ast.Limit, {"count": counts(), "per": tuples(expressions(), 1, 1), "each": st.just(True), "order": keys}),
        (ast.Sample, {"amount": counts() | percents(), "per": tuples(expressions()), "seed": st.integers(0, LARGEST)}),
        (ast.Mix, {"shares": shares(), "by": maybe(names())}),
        (ast.Mix, {"shares": shares(), "by": maybe(names()), "to": counts(), "at_most": st.booleans()}),
        (ast.Derive, {"name": names(), "value": expressions()}),
        (ast.Tag, {}),
        (ast.Decompose, {"at": expressions(), "context": maybe(contexts())}),
        (ast.Augment, {"call": calls(expressions())}),
        (
            ast.Judge,
            {
                "turns": st.booleans(),
                "verdict": verdicts(),
                "model": names(),
                "prompt": prompts(),
                "votes": st.integers(0, LARGEST),
                "on_fail": _on_fail(),
            },
        ),
        (
            ast.Rewrite,
            {
                "field": names(),
                "model": names(),
                "prompt": prompts(),
                "where": maybe(expressions()),
                "on_fail": _on_fail(),
            },
        ),
        (ast.Decontaminate, {"against": names(), "ngram": maybe(st.integers(0, LARGEST))}),
        (ast.Sort, {"by": tuples(order_keys(), 1)}),
        (ast.Expect, {"condition": expressions()}),
    ]
    return st.one_of([st.builds(node, **given, **_notes()) for node, given in fields])


def _picks() -> Nodes:
    return st.sampled_from(["first", "last"])


def _on_fail() -> Nodes:
    return st.sampled_from(["keep", "drop", "stop"])


@cache
def from_steps() -> Nodes:
    """Only in a strategy itself."""
    return st.builds(ast.From, sources=tuples(names(), 1), **_notes())


@cache
def settings() -> Nodes:
    """Only in a sink, and without labels."""
    yes = st.booleans()
    fields: list[tuple[Callable[..., Node], dict[str, Nodes]]] = [
        (
            ast.Loss,
            {
                "on": names(),
                "except_reasoning": yes,
                "only_last": yes,
                "including_edited": yes,
                "where": maybe(expressions()),
                "weight": maybe(expressions()),
            },
        ),
        (ast.Fit, {"tokens": counts(), "otherwise": st.sampled_from(["drop", "window", "cut"])}),
        (ast.ReasoningShown, {"shown": st.sampled_from(["keep", "last", "strip"])}),
        (ast.ContextSetting, {"context": contexts()}),
        (ast.Format, {"name": names()}),
        (ast.Prompt, {"pick": _picks(), "role": names()}),
        (ast.EnvironmentUse, {"tools": names()}),
        (ast.Reward, {"value": expressions()}),
        (ast.Group, {"size": counts()}),
        (ast.Key, {"value": expressions()}),
        (ast.Value, {"value": expressions()}),
        (ast.Retrieve, {"method": names(), "top": counts()}),
    ]
    plain = [st.builds(node, **given, **_notes(labelled=False)) for node, given in fields]
    return st.one_of([*plain, _pairs()])


def _pairs() -> Nodes:
    """At least one clause; those of two parts have both."""
    margin = st.fixed_dictionaries({"margin": expressions(), "margin_at_least": numbers()})
    most = st.fixed_dictionaries({"max_pairs": counts(), "max_per": tuples(expressions(), 1, 2)})
    single = st.fixed_dictionaries(
        {},
        optional={
            "within": tuples(expressions(), 1, 2),
            "from_difference": st.just(True),
            "chosen": expressions(),
            "rejected": expressions(),
            "length_ratio": counts(),
        },
    )
    none: Nodes = st.just({})
    clauses = st.tuples(margin | none, most | none, single).map(lambda parts: parts[0] | parts[1] | parts[2])
    noted = st.tuples(clauses.filter(bool), st.fixed_dictionaries(_notes(labelled=False)))
    return noted.map(lambda parts: ast.Pair(**parts[0], **parts[1]))


@cache
def stages() -> Nodes:
    return st.builds(ast.Stage, name=names(), base=names(), steps=tuples(steps()))


@cache
def sinks() -> Nodes:
    body = tuples(steps() | settings()).filter(_says_its_contexts)
    return st.builds(ast.Sink, name=names(), base=maybe(names()), body=body)


def _says_its_contexts(body: tuple[Node, ...]) -> bool:
    """A `context` right after a `decompose` without one is that step's own."""
    return not any(
        isinstance(first, ast.Decompose) and first.context is None and isinstance(second, ast.ContextSetting)
        for first, second in pairwise(body)
    )


@cache
def strategies() -> Nodes:
    body = tuples(from_steps() | steps() | stages() | sinks(), 0, 4)
    return st.builds(ast.Strategy, name=names(), body=body)
