"""Parse tree → AST for declarations."""

from __future__ import annotations

from typing import Any

from lark import Token

from curatec.dsl import ast
from curatec.dsl.building.rules import RULES, Builder, Given, Rule, label, rule
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span


def _number(builder: Builder, token: Token) -> ast.Number:
    return builder.number(token, Span(token.start_pos or 0, token.end_pos or 0))


# ---- settings whose value is the one child, a number token, or a tuple of children that may be given again ----

_TAKES_CHILD = {
    "format": "format",
    "tools_from": "tools_from",
    "system": "system",
    "system_from": "system_from",
    "domain": "domain",
    "model_name": "model",
    "error_when": "error_when",
    "success_when": "success_when",
    "license": "license",
    "key_column": "key",
    "python": "python",
    "openapi": "openapi",
    "adapter": "adapter",
    "config": "config",
    "timeout": "timeout",
    "sandbox": "sandbox",
    "tool_class": "op_class",
    "tool_effect": "effect",
    "endpoint": "endpoint",
    "model_id": "id",
    "budget_setting": "budget",
    "id_column": "id",
    "text_column": "text",
    "answer": "answer",
    "tools_name": "tools",
    "difficulty": "difficulty",
    "task_levels": "tasks",
    "annotate": "annotate",
    "base": "base",
    "tasks_from": "tasks",
    "tasks_path": "tasks",
    "scorer": "scorer",
    "agent_model": "agent_model",
    "strategy_name": "strategy",
    "evolved_workflows": "workflows",
    "recipe_name": "recipe",
    "benchmark_name": "benchmark",
    "objective": "objective",
    "propose": "propose",
    "scaffold": "scaffold",
    "controls": "controls",
}
_TAKES_NUMBER = {
    "temperature": "temperature",
    "concurrency": "concurrency",
    "usd": "usd",
    "tokens": "tokens",
    "minutes": "minutes",
    "calls": "calls",
    "count": "count",
    "max_turns": "max_turns",
    "memory_top": "memory_top",
    "epochs": "epochs",
    "seeds": "seeds",
    "trials": "trials",
}


def _child(field: str) -> Rule:
    return lambda b, span, c: Given(field, c[0], span)


def _numeric(field: str) -> Rule:
    return lambda b, span, c: Given(field, _number(b, c[0]), span)


RULES |= {name: _child(field) for name, field in _TAKES_CHILD.items()}
RULES |= {name: _numeric(field) for name, field in _TAKES_NUMBER.items()}
RULES["path"] = lambda b, span, c: Given("path", c[0], span, adds=True)
RULES["mcp"] = lambda b, span, c: Given("mcp", c[0], span, adds=True)
RULES["columns"] = lambda b, span, c: Given("columns", tuple(c), span, adds=True)
RULES["domain_from_path"] = lambda b, span, c: Given("domain", ast.FromPath.make(pattern=c[0], span=span), span)
RULES["model_from_path"] = lambda b, span, c: Given("model", ast.FromPath.make(pattern=c[0], span=span), span)
RULES["endpoint_env"] = lambda b, span, c: Given("endpoint", ast.Env.make(variable=c[0], span=span), span)
RULES["key_env"] = lambda b, span, c: Given("key", ast.Env.make(variable=c[0], span=span), span)
RULES["memory_limit"] = lambda b, span, c: Given(
    "memory", ast.Size.make(amount=_number(b, c[0]), unit=c[1], span=span), span
)
RULES["tool_role"] = lambda b, span, c: Given(
    "roles", (ast.RoleOverride.make(parameter=c[0], role=c[1], span=span),), span, adds=True
)
RULES["tool_override"] = lambda b, span, c: Given(
    "overrides", (b.block(ast.ToolOverride.make, c[0], c[1:], span),), span, adds=True
)
RULES["split_by"] = lambda b, span, c: Given("split_by", c, span)
RULES["synthesis_seed"] = lambda b, span, c: Given("seed", _number(b, c[0]), span)
RULES["recipe_sft"] = lambda b, span, c: Given("sft", tuple(c), span)
RULES["recipe_grpo"] = lambda b, span, c: Given("grpo", tuple(c), span)
RULES["budget"] = lambda b, span, c: b.block(ast.Budget.make, None, c, span)
RULES["agent"] = lambda b, span, c: c


@rule("column")
def _column(builder: Builder, span: Span, children: list[Any]) -> ast.Column:
    return ast.Column.make(name=label(children[0]), type=children[1], span=span)


@rule("hyper")
def _hyper(builder: Builder, span: Span, children: list[Any]) -> ast.Hyper:
    return ast.Hyper.make(name=children[0], value=children[1], span=span)


RULES["hyper_text"] = lambda b, span, c: ast.Text.make(value=b.text(c[0]), span=span)


# ---- declarations ----

RULES["version"] = lambda b, span, c: ast.Version.make(number=_number(b, c[0]), span=span)
RULES["import_file"] = lambda b, span, c: ast.Import.make(path=c[0], span=span)
RULES["param_range"] = lambda b, span, c: ast.Param.make(name=c[0], value=c[1], range=c[2], span=span)
RULES["param_choices"] = lambda b, span, c: ast.Param.make(name=c[0], value=c[1], choices=c[2], span=span)
RULES["failure"] = lambda b, span, c: ast.Failure.make(name=c[0], when=c[1], span=span)
RULES["use"] = lambda b, span, c: ast.Use.make(path=c[0], function=c[1], parameters=c[2], returns=c[3], span=span)


def _block(node: Any) -> Rule:
    return lambda b, span, c: b.block(node, c[0], c[1:], span)


RULES["source"] = _block(ast.Source.make)
RULES["table"] = _block(ast.Table.make)
RULES["tools"] = _block(ast.Tools.make)
RULES["model"] = _block(ast.Model.make)
RULES["test_set"] = _block(ast.SealedSet.make)


@rule("recipe")
def _recipe(builder: Builder, span: Span, children: list[Any]) -> Any:
    """`adapter full` and `adapter lora(r: 16)` are one thing: a call with or without arguments."""
    settings = [
        Given("adapter", ast.Call.make(function=s.value, span=s.span), s.span)
        if s.field == "adapter" and isinstance(s.value, Name)
        else s
        for s in children[1:]
        if not (s.field == "adapter" and isinstance(s.value, ast.Quantifier))
    ]
    return builder.block(ast.Recipe.make, children[0], settings, span)


@rule("adapter_call")
def _adapter_call(builder: Builder, span: Span, children: list[Any]) -> Given:
    if isinstance(children[0], ast.Quantifier):
        builder.problem("C0110", "an adapter is a kind with options", span, help="for example `adapter lora(r: 16)`")
    return Given("adapter", children[0], span)


@rule("benchmark")
def _benchmark(builder: Builder, span: Span, children: list[Any]) -> Any:
    flat: list[Any] = []
    for child in children[1:]:
        flat.extend(child if isinstance(child, list) else [child])
    return builder.block(ast.Benchmark.make, children[0], flat, span)


RULES["evolve"] = _block(ast.Evolve.make)


@rule("workflows")
def _workflows(builder: Builder, span: Span, children: list[Any]) -> list[Given]:
    named = tuple(child for child in children if isinstance(child, Name))
    given = [Given("workflows", named, span)]
    return [*given, Given("any_workflow", True, span)] if len(named) < len(children) else given


RULES["workflow_ref"] = lambda b, span, c: c[0]
RULES["any_workflow"] = lambda b, span, c: "*"


@rule("synthesis")
def _synthesis(builder: Builder, span: Span, children: list[Any]) -> Any:
    flat: list[Given] = []
    for child in children[1:]:
        if isinstance(child, list):
            flat.extend(child)
        elif child.field == "split_by":
            flat += [Given("split_by", child.value[0], child.span), Given("split", child.value[1], child.span)]
        else:
            flat.append(child)
    return builder.block(ast.Synthesis.make, children[0], flat, span)


RULES["feeds"] = lambda b, span, c: Given("inputs", c[0], span)
RULES["gates"] = lambda b, span, c: Given("after", c[0], span)


@rule("node")
def _node(builder: Builder, span: Span, children: list[Any]) -> Any:
    name, op_class, *rest = children
    return builder.block(lambda **fields: ast.WorkflowNode.make(op_class=op_class, **fields), label(name), rest, span)


@rule("workflow")
def _workflow(builder: Builder, span: Span, children: list[Any]) -> Any:
    first, *items = children
    difficulty = items.pop(0) if isinstance(first, Token) else None
    name = label(first) if isinstance(first, Token) else first
    given = [
        Given("nodes", (item,), item.span, adds=True) if isinstance(item, ast.WorkflowNode) else item for item in items
    ]
    return builder.block(lambda **fields: ast.Workflow.make(difficulty=difficulty, **fields), name, given, span)
