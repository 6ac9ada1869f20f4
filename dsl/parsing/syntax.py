"""Parser failures → messages.

`explain` asks one small function after another, each of which knows one mistake; the first answer wins. Where the
meaning is plain an answer also says what to read on with, so that the rest of the statement is checked as well.
"""

from __future__ import annotations

from collections.abc import Callable

from lark import Token

from curatec.dsl.diagnostics import Diagnostic, nearest
from curatec.dsl.parsing import brackets, lexical, misplaced, operators
from curatec.dsl.parsing.failure import Failure, Told, shown, shown_span, span_of
from curatec.dsl.parsing.machine import MAX_DEPTH
from curatec.dsl.parsing.recover import CONTINUATIONS
from curatec.dsl.parsing.words import SYNONYMS, close_word, expectation
from curatec.dsl.source import Span

_EXPRESSION = {"NAME", "NUMBER", "LPAR"}
_TEXT = ("STRING", "RAW_STRING", "LONG_STRING")


def explain(failure: Failure) -> Told:
    """The one message for a failure."""
    for attempt in _ATTEMPTS:
        told = attempt(failure)
        if told is not None:
            return told
    return _in_general(failure)


def too_many(count: int, span: Span) -> Diagnostic:
    return Diagnostic(
        "C0116",
        f"{count} errors; the rest of the file was not read",
        span,
        "stopped here",
        ("correct the first ones and run it again; is this a `.curate` file?",),
        severity="note",
    )


def too_deep(token: Token) -> Diagnostic:
    return Diagnostic(
        "C0115",
        f"this expression nests deeper than {MAX_DEPTH} levels",
        span_of(token),
        "too deep from here on",
        ("name its parts with `derive`; for a long row of `or` use `in { … }`",),
    )


# ---- what is missing ----


def _missing_where(f: Failure) -> Told | None:
    last = f.statement[-1] if f.statement else None
    if last is None or f.expected != {"WHERE"} or f.token.type in ("RBRACE", "$END", "LABEL"):
        return None
    verb = " ".join(str(t) for t in f.statement if t.type in ("TURNS", "TOOLS", "KEEP", "DROP"))
    if f.token.type == "NAME" and nearest(str(f.token), ["where"]):
        return None
    problem = Diagnostic(
        "C0109",
        f"`{verb}` needs `where` before its condition",
        f.caret,
        "expected `where`",
        (f"write `{verb} where {shown(f.token)} …`",),
    )
    return Told(problem, before=(("WHERE", "where"),)) if not f.first and "NAME" in f.after("WHERE") else Told(problem)


def _missing_block(f: Failure) -> Told | None:
    if "LBRACE" not in f.expected or not f.statement or f.token.type == "$END":
        return None
    inside = f.after("LBRACE")
    if f.token.type not in inside:
        return None
    head = " ".join(shown(t) for t in f.statement)
    problem = Diagnostic(
        "C0109",
        f"expected `{{` after `{head}`",
        f.end_before,
        "`{` is missing",
        (f"write `{head} {{ … }}`",),
    )
    return Told(problem, before=(("LBRACE", "{"),))


def _missing_text(f: Failure) -> Told | None:
    """`because harness noise` without quotes."""
    last = f.statement[-1] if f.statement else None
    if last is None or not f.expected or not f.expected <= set(_TEXT) or f.token.type in ("COLON", "EQUAL"):
        return None
    line_end = f.source.text.find("\n", f.span.start)
    rest = f.source.text[f.span.start : line_end if line_end >= 0 else None].split("#")[0].split("}")[0].strip()
    bare = f.token.type[0] not in "$?" and not f.first and rest and '"' not in rest
    way_out = f'put it in quotes: `{shown(last)} "{rest}"`' if bare else f'write `{shown(last)} "…"`'
    return Told(
        Diagnostic(
            "C0109",
            f"expected a string after `{shown(last)}`",
            f.caret,
            "not a string" if bare else "a string is missing",
            (way_out,),
        )
    )


def _keyword_as_name(f: Failure) -> Told | None:
    """`not == 1`, `if > 3`: a field whose name is a word of the expression language."""
    last = f.statement[-1] if f.statement else None
    if last is None or last.type not in ("NOT", "IF", "TRUE", "FALSE", "NULL"):
        return None
    if not operators.is_sign(f) and f.token.type not in ("RPAR", "RBRACE", "COMMA", "IS", "BETWEEN", "IN", "AND", "OR"):
        return None
    word = str(last)
    return Told(
        Diagnostic(
            "C0107",
            f"`{word}` is a keyword, not a name",
            span_of(last),
            "read as a part of the language",
            (f"if a field is called so, write it in back-quotes: `` `{word}` ``",),
        )
    )


# ---- a wrong word where few are right ----


def _wrong_word(f: Failure) -> Told | None:
    """A word that is close to one of those that could stand here."""
    text = str(f.token)
    if f.complete or not f.statement or not (text[:1].isalpha() or text[:1] == "_") or f.token.type == "LABEL":
        return None
    words = f.grammar.words
    right = {words[t]: t for t in f.expected if t in words and words[t][0].isalpha()}
    if not right:
        return None
    close = SYNONYMS.get(text)
    if close not in right:
        close = close_word(text, right)
    last = shown(f.statement[-1])
    if close and not f.first:
        problem = Diagnostic(
            "C0101", f"unknown word `{text}` after `{last}`", f.span, "", (f"did you mean `{close}`?",)
        )
        return Told(problem, ((right[close], close),))
    return None


def _missing_comma(f: Failure) -> Told | None:
    """`truncate(content 3000)`: an operand right behind another one."""
    if f.bracket is None or "COMMA" not in f.expected or f.first:
        return None
    operand = f.token.type in (*_TEXT, "NUMBER", "NAME", "LPAR") or str(f.token) in f.grammar.keywords
    return misplaced.left_over(f) if operand and "AND" in f.expected else None


def _in_general(f: Failure) -> Told:
    last = f.statement[-1] if f.statement else f.before
    wanted = expectation(f.expected, f.grammar)
    missing = _one_missing(f)
    came = "the file ends" if f.token.type == "$END" else f"`{shown(f.token)}` cannot stand here"
    if last is None:
        return Told(Diagnostic("C0101", f"unexpected `{shown(f.token)}`", f.span, f"expected {wanted}"))
    message = f"expected {wanted} after `{shown(last)}`"
    note = came if not f.first or f.token.type == "$END" else "missing here"
    return Told(Diagnostic("C0109", message, f.caret, note, _advice(f, last)), before=missing)


def _one_missing(f: Failure) -> tuple[tuple[str, str], ...] | None:
    """The one word or sign that could stand here, when the token fits right behind it."""
    if len(f.expected) != 1 or f.first:
        return None
    (terminal,) = f.expected
    if terminal not in f.grammar.words or not _fits_behind(f, terminal):
        return None
    return ((terminal, f.grammar.words[terminal]),)


def _fits_behind(f: Failure, terminal: str) -> bool:
    """Behind a terminal the token could stand, as it is or as a name."""
    after = f.after(terminal)
    text = str(f.token)
    word = "NAME" in after and text in f.grammar.keywords and text not in CONTINUATIONS
    return f.token.type in after or word


def _with_missing(f: Failure) -> tuple[str, ...]:
    """The statement with the one word that is missing in it."""
    (terminal,) = f.expected
    word = f.grammar.words[terminal]
    said = shown_span(f.source, span_of(f.statement[0]).to(span_of(f.statement[-1])))
    if len(said) > 30:
        said = shown(f.statement[-1])
    if terminal == "LBRACE":
        return (f"write `{said} {{ … }}`",)
    rest = shown(f.token) if _fits_behind(f, terminal) and not f.first else "…"
    return (f"write `{said} {word} {rest}`",)


def _advice(f: Failure, last: Token) -> tuple[str, ...]:
    if "PERCENT" in f.expected and last.type == "NUMBER" and len(f.expected) == 1:
        return (f"shares are percentages: write `{shown(last)}%`",)
    if f.expected & {"MS", "MB"} and last.type == "NUMBER":
        unit = "s" if "S" in f.expected else "mb"
        return (f"write the unit too, for example `{shown(last)}{unit}`",)
    if f.statement and f.statement[0].type == "PARAM":
        return _about_param(f)
    if f.token.type == "RBRACE" and last.type == "LBRACE":
        return ("the braces hold at least one",)
    if len(f.expected) == 1 and f.expected <= f.grammar.words.keys():
        return _with_missing(f)
    if f.statement and f.statement[0].type == "CURATE":
        return ("a file begins with the version of the language: `curate 1`",)
    if "ELSE" in f.expected and "THEN" in {t.type for t in f.statement}:
        return ("both ways need a value: `if … then … else …`",)
    if f.expected >= _EXPRESSION and f.token.type in f.grammar.keywords.values():
        return ()
    if f.expected <= {"NAME", "QUOTED_NAME"} and f.token.type in (*_TEXT, "NUMBER"):
        bare = str(f.token).strip('"')
        if f.token.type == "STRING" and bare.isidentifier():
            return (f"names stand without quotes: write `{bare.lower()}`",)
        return ("a name begins with a letter or `_` and has no quotes",)
    if f.expected <= set(_TEXT) and f.token.type == "NAME":
        return (f'put it in quotes: `"{f.token}"`',)
    if f.expected == {"NUMBER"} and f.token.type == "MINUS":
        return ("a count is never negative: leave the `-` out",)
    return ()


def _about_param(f: Failure) -> tuple[str, ...]:
    name = shown(f.statement[1]) if len(f.statement) > 1 else "NAME"
    if "IN" in f.expected:
        return (f"a param says what it may be: `param {name} = … in 0 .. 1`, or `in {{ a, b }}`",)
    if "EQUAL" in f.expected:
        return (f"a param has a value: `param {name} = … in …`",)
    if f.statement[-1].type == "IN":
        return ("a range is written `in 0 .. 1`, a choice `in { a, b }`",)
    return ()


_ATTEMPTS: tuple[Callable[[Failure], Told | None], ...] = (
    lexical.explain,
    brackets.explain,
    misplaced.after_label,
    _missing_block,
    _missing_where,
    _missing_text,
    operators.explain,
    _keyword_as_name,
    misplaced.explain,
    _wrong_word,
    _missing_comma,
)
