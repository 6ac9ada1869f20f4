"""Messages for signs and operators: `=` for `==`, chained comparisons, `is` with something else than null, …"""

from __future__ import annotations

import re

from curatec.dsl.diagnostics import Diagnostic, nearest
from curatec.dsl.parsing.failure import Failure, Told, shown, span_of
from curatec.dsl.parsing.words import OPERATORS_ELSEWHERE, is_operator
from curatec.dsl.source import Span

_ORDER = ("<", "<=", ">", ">=")
_COMPARISONS = (*_ORDER, "==", "!=", "~", "!~", "between", "in", "is", "not")
_SIMPLE = re.compile(r"\s*(-?[\w.]+%?)")
_FRACTION = re.compile(r"\.[0-9]+")


def is_sign(f: Failure) -> bool:
    return is_operator(str(f.token))


def explain(f: Failure) -> Told | None:
    for attempt in (_comment, _equal, _double_equal, _needless, _chained, _is_what, _not_what, _fraction, _foreign):
        told = attempt(f)
        if told:
            return told
    return None


def _terminal(f: Failure, text: str) -> str:
    return next(name for name, value in f.grammar.words.items() if value == text)


def _comment(f: Failure) -> Told | None:
    """`-- …` for `# …`."""
    start = f.span.start
    if f.token.type != "MINUS" or not f.source.text.startswith("--", start):
        return None
    end = f.source.text.find("\n", start)
    way_out = "a comment runs from `#` to the end of the line"
    problem = Diagnostic("C0002", "`--` begins no comment", Span(start, start + 2), "", (way_out,))
    return Told(problem, (), upto=end if end >= 0 else len(f.source.text), sure=True)


def _equal(f: Failure) -> Told | None:
    equal = _terminal(f, "==")
    if f.token.type != "EQUAL" or not (f.takes(equal) or f.takes("AND")):
        return None
    note = "a value is given with `=` and compared with `==`"
    problem = Diagnostic("C0105", "`=` does not compare", f.span, note, ("write `==`",))
    return Told(problem, ((equal, "=="),) if f.takes(equal) else None, sure=True)


def _double_equal(f: Failure) -> Told | None:
    if str(f.token) != "==" or "EQUAL" not in f.expected:
        return None
    last = shown(f.statement[-1]) if f.statement else ""
    note = "a value is given with `=` and compared with `==`"
    problem = Diagnostic("C0105", "`==` gives no value", f.span, note, (f"write `{last} = …`",))
    return Told(problem, (("EQUAL", "="),), sure=True)


def _needless(f: Failure) -> Told | None:
    """`path: "a"`, `path = "a"`: a word takes its value as it is."""
    if f.token.type not in ("COLON", "EQUAL") or f.complete or len(f.statement) > 3:
        return None
    if f.token.type in f.after("NAME"):
        return None  # not the sign is wrong, a name is missing before it
    last = shown(f.statement[-1])
    sign = str(f.token)
    end = f.source.text.find("\n", f.span.end)
    # At the end of a line it opens a block in other languages, which no deletion mends.
    opens = not f.source.text[f.span.end : end if end >= 0 else None].strip()
    way_out = "a block stands in braces: `{ … }`" if opens else f"leave it out: `{last} …`"
    message = f"no `{sign}` belongs after `{last}`"
    problem = Diagnostic("C0101", message, f.span, "as in YAML or Python", (way_out,))
    return Told(problem, None if opens else (), sure=True)


def _chained(f: Failure) -> Told | None:
    sign = str(f.token)
    if sign not in _COMPARISONS or "AND" not in f.expected or f.takes(_terminal(f, "==")):
        return None
    last = next((i for i in range(len(f.statement) - 1, -1, -1) if str(f.statement[i]) in _COMPARISONS), None)
    if last is None:
        return None
    before = str(f.statement[last])
    if before in _ORDER and sign in _ORDER and before[0] == sign[0]:
        help_ = _between(f, last)
    else:
        help_ = "compare twice and join the two with `and`, or put one of them in brackets"
    problem = Diagnostic("C0104", "comparisons do not chain", f.span, f"`{before}` has compared already", (help_,))
    return Told(problem)


def _between(f: Failure, sign: int) -> str:
    """`1 < x < 5` as it is said here."""
    low = shown(f.statement[sign - 1])
    middle = " ".join(f.source.text[f.statement[sign].end_pos or 0 : f.span.start].split())
    found = _SIMPLE.match(f.source.text, f.span.end)
    high = found[1] if found else "…"
    if str(f.token)[0] == ">":
        low, high = high, low
    return f"use between: `{middle} between {low} and {high}` (both ends are in)"


def _is_what(f: Failure) -> Told | None:
    """`x is 5`, `x is not true`, `x is none`."""
    if "NULL" not in f.expected or "EMPTY" not in f.expected or not f.statement:
        return None
    said = "is not" if f.statement[-1].type == "NOT" else "is"
    text = str(f.token)
    right = "null" if text in ("none", "nil", "undefined", "missing", "nan") else None
    if right is None and f.token.type == "NAME":
        right = nearest(text, ["null", "empty"])
    if right:
        way_out = f"did you mean `{said} {right}`?"
        problem = Diagnostic("C0101", f"unknown word `{text}` after `{said}`", f.span, "", (way_out,))
        return Told(problem, ((right.upper(), right),))
    sign = "!=" if said == "is not" else "=="
    value = shown(f.token) if f.token.type[0] not in "$R" else "…"
    problem = Diagnostic(
        "C0109",
        f"`{said}` asks for `null` or `empty`, nothing else",
        f.caret,
        "expected `null` or `empty`",
        (f"to compare with a value write `{sign} {value}`",),
    )
    return Told(problem)


def _not_what(f: Failure) -> Told | None:
    """`x not null`, `x not 5`: behind an operand `not` needs `in`."""
    if f.expected != {"IN"} or not f.statement or f.statement[-1].type != "NOT":
        return None
    last = f.statement[-1]
    text = str(f.token)
    if text in ("null", "empty"):
        way_out = f"write `is not {text}`"
    elif text == "between":
        way_out = "write `not (… between … and …)`"
    elif text == "~":
        way_out = "write `!~`"
    else:
        way_out = f"write `!= {shown(f.token)}`, or `not in {{ … }}`"
    where = span_of(last) if f.first else span_of(last).to(f.span)
    problem = Diagnostic(
        "C0101",
        f"unexpected `{shown(f.token)}` after `not`",
        where,
        "behind a value `not` goes on with `in`",
        (way_out,),
    )
    return Told(problem)


def _fraction(f: Failure) -> Told | None:
    """`.5`"""
    found = _FRACTION.match(f.source.text, f.span.start)
    if f.token.type != "DOT" or found is None or not f.takes("NUMBER"):
        return None
    problem = Diagnostic(
        "C0005",
        f"`{found.group()}` is not a number",
        Span(found.start(), found.end()),
        "a number begins with a digit",
        (f"write `0{found.group()}`",),
    )
    return Told(problem, (("NUMBER", "0" + found.group()),), upto=found.end(), sure=True)


def _foreign(f: Failure) -> Told | None:
    """`%` for the remainder, `elif`, the operators of other languages inside brackets."""
    text = str(f.token)
    if text == "%" and "AND" in f.expected:
        note = "`%` stands only behind a number"
        way_out = ("a percentage is written `10%`",)
        return Told(Diagnostic("C0101", "there is no remainder operator", f.span, note, way_out))
    if text in ("elif", "elsif", "elseif") and "ELSE" in f.expected:
        problem = Diagnostic("C0101", f"unknown word `{text}`", f.span, "", ("write `else if`",))
        return Told(problem, (("ELSE", "else"), ("IF", "if")), sure=True)
    if text in OPERATORS_ELSEWHERE and "AND" in f.expected and not f.first:
        return _operator_elsewhere(f, OPERATORS_ELSEWHERE[text])
    return None


def _operator_elsewhere(f: Failure, right: str) -> Told:
    text = str(f.token)
    if right == "~":
        way_out = 'a text is matched with a pattern: `… ~ r"…"`'
    elif right:
        way_out = f"write `{right}`"
    else:
        way_out = "leave it out: smallest first is the rule" if text.startswith("asc") else "there is none like it"
    problem = Diagnostic("C0101", f"`{text}` is no operator", f.span, "the expression before is complete", (way_out,))
    terminal = _terminal(f, right) if right and " " not in right else None
    return Told(problem, ((terminal, right),) if terminal and f.takes(terminal) else None)
