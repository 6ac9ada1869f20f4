"""Hypothesis strategies for the AST: whatever they give, the language can say.

What the grammar or the tree builder rules out is left out here, each time with the reason. The strategies are
functions without arguments, cached, so that tests can build on any of them: `expressions()`, `steps()`, `files()`, …
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hypothesis import strategies as st

from curatec.dsl import ast
from curatec.dsl.nodes import Node
from tests.strategies_expr import (
    COLLECTIONS,
    LARGEST,
    QUANTIFIERS,
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
    words,
)
from tests.strategies_steps import (
    choices,
    contexts,
    from_steps,
    ranges,
    settings,
    shares,
    sinks,
    stages,
    steps,
    strategies,
    verdicts,
)

__all__ = [
    "COLLECTIONS",
    "LARGEST",
    "QUANTIFIERS",
    "Nodes",
    "budgets",
    "calls",
    "choices",
    "contexts",
    "counts",
    "declarations",
    "durations",
    "expressions",
    "files",
    "from_steps",
    "literals",
    "maybe",
    "models",
    "names",
    "numbers",
    "order_keys",
    "params",
    "percents",
    "prompts",
    "ranges",
    "recipes",
    "settings",
    "shares",
    "sinks",
    "some",
    "sources",
    "stages",
    "steps",
    "strategies",
    "syntheses",
    "tables",
    "text_nodes",
    "texts",
    "tools",
    "tuples",
    "verdicts",
    "words",
    "workflows",
]

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
    split: Nodes = st.fixed_dictionaries({"split_by": names(), "split": shares()}) | st.just({})
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
