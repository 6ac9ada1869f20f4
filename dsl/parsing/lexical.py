"""Messages for characters that make no token: strings left open, wrong quotes, numbers that touch letters, …"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.parsing.failure import Failure, Told, shown
from curatec.dsl.parsing.scan import UNITS
from curatec.dsl.source import Span

_SIGNS: dict[str, tuple[str, str]] = {
    "&&": ("`&&` is no operator", "and"),
    "&": ("`&` is no operator", "and"),
    "||": ("`||` is no operator", "or"),
    "|": ("`|` is no operator", "or"),
    "!": ("`!` is no operator", "not"),
    "^": ("`^` is no operator", "**"),
    "<>": ("`<>` is no operator", "!="),
    "=>": ("`=>` is no operator", ">="),
    "=<": ("`=<` is no operator", "<="),
    "===": ("`===` is no operator", "=="),
    "!==": ("`!==` is no operator", "!="),
    "...": ("`...` makes no range", ".."),
}
_ADVICE = {
    ";": ("a statement needs no `;`", "delete it: a statement ends where the next begins"),
    "\\": ("a line needs no `\\` at its end", "delete it: a statement may go on over as many lines as it likes"),
    "?": ("`?` is no operator", "for a choice write `if … then … else …`"),
    "$": ("names take no `$`", "write the name alone; a param is used by its name"),
    "@": ("names take no `@`", "write the name alone"),
    "`": ("this back-quote is not closed", "a name in back-quotes ends with a back-quote on the same line"),
    "::": ("`::` is no operator", "for a type write `as`: `args.n as int`"),
}
_MAGNITUDES = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "b": 1_000_000_000}


def explain(failure: Failure) -> Told | None:
    """The message for a `?…` token; None for any other."""
    make = _BY_TYPE.get(failure.token.type)
    return make(failure) if make else None


# ---- strings ----


def _open_string(failure: Failure) -> Told:
    token = failure.token
    start, end = failure.span
    body = str(token)
    # `source a { path "x }`: the braces of the line belong to it, not to the string.
    line = failure.source.text.rfind("\n", 0, start) + 1
    here = sum((o.token.start_pos or 0) >= line for o in failure.opens)
    inner = body
    for _ in range(here):
        inner = inner.rstrip()
        if not inner.endswith(("}", ")", "]")):
            break
        inner = inner[:-1]
    way_out = 'end it with `"`; text over several lines stands in `"""…"""`'
    if body.rstrip().endswith('\\"'):
        way_out = 'its last `"` is escaped by the `\\` before it: write `\\\\` for a backslash'
    problem = Diagnostic(
        "C0004", "this string is not closed", Span(start, end), "the line ends before the string", (way_out,)
    )
    value = re.sub(r'[\\"]', "", inner.rstrip().removeprefix("r"))
    return Told(problem, (("STRING", f'"{value}"'),), upto=start + len(inner.rstrip()), sure=True)


def _open_text(failure: Failure) -> Told:
    start = failure.span.start
    problem = Diagnostic(
        "C0004",
        'this `"""` string is not closed',
        Span(start, start + 3),
        "open to the end of the file",
        ('end it with `"""`; if it was meant to end a string, an earlier `"""` is one too many',),
    )
    return Told(problem)


def _wrong_quotes(failure: Failure) -> Told:
    text = str(failure.token)
    closed = len(text) > 1 and text[-1] in "'\u2018\u2019\u201c\u201d\u201e\u201f\u00bb\""
    inner = text[1:-1] if closed else text[1:]
    plain = text[0] == "'"
    what = f"{'single' if plain else 'typographic'} quotes do not make a string"
    note = "" if plain else "as word processors write them"
    way_out = f'write `"{inner}"`' if closed else 'a string stands in `"…"`'
    problem = Diagnostic("C0003", what, failure.span, note, (way_out,))
    value = re.sub(r'[\\"]', "", inner)
    return Told(problem, (("STRING", f'"{value}"'),) if closed else None, sure=True)


# ---- numbers and words ----


def _bad_number(failure: Failure) -> Told:
    text = str(failure.token)
    digits, rest = _split_number(text)
    units = failure.after("NUMBER") & frozenset(UNITS)
    instead: tuple[tuple[str, str], ...] = (("NUMBER", digits),)
    if rest.upper() in UNITS and not units:
        what = "a size" if rest in ("mb", "gb") else "a duration"
        message, note = f"`{text}` is {what}, and a plain number stands here", "no unit belongs here"
        way_out = f"write `{digits}`"
    elif units:
        known = ", ".join(f"`{unit.lower()}`" for unit in UNITS if unit in units)
        message, note, way_out = f"`{rest}` is no unit", "", f"the units are {known}"
        close = _unit(rest, units)
        if close:
            way_out = f"write `{digits}{close}`; {way_out}"
            instead = (*instead, (close.upper(), close))
    elif rest.lower() in _MAGNITUDES and re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", digits):
        value = int(float(digits) * _MAGNITUDES[rest.lower()])
        message, note, way_out = f"`{text}` is not a number", "", f"write it out: `{value:_}`"
        instead = (("NUMBER", str(value)),)
    elif re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        message, note, way_out = f"`{text}` is not a number here", "", f"write it in decimal: `{int(text, 16)}`"
        instead = (("NUMBER", str(int(text, 16))),)
    else:
        message, note = f"`{shown(failure.token)}` is neither a number nor a name", ""
        way_out = "put a space behind the number; a name begins with a letter or `_`"
    problem = Diagnostic("C0005", message, failure.span, note, (way_out,))
    return Told(problem, instead if failure.takes("NUMBER") else None, sure=True)


def _split_number(text: str) -> tuple[str, str]:
    found = re.match(r"[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+\-]?[0-9]+)?", text)
    digits = found.group() if found else "0"
    return digits, text[len(digits) :]


def _unit(word: str, units: frozenset[str]) -> str | None:
    """`sec`, `minutes`, `MB` → the unit that they mean."""
    word = word.lower()
    guess = {"msec": "ms", "milliseconds": "ms", "millis": "ms"}.get(word) or word
    if guess.upper() in units:
        return guess
    return word[0] if word[0].upper() in units and word.startswith(("sec", "min", "hour", "hr")) else None


def _bad_word(failure: Failure) -> Told:
    text = str(failure.token)
    lower = text.lower()
    if not text.isascii():
        strange = next(char for char in text if not char.isascii())
        problem = Diagnostic(
            "C0002",
            f"`{shown(failure.token)}` has a letter that names do not have: `{strange}`",
            failure.span,
            "",
            ('names are made of a-z, 0-9 and `_`; any other text stands in `"…"`',),
        )
        return Told(problem, (("NAME", "_"),) if failure.takes("NAME") else None, sure=True)
    if failure.takes("STRING") and not failure.takes("NAME"):
        return _bare_text(failure)
    terminal = failure.grammar.keywords.get(lower)
    keyword = terminal is not None and failure.takes(terminal)
    message = f"keywords are lower case: `{text}`" if keyword else f"names are lower case: `{text}`"
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    better = lower if keyword else snake
    problem = Diagnostic("C0002", message, failure.span, "", (f"write `{better}`",))
    if keyword and terminal:
        return Told(problem, ((terminal, lower),), sure=True)
    return Told(problem, (("NAME", snake),) if failure.takes("NAME") else None, sure=True)


def _bare_text(failure: Failure) -> Told:
    """`endpoint OPENAI_BASE_URL`: a word where a string stands."""
    text = str(failure.token)
    last = shown(failure.statement[-1]) if failure.statement else ""
    way_out = f'put it in quotes: `"{text}"`'
    if "ENV" in failure.expected:
        way_out = f'for a variable of the environment write `{last} env("{text}")`; a text stands in quotes'
    problem = Diagnostic("C0109", f"expected a string after `{last}`", failure.span, "a bare word", (way_out,))
    return Told(problem, (("STRING", f'"{text}"'),), sure=True)


# ---- signs ----


def _blank(failure: Failure) -> Told:
    char = str(failure.token)[0]
    name = unicodedata.name(char, "").lower() or "a control character"
    what = f"{name} (U+{ord(char):04X})"
    problem = Diagnostic(
        "C0008",
        f"an invisible character: {what}" if char != "\0" else "a NUL byte (U+0000)",
        failure.span,
        "not white space here",
        (
            "delete it or type a plain space; such characters come with text copied from pages and chats"
            if char != "\0"
            else "save the file as UTF-8 text; NUL bytes are a sign of UTF-16 or of a binary file",
        ),
    )
    return Told(problem, ())


def _sign(failure: Failure) -> Told:
    text = str(failure.token)
    if text in _SIGNS and not (failure.complete and failure.first and failure.before_statement):
        message, word = _SIGNS[text]
        terminal = next(name for name, value in failure.grammar.words.items() if value == word)
        problem = Diagnostic("C0002", message, failure.span, "", (f"write `{word}`",))
        return Told(problem, ((terminal, word),) if failure.takes(terminal) else None, sure=True)
    if text[:2] in ("//", "/*"):
        start = failure.span.start
        message, way_out = f"`{text[:2]}` begins no comment", "a comment runs from `#` to the end of the line"
        return Told(Diagnostic("C0002", message, Span(start, start + 2), "", (way_out,)), (), sure=True)
    if text in _ADVICE:
        message, way_out = _ADVICE[text]
        return Told(Diagnostic("C0002", message, failure.span, "", (way_out,)), (), sure=True)
    if text in _SIGNS:
        message, _ = _SIGNS[text]
        note = "at the begin of a statement"
        return Told(Diagnostic("C0002", message, failure.span, note, (f"delete the `{text}`",)), (), sure=True)
    name = unicodedata.name(text[0], "").lower()
    known = f" ({name}, U+{ord(text[0]):04X})" if not text.isascii() and name else ""
    problem = Diagnostic(
        "C0002",
        f"unexpected character `{text}`{known}",
        failure.span,
        "no sign of the language",
        ('delete it, or put it into a string: `"…"`',),
    )
    return Told(problem, ())


_BY_TYPE: dict[str, Callable[[Failure], Told]] = {
    "?string": _open_string,
    "?text": _open_text,
    "?quote": _wrong_quotes,
    "?number": _bad_number,
    "?word": _bad_word,
    "?blank": _blank,
    "?sign": _sign,
}


def lone_return(text: str) -> Diagnostic | None:
    """A carriage return without a line feed ends no line here, so a comment would run over it unseen."""
    found = re.search(r"\r(?!\n|\Z)", text)
    if found is None:
        return None
    return Diagnostic(
        "C0008",
        "a carriage return without a line feed",
        Span(found.start(), found.end()),
        "ends no line",
        ("save the file with LF or CRLF line ends",),
    )
