"""What statements are called: their text in one line, a stable name, and the place of their verb."""

from __future__ import annotations

import re

from curatec.dsl import ast
from curatec.dsl.nodes import NOWHERE, Node
from curatec.dsl.printing.printer import print_node
from curatec.dsl.source import Source, Span

_AFTER_LABEL = re.compile(r"`?\s*:(?:\s|#[^\n]*)*")
_VERB = re.compile(r"(?:turns|tools|dedup|tag)\s+[a-z]+|[a-z]+")


def verb(statement: ast.Statement, source: Source) -> Span:
    """Where the verb of a statement stands: what messages about the whole of it point at."""
    if statement.span == NOWHERE:
        return statement.span
    start = statement.span.start
    if statement.label is not None:
        colon = _AFTER_LABEL.match(source.text, statement.label.span.end)
        start = colon.end() if colon else start
    word = _VERB.match(source.text, start)
    return Span(start, word.end()) if word else statement.span


def statement_text(statement: ast.Statement) -> str:
    """The statement in one line, without label, reason and reference."""
    bare = statement.model_copy(update={"label": None, "because": None, "see": ()})
    return " ".join(print_node(bare).split())


def stable_name(statement: ast.Statement) -> str:
    """A name for a step without a label: verb and the names it reads, so that a new threshold keeps it."""
    kind = str(getattr(statement, "kind", "step"))
    shown = {"turns_filter": "turns_{}", "filter": "{}", "tools_filter": "tools_{}"}.get(kind, kind)
    read: list[str] = []
    for node in statement.walk():
        word = _word(node)
        if word and word not in read:
            read.append(word)
    return "_".join([shown.format(getattr(statement, "verb", "")), *read[:3]])


def _word(node: Node) -> str | None:
    match node:
        case ast.Reference(name=name):
            return name
        case ast.Quantifier(quantifier=quantifier):
            return quantifier
        case ast.Attribute(name=name):
            return name.name
    return None
