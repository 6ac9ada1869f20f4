"""Declarations → text: settings in the order of their fields, those that are not given left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from curatec.dsl import ast
from curatec.dsl.nodes import Name, Node
from curatec.dsl.printing.expr import call, expr, literal
from curatec.dsl.printing.literals import label, name, names, number, pattern, prompt, string, strings
from curatec.dsl.printing.steps import body_item, braces, domain, shares

INDENT = 2  # of the settings of a declaration

# Class → field → the text of a setting by its value. A form may say nothing, when another field speaks for both.
_SETTINGS: dict[type[Node], dict[str, Callable[[Any], str]]] = {
    ast.Source: {
        "path": lambda v: f"path {strings(v)}",
        "format": lambda v: f"format {name(v)}",
        "tools_from": lambda v: f"tools from {string(v.value)}",
        "system": lambda v: f"system {prompt(v.value, INDENT)}",
        "system_from": lambda v: f"system from {string(v.value)}",
        "domain": lambda v: f"domain {_from_path(v)}",
        "model": lambda v: f"model {_from_path(v)}",
        "error_when": lambda v: f"error when {expr(v)}",
        "success_when": lambda v: f"success when {expr(v)}",
        "license": lambda v: f"license {string(v.value)}",
    },
    ast.Table: {
        "path": lambda v: f"path {strings(v)}",
        "key": lambda v: f"key {name(v)}",
        "columns": lambda v: "columns { " + ", ".join(f"{label(c.name)} {name(c.type)}" for c in v) + " }",
    },
    ast.Tools: {
        "python": lambda v: f"python {string(v.value)}",
        "mcp": lambda v: f"mcp {strings(v)}",
        "openapi": lambda v: f"openapi {string(v.value)}",
        "adapter": lambda v: f"adapter {name(v)}",
        "config": lambda v: f"config {string(v.value)}",
        "timeout": lambda v: f"timeout {_duration(v)}",
        "memory": lambda v: f"memory {number(v.amount)} {v.unit}",
        "sandbox": lambda v: f"sandbox {name(v)}",
        "overrides": lambda v: "\n".join(_one_line(f"tool {name(tool.name)}", tool) for tool in v),
    },
    ast.ToolOverride: {
        "op_class": lambda v: f"class {name(v)}",
        "effect": lambda v: f"effect {name(v)}",
        "roles": lambda v: " ".join(f"role {name(role.parameter)} = {name(role.role)}" for role in v),
    },
    ast.Model: {
        "endpoint": lambda v: f"endpoint {_secret(v)}",
        "key": lambda v: f"key {_secret(v)}",
        "id": lambda v: f"name {string(v.value)}",
        "temperature": lambda v: f"temperature {number(v)}",
        "concurrency": lambda v: f"concurrency {number(v)}",
        "timeout": lambda v: f"timeout {_duration(v)}",
        "budget": lambda v: _one_line("budget", v),
    },
    ast.Budget: {
        "usd": lambda v: f"usd {number(v)}",
        "tokens": lambda v: f"tokens {number(v)}",
        "minutes": lambda v: f"minutes {number(v)}",
        "calls": lambda v: f"calls {number(v)}",
    },
    ast.SealedSet: {
        "path": lambda v: f"path {strings(v)}",
        "id": lambda v: f"id {name(v)}",
        "text": lambda v: f"text {name(v)}",
    },
    ast.Workflow: {
        "nodes": lambda v: "\n".join(_workflow_node(node) for node in v),
        "answer": lambda v: f"answer {name(v)}",
    },
    ast.Synthesis: {
        "tools": lambda v: f"tools {name(v)}",
        "count": lambda v: f"count {number(v)}",
        "seed": lambda v: f"seed {number(v)}",
        "difficulty": lambda v: f"difficulty {shares(v)}",
        "tasks": lambda v: f"tasks {names(v)}",
        "annotate": lambda v: f"annotate with {name(v)}",
    },
    ast.Recipe: {
        "base": lambda v: f"base {string(v.value)}",
        "adapter": lambda v: f"adapter {call(v) if v.arguments or v.over is not None else name(v.function)}",
        "sft": lambda v: f"sft {{ {' '.join(map(_hyper, v))} }}",
        "grpo": lambda v: f"grpo {{ {' '.join(map(_hyper, v))} }}",
    },
    ast.Benchmark: {
        "tasks": lambda v: f"tasks from {name(v) if isinstance(v, Name) else string(v.value)}",
        "tools": lambda v: f"tools {name(v)}",
        "scorer": lambda v: f"scorer {names(v)}",
    },
    ast.Evolve: {
        "strategy": lambda v: f"strategy {name(v)}",
        "workflows": lambda v: f"workflows {names(v)}",
        "recipe": lambda v: f"recipe {name(v)}",
        "benchmark": lambda v: f"benchmark {name(v)}",
        "objective": lambda v: f"objective {expr(v)}",
        "epochs": lambda v: f"epochs {number(v)}",
        "seeds": lambda v: f"seeds {number(v)}",
        "trials": lambda v: f"trials {number(v)}",
        "propose": lambda v: f"propose with {name(v)}",
        "scaffold": lambda v: f"scaffold {name(v)}",
        "controls": lambda v: f"controls {names(v)}",
        "budget": lambda v: _one_line("budget", v),
    },
}
_KEYWORDS: dict[type[Node], str] = {
    ast.Source: "source",
    ast.Table: "table",
    ast.Tools: "tools",
    ast.Model: "model",
    ast.SealedSet: "test set",
    ast.Synthesis: "synthesis",
    ast.Recipe: "recipe",
    ast.Benchmark: "benchmark",
    ast.Evolve: "evolve",
}


def declaration(node: Node) -> str:
    match node:
        case ast.Version():
            return f"curate {number(node.number)}"
        case ast.Import():
            return f"import {string(node.path.value)}"
        case ast.Param():
            return f"param {name(node.name)} = {literal(node.value)}{domain(node.range, node.choices)}"
        case ast.Use():
            head = f"use {string(node.path.value)}: {name(node.function)}"
            return f"{head}({names(node.parameters)}) -> {name(node.returns)}"
        case ast.Failure():
            return braces(f"failure {name(node.name)}", [f"when {expr(node.when)}"])
        case ast.Workflow():
            head = name(node.name) if node.difficulty is None else f"{label(node.name)} {name(node.difficulty)}"
            return braces(f"workflow {head}", list(_settings(node)))
        case ast.Strategy():
            return _strategy(node)
        case _ if type(node) in _KEYWORDS:
            return braces(f"{_KEYWORDS[type(node)]} {name(getattr(node, 'name'))}", list(_settings(node)))  # noqa: B009
        case _:
            raise TypeError(f"no declaration: {type(node).__name__}")


def _settings(node: Node) -> Iterator[str]:
    own, joint = _SETTINGS[type(node)], _JOINT.get(type(node), {})
    for field in type(node).model_fields:
        if field in joint:
            text = joint[field](node)
        else:
            value = getattr(node, field)
            text = own[field](value) if field in own and value not in (None, ()) else ""
        if text:
            yield text


def _one_line(head: str, node: Node) -> str:
    return f"{head} {{ {' '.join(_settings(node))} }}"


def _strategy(node: ast.Strategy) -> str:
    """Branches and sinks stand apart from the steps before and after them."""
    lines = [f"strategy {name(node.name)} {{"]
    before: Node | None = None
    for item in node.body:
        apart = isinstance(item, ast.Stage | ast.Sink) or isinstance(before, ast.Stage | ast.Sink)
        if apart and before is not None:
            lines.append("")
        lines.append(body_item(item, INDENT))
        before = item
    return "\n".join([*lines, "}"])


# ---- settings of more than one word ----


def _from_path(value: ast.Text | ast.FromPath) -> str:
    return string(value.value) if isinstance(value, ast.Text) else f"from path {pattern(value.pattern.value)}"


def _secret(value: ast.Text | ast.Env) -> str:
    return string(value.value) if isinstance(value, ast.Text) else f"env({string(value.variable.value)})"


def _duration(value: ast.Duration) -> str:
    return number(value.amount) + value.unit


def _hyper(node: ast.Hyper) -> str:
    if isinstance(node.value, ast.Text):
        return f"{name(node.name)} {string(node.value.value)}"
    # The grammar has a rule of its own for this one.
    return f"{'group' if node.name.name == 'group' else name(node.name)} {number(node.value)}"


def _workflow_node(node: ast.WorkflowNode) -> str:
    inputs = f" from {names(node.inputs)}" if node.inputs else ""
    after = f" after {names(node.after)}" if node.after else ""
    return f"{label(node.name)} {name(node.op_class)}{inputs}{after}"


def _workflows(node: ast.Synthesis) -> str:
    refs = [name(workflow) for workflow in node.workflows] + ["*"] * node.any_workflow
    return f"workflows {', '.join(refs)}" if refs else ""


def _synthesis_split(node: ast.Synthesis) -> str:
    return f"split by {name(node.split_by)} {shares(node.split)}" if node.split_by is not None else ""


def _agent(node: ast.Benchmark) -> str:
    items = [
        f"max_turns {number(node.max_turns)}" if node.max_turns is not None else "",
        f"memory top {number(node.memory_top)}" if node.memory_top is not None else "",
        f"model {name(node.agent_model)}" if node.agent_model is not None else "",
    ]
    said = " ".join(item for item in items if item)
    return f"agent {{ {said} }}" if said else ""


# What one setting says of several fields, by the first of them.
_JOINT: dict[type[Node], dict[str, Callable[[Any], str]]] = {
    ast.Synthesis: {"workflows": _workflows, "split_by": _synthesis_split},
    ast.Benchmark: {"max_turns": _agent},
}
