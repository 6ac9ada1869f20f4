"""Messages for braces, brackets and parentheses that do not pair."""

from __future__ import annotations

from lark import Token

from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.parsing.failure import Failure, Told, shown, shown_span, span_of
from curatec.dsl.parsing.machine import Open
from curatec.dsl.parsing.words import PLACE_NAMES
from curatec.dsl.source import Source, Span

_CLOSING = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}


def explain(f: Failure) -> Told | None:
    """A closing sign without its opening one, or a statement that ends with a bracket open."""
    kind = f.token.type
    bracket = f.bracket
    if kind in ("RPAR", "RSQB") and (bracket is None or bracket.closing != kind):
        if bracket is None or all(o.closing != kind for o in f.opens):
            return Told(_nothing_open(f.token), ())
        return Told(_never_closed(bracket, f))
    if bracket is None:
        return None
    ends = f.first and (kind == "LABEL" or str(f.token) in f.grammar.starter_words[""])
    if kind == "$END" or (kind == "RBRACE" and bracket.closing != kind) or (ends and f.takes(bracket.closing)):
        return Told(_never_closed(bracket, f))
    return None


def _nothing_open(token: Token) -> Diagnostic:
    opening = {")": "(", "]": "[", "}": "{"}[str(token)]
    return Diagnostic(
        "C0106",
        f"this `{token}` closes nothing",
        span_of(token),
        f"no `{opening}` is open here",
        (f"delete it, or put the `{opening}` where it belongs",),
    )


def _never_closed(block: Open, f: Failure) -> Diagnostic:
    sign = _CLOSING[block.closing]
    if f.token.type == "$END":
        seen = "the file ends"
    else:
        row, _ = f.source.position(f.span.start)
        same = row == f.source.position(block.token.start_pos or 0)[0]
        seen = f"`{shown(f.token)}` comes first" if same else f"`{shown(f.token)}` in line {row} comes first"
    return Diagnostic(
        "C0106",
        f"this `{block.token}` is never closed",
        span_of(block.token),
        seen,
        (f"add the `{sign}`",),
    )


def _head(block: Open, source: Source) -> str:
    """`emit sft`: what stands before the brace."""
    text = shown_span(source, Span(block.head.start_pos or 0, block.token.start_pos or 0))
    return text if len(text) <= 40 else text[:39] + "…"


def unclosed(block: Open, f: Failure) -> Diagnostic:
    """A block that is still open where the file ends, or where a line fits only outside of it."""
    name = PLACE_NAMES.get(block.place or "", "it")
    head = _head(block, f.source)
    if f.token.type == "$END":
        return Diagnostic(
            "C0106",
            "this `{` is never closed",
            span_of(block.token),
            f"the file ends inside {name}",
            (f"add the `}}` that ends `{head}`",),
        )
    row, _ = f.source.position(f.span.start)
    return Diagnostic(
        "C0106",
        "this `{` is never closed",
        span_of(block.token),
        f"`{shown(f.token)}` in line {row} cannot stand inside {name}",
        (f"add a `}}` before line {row}",),
    )


def closes_nothing(f: Failure, early: Token | None) -> Diagnostic:
    """One `}` too many at the top level; `early` is an earlier one that looks wrong."""
    if early is None:
        return _nothing_open(f.token)
    row, _ = f.source.position(f.span.start)
    return Diagnostic(
        "C0106",
        "one `}` too many",
        span_of(early),
        "ends the whole declaration, deeper on the page than its first line",
        (f"delete it, if the `}}` in line {row} is the last one",),
    )


def goes_on(f: Failure, block: Open, brace: Token, early: Token | None) -> Diagnostic:
    """The text goes on as if the last declaration had not ended."""
    head = f"`{_head(block, f.source)}`"
    row, _ = f.source.position(brace.start_pos or 0)
    if early is not None:
        at, _ = f.source.position(f.span.start)
        return Diagnostic(
            "C0106",
            f"this `}}` ends {head} too early",
            span_of(early),
            f"line {at} goes on with `{shown(f.token)}`",
            ("delete it, or add the `{` that it was meant for",),
        )
    return Diagnostic(
        "C0108",
        f"`{shown(f.token)}` stands outside of {PLACE_NAMES[block.place or 'file']}",
        f.span,
        f"{head} ended in line {row}",
        (f"move the `}}` of line {row} behind it",),
    )
