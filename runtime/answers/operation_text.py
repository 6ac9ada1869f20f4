"""Operations of a plan in words, as a spec would write them, with parameters replaced by their values."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import Any

from curatec.compiler import plan
from curatec.compiler.types import Level
from curatec.runtime.answers.core_text import core_text, list_text, order_text


@singledispatch
def says(operation: Any) -> str:
    """An operation as source-like text."""
    raise AssertionError(operation)


@says.register
def _(o: plan.Filter) -> str:
    return f"{o.verb} where {core_text(o.where)}"


@says.register
def _(o: plan.TurnsFilter) -> str:
    return f"turns {o.verb} where {core_text(o.where, Level.TURN)}" + (" repair" if o.repair else "")


@says.register
def _(o: plan.TurnsSet) -> str:
    where = f" where {core_text(o.where, Level.TURN)}" if o.where is not None else ""
    return f"turns set {o.field} = {core_text(o.value, Level.TURN)}{where}"


@says.register
def _(o: plan.ToolsFilter) -> str:
    return f"tools {o.verb} where {core_text(o.where, Level.TOOL)}"


@says.register
def _(o: plan.Dedup) -> str:
    return f"dedup exact on {list_text(o.on)}" + (f" best by {order_text(o.best)}" if o.best else "")


@says.register
def _(o: plan.Limit) -> str:
    per = f" per {list_text(o.per)}" if o.per else ""
    return f"limit {o.count}{per}" + (f" order by {order_text(o.order)}" if o.order else "")


@says.register
def _(o: plan.Sample) -> str:
    much = f"{100 * o.share:g}%" if o.share is not None else str(o.count)
    return f"sample {much}" + (f" per {list_text(o.per)}" if o.per else "") + f" seed {o.seed}"


@says.register
def _(o: plan.Derive) -> str:
    return f"derive {o.name} = {core_text(o.value)}"


@says.register
def _(o: plan.Tag) -> str:
    return "tag failure: " + "; ".join(f"{name} when {core_text(where)}" for name, where in o.families)


@says.register
def _(o: plan.Sort) -> str:
    return f"sort by {order_text(o.by)}"


@says.register
def _(o: plan.Split) -> str:
    shares = " ".join(f"{name} {100 * share:g}%" for name, share in o.shares)
    near = f" near {core_text(o.near)} {o.near_threshold}" if o.near is not None else ""
    return f"split by {core_text(o.by)}{near} {{ {shares} }} seed {o.seed}"


@says.register
def _(o: plan.Join) -> str:
    return f"join {o.table} on {core_text(o.on)}" + (" required" if o.required else "")


@says.register
def _(o: plan.Decontaminate) -> str:
    return f"decontaminate against {o.against} ngram {o.ngram}"


@says.register
def _(o: plan.DedupNear) -> str:
    over = f" over ({list_text(o.over)})" if o.over else ""
    return f"dedup near on {core_text(o.on)} threshold {o.threshold:g}{over} best by {order_text(o.best)}"


@says.register
def _(o: plan.LimitEach) -> str:
    order = f" order by {order_text(o.order)}" if o.order else ""
    return f"limit {o.count} per each {core_text(o.each)}{order}"


@says.register
def _(o: plan.Mix) -> str:
    shares = " ".join(f"{name} {100 * share:g}%" for name, share in o.shares)
    by = " by trained_tokens" if o.target is not None else ""
    to = f" to {'at most ' if o.at_most else ''}{o.to}" if o.to is not None else ""
    return f"mix {{ {shares} }}{by}{to}"


@says.register
def _(o: plan.Render) -> str:
    return f"render {_text(o.tokenizer)}" + (f" template {_text(o.template)}" if o.template is not None else "")


@says.register
def _(o: plan.View) -> str:
    return f"view {o.side}"


@says.register
def _(o: plan.Redact) -> str:
    return f"redact {', '.join(o.families)} in {o.scope}"


@says.register
def _(o: plan.TurnsCut) -> str:
    where = core_text(o.where, Level.TURN)
    return f"turns cut {o.side} {o.pick} where {where}" + (" repair" if o.repair else "")


@says.register
def _(o: plan.Decompose) -> str:
    context = f" context {{ {context_text(o.context)} }}" if o.context is not None else ""
    return f"decompose at {core_text(o.at, Level.TURN)}{context}"


def context_text(context: plan.Context) -> str:
    """What a context shows, as its items."""
    items = ["system"] if context.system else []
    items.append("task")
    items += [f"last {context.results} results"] if context.results else []
    items += [f"elide {_text(context.elide)}"] if context.elide is not None else []
    return ", ".join(items)


@says.register
def _(o: plan.Distractors) -> str:
    return f"augment distractors(n: {o.n}, pool: {o.pool}, copies: {o.copies})"


@says.register
def _(o: plan.Rebind) -> str:
    return f"augment rebind(entities: [{', '.join(map(_text, o.entities))}], copies: {o.copies})"


@says.register
def _(o: plan.Recover) -> str:
    return f"augment recover(max_gap: {o.max_gap})"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
