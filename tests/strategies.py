"""Hypothesis strategies for the AST: whatever they give, the language can say.

What the grammar or the tree builder rules out is left out here, each time with the reason. The strategies are
functions without arguments, cached, so that tests can build on any of them: `expressions()`, `steps()`, `files()`, …
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

from curatec.dsl import ast
from curatec.dsl.grammar import grammar
from curatec.dsl.nodes import Name, Node
from hypothesis import strategies as st

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
        (ast.TurnsCut, {"side": st.sampled_from(["after", "before"]), "pick": _picks(), "where": expressions()}),
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
    return st.one_of([st.builds(node, **given, **_notes()) for node, given in fields]).filter(_keeps_its_reason)


def _keeps_its_reason(node: Node) -> bool:
    """The builder takes an empty reason behind a `context` for none."""
    return not (isinstance(node, ast.Decompose) and node.context is not None and node.because == "")


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
    none = st.just({})
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


# ---- other declarations ----


@cache
def params() -> Nodes:
    return st.builds(ast.Param, name=names(), value=literals(), range=ranges()) | st.builds(
        ast.Param, name=names(), value=literals(), choices=choices()
    )


@cache
def durations() -> Nodes:
    return st.builds(ast.Duration, amount=counts(), unit=st.sampled_from(["ms", "s", "m", "h"]))


@cache
def budgets() -> Nodes:
    return some(ast.Budget, usd=counts(), tokens=counts(), minutes=counts(), calls=counts())


def _given(node: Callable[..., Node], **fields: Nodes) -> Nodes:
    """A declaration with a name and any of its settings."""
    return st.fixed_dictionaries({"name": names()}, optional=fields).map(lambda given: node(**given))


def _from_paths() -> Nodes:
    return text_nodes() | st.builds(ast.FromPath, pattern=text_nodes())


@cache
def sources() -> Nodes:
    return _given(
        ast.Source,
        path=tuples(text_nodes()),
        format=names(),
        tools_from=text_nodes(),
        system=prompts(),
        system_from=text_nodes(),
        domain=_from_paths(),
        model=_from_paths(),
        error_when=expressions(),
        success_when=expressions(),
        license=text_nodes(),
    )


@cache
def tables() -> Nodes:
    columns = tuples(st.builds(ast.Column, name=names(), type=names()))
    return _given(ast.Table, path=tuples(text_nodes()), key=names(), columns=columns)


@cache
def tools() -> Nodes:
    roles = tuples(st.builds(ast.RoleOverride, parameter=names(), role=names()))
    return _given(
        ast.Tools,
        python=text_nodes(),
        mcp=tuples(text_nodes()),
        openapi=text_nodes(),
        adapter=names(),
        config=text_nodes(),
        timeout=durations(),
        memory=st.builds(ast.Size, amount=counts(), unit=st.sampled_from(["mb", "gb"])),
        sandbox=names(),
        overrides=tuples(_given(ast.ToolOverride, op_class=names(), effect=names(), roles=roles), 0, 2),
    )


@cache
def models() -> Nodes:
    secret = st.builds(ast.Env, variable=text_nodes())
    return _given(
        ast.Model,
        endpoint=text_nodes() | secret,
        key=secret,
        id=text_nodes(),
        temperature=counts(),
        concurrency=counts(),
        timeout=durations(),
        budget=budgets(),
    )


@cache
def workflows() -> Nodes:
    node = st.builds(
        ast.WorkflowNode, name=names(), op_class=names(), inputs=tuples(names()), after=tuples(names(), 0, 2)
    )
    return _given(ast.Workflow, difficulty=names(), nodes=tuples(node), answer=names())


@cache
def syntheses() -> Nodes:
    """`split by` says both its key and its shares."""
    split = st.fixed_dictionaries({"split_by": names(), "split": shares()}) | st.just({})
    rest = st.fixed_dictionaries(
        {"name": names()},
        optional={
            "tools": names(),
            "workflows": tuples(names()),
            "any_workflow": st.booleans(),
            "count": counts(),
            "seed": counts(),
            "difficulty": shares(),
            "tasks": tuples(names(), 1),
            "annotate": names(),
        },
    )
    return st.tuples(rest, split).map(lambda parts: ast.Synthesis(**parts[0], **parts[1]))


@cache
def recipes() -> Nodes:
    hypers = tuples(st.builds(ast.Hyper, name=names(), value=numbers() | text_nodes()))
    return _given(ast.Recipe, base=text_nodes(), adapter=calls(expressions()), sft=hypers, grpo=hypers)


@cache
def declarations() -> Nodes:
    return st.one_of(
        st.builds(ast.Version, number=counts()),
        st.builds(ast.Import, path=text_nodes()),
        params(),
        sources(),
        tables(),
        st.builds(ast.Use, path=text_nodes(), function=names(), parameters=tuples(names(), 1), returns=names()),
        tools(),
        models(),
        _given(ast.SealedSet, path=tuples(text_nodes()), id=names(), text=names()),
        workflows(),
        syntheses(),
        st.builds(ast.Failure, name=names(), when=expressions()),
        strategies(),
        recipes(),
        _given(
            ast.Benchmark,
            tasks=names() | text_nodes(),
            tools=names(),
            scorer=tuples(names(), 1),
            max_turns=counts(),
            memory_top=counts(),
            agent_model=names(),
        ),
        _given(
            ast.Evolve,
            strategy=names(),
            workflows=tuples(names(), 1),
            recipe=names(),
            benchmark=names(),
            objective=expressions(),
            epochs=counts(),
            seeds=counts(),
            trials=counts(),
            propose=names(),
            scaffold=names(),
            controls=tuples(names(), 1),
            budget=budgets(),
        ),
    )


@cache
def files() -> st.SearchStrategy[ast.File]:
    return st.builds(ast.File, declarations=tuples(declarations(), 0, 4))
