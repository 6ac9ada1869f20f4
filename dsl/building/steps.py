"""Parse tree → AST for strategies: steps, notes, settings, sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lark import Token

from curatec.dsl import ast
from curatec.dsl.building.rules import RULES, Builder, Given, Rule, constant, label, rule
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span


@dataclass(frozen=True, slots=True)
class Part:
    """An optional piece of a statement on its way into its node: field → value."""

    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    kind: str
    text: str
    span: Span


def _fields(children: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for child in children:
        if isinstance(child, Part):
            found |= child.fields
    return found


def _part(**fields: Callable[[Builder, list[Any]], Any]) -> Rule:
    return lambda b, span, c: Part({name: make(b, c) for name, make in fields.items()})


def _count(builder: Builder, token: Token, *, percent: bool = False) -> ast.Number:
    return builder.number(token, Span(token.start_pos or 0, token.end_pos or 0), percent=percent)


# ---- optional pieces ----

RULES["near_text"] = _part(near=lambda b, c: c[0], near_threshold=lambda b, c: _count(b, c[1]))
RULES["seed"] = _part(seed=lambda b, c: b.whole(c[0]))
RULES["repair"] = _part(repair=lambda b, c: True)
RULES["where"] = _part(where=lambda b, c: c[0])
RULES["best"] = _part(best=lambda b, c: c[0])
RULES["order"] = _part(order=lambda b, c: c[0])
RULES["per"] = _part(per=lambda b, c: c[0])
RULES["mix_by"] = _part(by=lambda b, c: c[0])
RULES["mix_to"] = _part(to=lambda b, c: _count(b, c[0]))
RULES["mix_at_most"] = _part(to=lambda b, c: _count(b, c[0]), at_most=lambda b, c: True)
RULES["votes"] = _part(votes=lambda b, c: b.whole(c[0]))
RULES["ngram"] = _part(ngram=lambda b, c: b.whole(c[0]))
RULES |= {f"fail_{way}": constant(Part({"on_fail": way})) for way in ("keep", "drop", "stop")}
RULES["because"] = lambda b, span, c: Note("because", c[0].value, span)
RULES["see"] = lambda b, span, c: Note("see", c[0].value, span)

# ---- steps ----

RULES["from_step"] = lambda b, span, c: ast.From.make(sources=c[0], span=span)
RULES["join"] = lambda b, span, c: ast.Join.make(table=c[0], on=c[1], span=span)
RULES["join_required"] = lambda b, span, c: ast.Join.make(table=c[0], on=c[1], required=True, span=span)
RULES["render"] = lambda b, span, c: ast.Render.make(tokenizer=c[0], span=span)
RULES["render_template"] = lambda b, span, c: ast.Render.make(tokenizer=c[0], template=c[1], span=span)
RULES["view"] = lambda b, span, c: ast.View.make(side=c[0], span=span)
RULES["keep"] = lambda b, span, c: ast.Filter.make(verb="keep", where=c[0], span=span)
RULES["drop"] = lambda b, span, c: ast.Filter.make(verb="drop", where=c[0], span=span)
RULES["turns_keep"] = lambda b, span, c: ast.TurnsFilter.make(verb="keep", where=c[0], span=span, **_fields(c))
RULES["turns_drop"] = lambda b, span, c: ast.TurnsFilter.make(verb="drop", where=c[0], span=span, **_fields(c))
RULES["turns_set"] = lambda b, span, c: ast.TurnsSet.make(field=c[0], value=c[1], span=span, **_fields(c))
RULES["turns_cut"] = lambda b, span, c: ast.TurnsCut.make(side=c[0], pick=c[1], where=c[2], span=span, **_fields(c))
RULES["tools_keep"] = lambda b, span, c: ast.ToolsFilter.make(verb="keep", where=c[0], span=span)
RULES["tools_drop"] = lambda b, span, c: ast.ToolsFilter.make(verb="drop", where=c[0], span=span)
RULES["redact"] = lambda b, span, c: ast.Redact.make(families=c[0], scope=c[1], span=span)
RULES["dedup_exact"] = lambda b, span, c: ast.DedupExact.make(on=c[0], span=span, **_fields(c))
RULES["limit"] = lambda b, span, c: ast.Limit.make(count=_count(b, c[0]), span=span, **_fields(c))
RULES["limit_each"] = lambda b, span, c: ast.Limit.make(
    count=_count(b, c[0]), per=(c[1],), each=True, span=span, **_fields(c)
)
RULES["sample"] = lambda b, span, c: ast.Sample.make(amount=_count(b, c[0]), span=span, **_fields(c))
RULES["sample_share"] = lambda b, span, c: ast.Sample.make(
    amount=_count(b, c[0], percent=True), span=span, **_fields(c)
)
RULES["mix"] = lambda b, span, c: ast.Mix.make(shares=c[0], span=span, **_fields(c))
RULES["derive"] = lambda b, span, c: ast.Derive.make(name=c[0], value=c[1], span=span)
RULES["tag"] = lambda b, span, c: ast.Tag.make(span=span)
RULES["decompose"] = lambda b, span, c: ast.Decompose.make(at=c[0], span=span)
RULES["decontaminate"] = lambda b, span, c: ast.Decontaminate.make(against=c[0], span=span, **_fields(c))
RULES["sort"] = lambda b, span, c: ast.Sort.make(by=c[0], span=span)
RULES["expect"] = lambda b, span, c: ast.Expect.make(condition=c[0], span=span)


@rule("split")
def _split(builder: Builder, span: Span, children: list[Any]) -> ast.Split:
    shares = next(c for c in children[1:] if isinstance(c, tuple))
    return ast.Split.make(by=children[0], shares=shares, span=span, **_fields(children))


@rule("dedup_near")
def _dedup_near(builder: Builder, span: Span, children: list[Any]) -> ast.DedupNear:
    on, threshold, *rest = children
    over = next((c for c in rest if isinstance(c, tuple)), ())
    return ast.DedupNear.make(on=on, threshold=_count(builder, threshold), over=over, span=span, **_fields(rest))


@rule("augment")
def _augment(builder: Builder, span: Span, children: list[Any]) -> ast.Augment:
    call = children[0]
    if isinstance(call, ast.Quantifier):
        builder.problem("C0110", "`augment` takes a named augmentation", call.span, help="for example `recover(…)`")
        call = ast.Call.make(function=Name.make(name=call.quantifier, span=call.span), span=call.span)
    return ast.Augment.make(call=call, span=span)


@rule("verdict_bool")
def _verdict_bool(builder: Builder, span: Span, children: list[Any]) -> ast.Verdict:
    return ast.Verdict.make(name=label(children[0]), span=span)


@rule("verdict_int")
def _verdict_int(builder: Builder, span: Span, children: list[Any]) -> ast.Verdict:
    return ast.Verdict.make(name=label(children[0]), range=children[1], span=span)


@rule("verdict_choice")
def _verdict_choice(builder: Builder, span: Span, children: list[Any]) -> ast.Verdict:
    name = label(children[0]) if isinstance(children[0], Token) else children[0]
    return ast.Verdict.make(name=name, choices=children[1], span=span)


def _judge(turns: bool) -> Rule:
    return lambda b, span, c: ast.Judge.make(
        turns=turns, verdict=c[0], model=c[1], prompt=c[2], span=span, **_fields(c)
    )


RULES["judge"] = _judge(turns=False)
RULES["judge_turns"] = _judge(turns=True)
RULES["rewrite"] = lambda b, span, c: ast.Rewrite.make(field=c[0], model=c[1], prompt=c[2], span=span, **_fields(c))

# ---- settings of sinks ----

RULES["loss_except_reasoning"] = _part(except_reasoning=lambda b, c: True)
RULES["loss_only_last"] = _part(only_last=lambda b, c: True)
RULES["loss_including_edited"] = _part(including_edited=lambda b, c: True)
RULES["loss_where"] = _part(where=lambda b, c: c[0])
RULES["loss_weight"] = _part(weight=lambda b, c: c[0])
RULES["pair_within"] = _part(within=lambda b, c: c[0])
RULES["pair_from_difference"] = _part(from_difference=lambda b, c: True)
RULES["pair_chosen"] = _part(chosen=lambda b, c: c[0])
RULES["pair_rejected"] = _part(rejected=lambda b, c: c[0])
RULES["pair_margin"] = _part(margin=lambda b, c: c[0], margin_at_least=lambda b, c: c[1])
RULES["pair_max"] = _part(max_pairs=lambda b, c: _count(b, c[0]), max_per=lambda b, c: c[1])
RULES["pair_length"] = _part(length_ratio=lambda b, c: _count(b, c[0]))
RULES |= {f"overflow_{way}": constant(way) for way in ("drop", "window", "cut")}
RULES |= {f"shown_{way}": constant(way) for way in ("keep", "last", "strip")}


def _distinct(builder: Builder, span: Span, parts: list[Any], what: str) -> dict[str, Any]:
    """The fields of a setting's clauses, each at most once."""
    found: dict[str, Any] = {}
    for part in parts:
        if found.keys() & part.fields.keys():
            clause = next(iter(part.fields)).replace("_", " ")
            builder.problem("C0112", f"`{clause}` is given twice in one `{what}`", span, help="keep one of the two")
        found |= part.fields
    return found


@rule("loss")
def _loss(builder: Builder, span: Span, children: list[Any]) -> ast.Loss:
    return ast.Loss.make(on=children[0], span=span, **_distinct(builder, span, children[1:], "loss"))


@rule("pair")
def _pair(builder: Builder, span: Span, children: list[Any]) -> ast.Pair:
    return ast.Pair.make(span=span, **_distinct(builder, span, children, "pair"))


RULES["fit"] = lambda b, span, c: ast.Fit.make(tokens=_count(b, c[0]), otherwise=c[1], span=span)
RULES["sink_format"] = lambda b, span, c: ast.Format.make(name=c[0], span=span)
RULES["reasoning"] = lambda b, span, c: ast.ReasoningShown.make(shown=c[0], span=span)
RULES["prompt"] = lambda b, span, c: ast.Prompt.make(pick=c[0], role=c[1], span=span)
RULES["environment"] = lambda b, span, c: ast.EnvironmentUse.make(tools=c[0], span=span)
RULES["reward"] = lambda b, span, c: ast.Reward.make(value=c[0], span=span)
RULES["group"] = lambda b, span, c: ast.Group.make(size=_count(b, c[0]), span=span)
RULES["key"] = lambda b, span, c: ast.Key.make(value=c[0], span=span)
RULES["memory_value"] = lambda b, span, c: ast.Value.make(value=c[0], span=span)
RULES["retrieve"] = lambda b, span, c: ast.Retrieve.make(method=c[0], top=_count(b, c[1]), span=span)

_CONTEXT: dict[str, Callable[[Builder, list[Any]], tuple[str, Any]]] = {
    "context_system": lambda b, c: ("system", True),
    "context_task": lambda b, c: ("task", True),
    "context_last": lambda b, c: ("last_results", b.whole(c[0])),
    "context_calls": lambda b, c: ("all_calls", True),
    "context_elide": lambda b, c: ("elide", c[0].value),
}


def _context_item(name: str) -> Rule:
    return lambda b, span, c: Given(*_CONTEXT[name](b, c), span)


RULES |= {name: _context_item(name) for name in _CONTEXT}


@rule("context_clause")
def _context(builder: Builder, span: Span, children: list[Any]) -> ast.ContextSetting:
    context = builder.block(ast.Context.make, None, children, span)
    return ast.ContextSetting.make(context=context, span=span)


# ---- statements ----


def _with_notes(builder: Builder, node: Any, name: Name | None, notes: list[Note], span: Span) -> Any:
    reasons = [note for note in notes if note.kind == "because"]
    for extra in reasons[1:]:
        builder.problem("C0112", "`because` is given twice", extra.span, help="put both reasons into one text")
    return node.model_copy(
        update={
            "label": name,
            "because": reasons[0].text if reasons else node.because,
            "see": node.see + tuple(note.text for note in notes if note.kind == "see"),
            "span": span,
        }
    )


@rule("statement", "sink_statement", "setting")
def _statement(builder: Builder, span: Span, children: list[Any]) -> Any:
    name = label(children.pop(0)) if isinstance(children[0], Token) else None
    node, *notes = children
    return _with_notes(builder, node, name, notes, span)


def _body(builder: Builder, items: list[Any], *, sink: bool) -> tuple[Any, ...]:
    """Written order, each `context` that follows a `decompose` moved into it."""
    body: list[Any] = []
    for item in items:
        before = body[-1] if body else None
        if isinstance(item, ast.ContextSetting) and isinstance(before, ast.Decompose) and before.context is None:
            if before.because is not None and item.because is not None:
                builder.problem("C0112", "`because` is given twice", item.span, help="put both reasons into one text")
            body[-1] = before.model_copy(
                update={
                    "context": item.context,
                    "because": before.because if item.because is None else item.because,
                    "see": before.see + item.see,
                    "span": before.span.to(item.span),
                }
            )
        elif isinstance(item, ast.ContextSetting) and not sink:
            builder.problem(
                "C0114",
                "a `context` here belongs to no `decompose`",
                item.span,
                help="put it right after `decompose at …`, or into the sink",
            )
        else:
            body.append(item)
    return tuple(body)


@rule("stage")
def _stage(builder: Builder, span: Span, children: list[Any]) -> ast.Stage:
    name, base, *items = children
    return ast.Stage.make(name=name, base=base, steps=_body(builder, items, sink=False), span=span)


RULES["sink_from"] = lambda b, span, c: Part({"base": c[0]})


@rule("sink")
def _sink(builder: Builder, span: Span, children: list[Any]) -> ast.Sink:
    name, *items = children
    body = [item for item in items if not isinstance(item, Part)]
    return ast.Sink.make(name=name, body=_body(builder, body, sink=True), span=span, **_fields(items))


@rule("strategy")
def _strategy(builder: Builder, span: Span, children: list[Any]) -> ast.Strategy:
    name, *items = children
    return ast.Strategy.make(name=name, body=_body(builder, items, sink=False), span=span)
