"""Parser failures → messages."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.failure import Failure
from curatec.dsl.machine import MAX_DEPTH, Open
from curatec.dsl.source import Span


@dataclass(frozen=True, slots=True)
class Told:
    """A message, and what to read instead of or before the bad token where its meaning is plain."""

    problem: Diagnostic
    instead: tuple[tuple[str, str], ...] | None = None
    before: tuple[tuple[str, str], ...] | None = None


def span_of(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def explain(failure: Failure) -> Told:
    shown = "the end of the file" if failure.token.type == "$END" else f"`{failure.token}`"
    return Told(Diagnostic("C0101", f"unexpected {shown}", failure.span))


def too_many(count: int, span: Span) -> Diagnostic:
    return Diagnostic("C0116", f"more than {count} errors; the rest of the file was not read", span, severity="note")


def too_deep(token: Token) -> Diagnostic:
    return Diagnostic("C0115", f"an expression nests deeper than {MAX_DEPTH} levels", span_of(token))


def unclosed(block: Open, failure: Failure) -> Diagnostic:
    return Diagnostic("C0106", "this `{` is never closed", span_of(block.token))


def closes_nothing(failure: Failure, early: Token | None) -> Diagnostic:
    return Diagnostic("C0106", "this `}` closes nothing", span_of(early or failure.token))


def goes_on(failure: Failure, block: Open, brace: Token, early: Token | None) -> Diagnostic:
    return Diagnostic("C0106", "this `}` comes too early", span_of(brace))
