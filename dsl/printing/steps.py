"""Statements of a strategy → text: label, verb, clauses, notes. The clauses stand in the grammar's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from curatec.dsl import ast
from curatec.dsl.nodes import Node
from curatec.dsl.printing.expr import SUM, call, choices, expr, exprs, order_keys
from curatec.dsl.printing.literals import label, name, names, number, prompt, string


def statement(node: ast.Statement, indent: int) -> str:
    """`indent` is where a long string's last line stands."""
    head = f"{label(node.label)} " if node.label is not None else ""
    because = f" because {string(node.because)}" if node.because is not None else ""
    see = "".join(f" see {string(text)}" for text in node.see)
    return head + _said(node, indent) + because + see


def _said(node: ast.Statement, indent: int) -> str:
    match node:
        case ast.Judge():
            return _judge(node, indent)
        case ast.Rewrite():
            return _rewrite(node, indent)
        case _:
            return _FORMS[type(node)](node)


def body_item(node: Node, indent: int) -> str:
    match node:
        case ast.Stage():
            return block(f"stage {name(node.name)} from {name(node.base)}", node.steps, indent)
        case ast.Sink():
            base = f" from {name(node.base)}" if node.base is not None else ""
            return block(f"emit {name(node.name)}{base}", node.body, indent)
        case ast.Statement():
            return statement(node, indent)
        case _:
            raise TypeError(f"no statement: {type(node).__name__}")


def block(head: str, body: Iterable[Node], indent: int) -> str:
    """One statement stands on the line of its braces; the layout breaks it where it does not fit."""
    return braces(head, [body_item(node, indent + 2) for node in body])


def braces(head: str, items: list[str]) -> str:
    if len(items) < 2:
        return f"{head} {{ {' '.join(items)} }}"
    return "\n".join([f"{head} {{", *items, "}"])


def shares(values: Iterable[ast.Share]) -> str:
    return "{ " + " ".join(f"{name(share.name)} {number(share.percent)}" for share in values) + " }"


def span_of(node: ast.Range) -> str:
    return f"{number(node.low)} .. {number(node.high)}"


def domain(range_: ast.Range | None, values: ast.Choices | None) -> str:
    """What a value may be: ` in 1 .. 5`, ` in {a, b}`, or nothing said."""
    if range_ is not None:
        return f" in {span_of(range_)}"
    return f" in {choices(values.values)}" if values is not None else ""


def context(node: ast.Context) -> str:
    items = [
        "system" if node.system else "",
        "task" if node.task else "",
        f"last {node.last_results} results" if node.last_results is not None else "",
        "all calls" if node.all_calls else "",
        f"elide {string(node.elide)}" if node.elide is not None else "",
    ]
    return "context { " + ", ".join(item for item in items if item) + " }"


# ---- clauses: with a blank before them, or nothing ----


def _clause(word: str, nodes: tuple[Node, ...]) -> str:
    return f" {word} {exprs(nodes)}" if nodes else ""


def _keys(words: str, keys: tuple[ast.OrderKey, ...]) -> str:
    return f" {words} {order_keys(keys)}" if keys else ""


def _where(node: Node | None, word: str = "where") -> str:
    return f" {word} {expr(node)}" if node is not None else ""


def _seed(seed: int) -> str:
    return f" seed {seed}" if seed else ""


def _on_fail(way: str) -> str:
    return f" on fail {way}" if way != "keep" else ""


def _when(said: bool, words: str) -> str:
    return f" {words}" if said else ""


# ---- steps ----


def _split(node: ast.Split) -> str:
    near = ""
    if node.near is not None and node.near_threshold is not None:
        near = f" near {name(node.near)} {number(node.near_threshold)}"
    return f"split by {expr(node.by)}{near} {shares(node.shares)}{_seed(node.seed)}"


def _limit(node: ast.Limit) -> str:
    per = f" per each {expr(node.per[0])}" if node.each else _clause("per", node.per)
    return f"limit {number(node.count)}{per}{_keys('order by', node.order)}"


def _mix(node: ast.Mix) -> str:
    by = f" by {name(node.by)}" if node.by is not None else ""
    to = f" to {'at most ' if node.at_most else ''}{number(node.to)}" if node.to is not None else ""
    return f"mix {shares(node.shares)}{by}{to}"


def _dedup_near(node: ast.DedupNear) -> str:
    over = f" over ({exprs(node.over)})" if node.over else ""
    head = f"dedup near on {expr(node.on)} threshold {number(node.threshold)}"
    return head + over + _keys("best by", node.best)


def _judge(node: ast.Judge, indent: int) -> str:
    verdict = node.verdict
    if verdict.choices is not None:
        asked = name(verdict.name)
    else:
        asked = f"{label(verdict.name)} {'int' if verdict.range is not None else 'bool'}"
    asked += domain(verdict.range, verdict.choices)
    votes = f" votes {node.votes}" if node.votes != 1 else ""
    head = f"judge {'turns ' if node.turns else ''}{asked} using {name(node.model)}"
    return f"{head} {prompt(node.prompt.value, indent)}{votes}{_on_fail(node.on_fail)}"


def _rewrite(node: ast.Rewrite, indent: int) -> str:
    head = f"rewrite {name(node.field)} using {name(node.model)} {prompt(node.prompt.value, indent)}"
    return head + _where(node.where) + _on_fail(node.on_fail)


# ---- settings of sinks ----


def _loss(node: ast.Loss) -> str:
    return (
        f"loss on {name(node.on)}"
        + _when(node.except_reasoning, "except reasoning")
        + _when(node.only_last, "only last")
        + _when(node.including_edited, "including edited")
        + _where(node.where)
        + _where(node.weight, "weight")
    )


def _fit(node: ast.Fit) -> str:
    otherwise = "cut oldest exchange" if node.otherwise == "cut" else node.otherwise
    return f"fit {number(node.tokens)} tokens else {otherwise}"


def _pair(node: ast.Pair) -> str:
    margin = most = ratio = ""
    if node.margin is not None and node.margin_at_least is not None:
        margin = f" margin {expr(node.margin, SUM)} >= {number(node.margin_at_least)}"
    if node.max_pairs is not None:
        most = f" max {number(node.max_pairs)} per {exprs(node.max_per)}"
    if node.length_ratio is not None:
        ratio = f" length ratio <= {number(node.length_ratio)}"
    return (
        "pair"
        + _clause("within", node.within)
        + _when(node.from_difference, "from first difference")
        + _where(node.chosen, "chosen where")
        + _where(node.rejected, "rejected where")
        + margin
        + most
        + ratio
    )


_FORMS: dict[type[Node], Callable[[Any], str]] = {
    ast.From: lambda n: f"from {names(n.sources)}",
    ast.Join: lambda n: f"join {name(n.table)} on {expr(n.on)}{_when(n.required, 'required')}",
    ast.Split: _split,
    ast.Render: lambda n: (
        f"render {string(n.tokenizer.value)}" + (f" template {string(n.template.value)}" if n.template else "")
    ),
    ast.View: lambda n: f"view {name(n.side)}",
    ast.Filter: lambda n: f"{n.verb} where {expr(n.where)}",
    ast.TurnsFilter: lambda n: f"turns {n.verb} where {expr(n.where)}{_when(n.repair, 'repair')}",
    ast.TurnsSet: lambda n: f"turns set {name(n.field)} = {expr(n.value)}{_where(n.where)}",
    ast.TurnsCut: lambda n: f"turns cut {n.side} {n.pick} where {expr(n.where)}{_when(n.repair, 'repair')}",
    ast.ToolsFilter: lambda n: f"tools {n.verb} where {expr(n.where)}",
    ast.Redact: lambda n: f"redact {names(n.families)} in {name(n.scope)}",
    ast.DedupExact: lambda n: f"dedup exact on {exprs(n.on)}{_keys('best by', n.best)}",
    ast.DedupNear: _dedup_near,
    ast.Limit: _limit,
    ast.Sample: lambda n: f"sample {number(n.amount)}{_clause('per', n.per)}{_seed(n.seed)}",
    ast.Mix: _mix,
    ast.Derive: lambda n: f"derive {name(n.name)} = {expr(n.value)}",
    ast.Tag: lambda _: "tag failure",
    ast.Decompose: lambda n: f"decompose at {expr(n.at)}" + (f" {context(n.context)}" if n.context else ""),
    ast.Augment: lambda n: f"augment {call(n.call)}",
    ast.Decontaminate: lambda n: (
        f"decontaminate against {name(n.against)}" + (f" ngram {n.ngram}" if n.ngram is not None else "")
    ),
    ast.Sort: lambda n: f"sort by {order_keys(n.by)}",
    ast.Expect: lambda n: f"expect {expr(n.condition)}",
    ast.Loss: _loss,
    ast.Fit: _fit,
    ast.ReasoningShown: lambda n: f"reasoning {n.shown}",
    ast.ContextSetting: lambda n: context(n.context),
    ast.Format: lambda n: f"format {name(n.name)}",
    ast.Prompt: lambda n: f"prompt until {n.pick} {name(n.role)}",
    ast.EnvironmentUse: lambda n: f"environment {name(n.tools)}",
    ast.Reward: lambda n: f"reward {expr(n.value)}",
    ast.Group: lambda n: f"group {number(n.size)}",
    ast.Key: lambda n: f"key {expr(n.value)}",
    ast.Value: lambda n: f"value {expr(n.value)}",
    ast.Retrieve: lambda n: f"retrieve {name(n.method)} top {number(n.top)}",
    ast.Pair: _pair,
}
