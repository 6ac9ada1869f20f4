"""Messages for the first word of a statement: unknown, or known and in the wrong place."""

from __future__ import annotations

from curatec.dsl.diagnostics import Diagnostic
from curatec.dsl.parsing.failure import Failure, Told, shown, span_of
from curatec.dsl.parsing.recover import WEAK
from curatec.dsl.parsing.words import (
    DECLARATIONS_ELSEWHERE,
    PLACE_NAMES,
    SYNONYMS,
    VERBS_ELSEWHERE,
    WAYS_IN,
    close_word,
    likely,
    one_of,
)

_STRATEGIC = frozenset(("file", "strategy", "stage", "sink"))
_NEAR = 0.8  # how close a word in the middle of a line must be to a verb to be taken for one


def after_label(f: Failure) -> Told | None:
    """What follows `name:` is no verb."""
    if len(f.statement) != 1 or f.statement[0].type != "LABEL" or "KEEP" not in f.expected:
        return None
    label = shown(f.statement[0])
    name = label.rstrip(": ")
    text = str(f.token)
    if f.token.type == "LABEL":
        note = f"`{shown(f.token)}` is a label too"
        problem = Diagnostic(
            "C0109", f"expected a verb after `{label}`", f.caret, note, ("a statement has one label at most",)
        )
        return Told(problem, restart=True, sure=True)
    if f.token.type in f.grammar.starters[f.place]:
        kinds = {"EMIT": "a sink", "STAGE": "a stage"}
        kind = kinds.get(f.token.type, f"the setting `{text}`")
        span = span_of(f.statement[0])
        problem = Diagnostic("C0108", f"{kind} takes no label", span, "labels name steps", (f"delete `{name}:`",))
        return Told(problem, restart=True, sure=True)
    if _is_word(text):
        told = _elsewhere(f, _STRATEGIC) or _near(f)
        if told:
            return told
    operand = _is_word(text) or f.token.type == "LPAR"
    way_out = f"write `{name}: keep where {shown(f.token)} …`" if operand else f"for example `{name}: keep where …`"
    if text in VERBS_ELSEWHERE:
        way_out = f"for that write `{name}: {VERBS_ELSEWHERE[text]}`"
    return Told(
        Diagnostic("C0109", f"expected a verb after `{label}`", f.caret, "a step begins with a verb", (way_out,))
    )


def explain(f: Failure) -> Told | None:
    """The statement before is complete; this token should begin another or go on with it."""
    if not f.complete:
        return None
    if f.token.type == "LABEL":
        return _label(f)
    begins = f.first or not f.statement or f.before is None or f.before.type in ("LBRACE", "RBRACE")
    if not _is_word(str(f.token)):
        return _no_word(f) if begins else left_over(f)
    if begins:
        return _elsewhere(f, frozenset(PLACE_NAMES)) or _unknown(f)
    if "COMMA" in f.expected or str(f.token) in WEAK:
        return _goes_on(f) or left_over(f)
    return _goes_on(f) or _elsewhere(f, _STRATEGIC) or left_over(f)


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] in "_`"


def _label(f: Failure) -> Told:
    where = PLACE_NAMES[f.place]
    if f.place == "file":
        problem = Diagnostic(
            "C0108", f"a label has no place in {where}", f.span, "labels name steps", (WAYS_IN["strategy"],)
        )
        return Told(problem)
    text = shown(f.token).rstrip(": ")
    way_out = "leave it out: only the steps of a strategy have labels"
    if text in f.grammar.starter_words[f.place]:
        way_out = f"settings have no `:`: write `{text} …`"
    return Told(Diagnostic("C0108", f"a label has no place in {where}", f.span, "labels name steps", (way_out,)))


# ---- known, but not here ----


def _elsewhere(f: Failure, among: frozenset[str]) -> Told | None:
    """A word that begins a statement in other places than this one."""
    places = [place for place, terminals in f.grammar.starters.items() if f.token.type in terminals]
    if f.token.type not in f.grammar.words or not among & set(places) or f.place in places:
        return None
    text = str(f.token)
    here = PLACE_NAMES[f.place]
    special = _SPECIAL.get((text, f.place))
    if special:
        return Told(Diagnostic("C0108", special[0], f.span, "", (special[1],)))
    if "file" in places:
        message = f"`{text}` is a declaration: it cannot stand inside {here}"
        return Told(Diagnostic("C0108", message, f.span, "", (WAYS_IN["file"],)))
    step = "strategy" in places or "stage" in places
    home = [p for p in ("strategy", "sink") if p in places] if step else places
    kind = f"a {'step' if step else 'setting'} of {one_of(PLACE_NAMES[p] for p in home)}"
    rest = ": it cannot stand alone" if f.place == "file" else f", not of {here}"
    way = WAYS_IN.get(home[0], f"put it between the braces of `{home[0]} NAME {{ … }}`")
    return Told(Diagnostic("C0108", f"`{text}` is {kind}{rest}", f.span, "", (way,)))


_SPECIAL = {
    ("emit", "sink"): ("a sink cannot stand inside a sink", "end the first one with `}` before this `emit`"),
    ("stage", "sink"): (
        "a stage cannot stand inside a sink",
        "put it before the sink and write `emit NAME from STAGE { … }`",
    ),
    ("stage", "stage"): (
        "a stage cannot stand inside a stage",
        "put it behind the first and write `stage NAME from FIRST { … }`",
    ),
    ("emit", "stage"): (
        "a sink cannot stand inside a stage",
        "put it behind the stage and write `emit NAME from STAGE { … }`",
    ),
    ("from", "sink"): (
        "a sink has no `from` step: it starts from the shared rows of its strategy",
        "to start from a stage write `emit NAME from STAGE { … }`; sources are named where the strategy begins",
    ),
    ("from", "stage"): ("a stage has no `from` step", "it is in its head: `stage NAME from NAME { … }`"),
}


# ---- unknown ----


def _starters(f: Failure) -> dict[str, str]:
    words = f.grammar.words
    return {words[t]: t for t in sorted(f.grammar.starters[f.place]) if t in words}


def _kinds(place: str) -> str:
    return "verb or setting" if place == "sink" else "verb" if place in ("strategy", "stage") else "setting"


def _near(f: Failure) -> Told | None:
    """A mistyped verb, setting or declaration; read on as if it were right."""
    starters = _starters(f)
    text = str(f.token)
    close = close_word(text, starters)
    if close is None or text in VERBS_ELSEWHERE:
        return None
    code, kind = ("C0103", "declaration") if f.place == "file" else ("C0102", _kinds(f.place))
    note = f"{'a file' if f.place == 'file' else PLACE_NAMES[f.place]} has none of this name"
    problem = Diagnostic(code, f"unknown {kind} `{shown(f.token)}`", f.span, note, (f"did you mean `{close}`?",))
    return Told(problem, ((starters[close], close),) if likely(text, close) else None)


def _unknown(f: Failure) -> Told:
    text = str(f.token)
    starters = _starters(f)
    if f.place == "file":
        return _unknown_declaration(f, starters)
    if f.place in ("workflow", "columns"):
        what = "a node is" if f.place == "workflow" else "a column is"
        way_out = f"write `{shown(f.token)}: …`"
        problem = Diagnostic(
            "C0109", f"expected `:` after `{shown(f.token)}`", f.span, f"{what} a name, `:`, …", (way_out,)
        )
        return Told(problem)
    kinds = _kinds(f.place)
    rest = f.source.text[f.span.end :].lstrip(" ")
    if rest[:1] == "=" and rest[:2] != "==" and f.place != "sink" and kinds == "verb":
        way_out = f"a column is made with `derive {text} = …`"
    elif text in VERBS_ELSEWHERE and kinds != "setting":
        way_out = f"for that write `{VERBS_ELSEWHERE[text]}`"
    else:
        near = _goes_on(f) if f.statement and close_word(text, starters) is None else _near(f)
        if near:
            return near
        way_out = _hint(kinds) if len(starters) > 12 else f"there are {', '.join(f'`{w}`' for w in starters)}"
    note = f"{PLACE_NAMES[f.place]} has none of this name"
    problem = Diagnostic("C0102", f"unknown {kinds} `{shown(f.token)}`", f.span, note, (way_out,))
    stray = f.before_statement and text not in VERBS_ELSEWHERE
    return Told(problem, () if stray else None, sure=True)


def _hint(kinds: str) -> str:
    steps = "`keep where`, `drop where`, `turns`, `dedup`, `limit`, `derive`, `tag`, `emit`"
    settings = "`keep where`, `limit`, `sort by`, `decompose`, `loss`, `fit`, `reward`, `key`"
    return f"the most common are {settings if 'setting' in kinds else steps}; `curatec explain C0102` lists all"


def _unknown_declaration(f: Failure, starters: dict[str, str]) -> Told:
    other = DECLARATIONS_ELSEWHERE.get(str(f.token))
    near = None if other else _near(f)
    if near:
        return near
    way_out = f"did you mean `{other}`?" if other else f"there are {', '.join(f'`{w}`' for w in starters)}"
    message = f"unknown declaration `{shown(f.token)}`"
    terminal = starters.get(other or "")
    problem = Diagnostic("C0103", message, f.span, "a file has none of this name", (way_out,))
    if terminal and other:
        return Told(problem, ((terminal, other),))
    return Told(problem, () if f.before_statement else None, sure=True)


# ---- after a complete statement, on its line ----


def _goes_on(f: Failure) -> Told | None:
    """`keep where a adn b`: the nearest operator or suffix; a verb only when it is very near."""
    text = str(f.token)
    words = f.grammar.words
    if text in f.grammar.starter_words[""]:
        return None
    starters = _starters(f)
    going_on = {words[t]: t for t in f.expected if t in words and words[t][0].isalpha() and words[t] not in starters}
    close = SYNONYMS.get(text)
    if close not in going_on:
        close = close_word(text, going_on)
    if close is None:
        verb = close_word(text, starters)
        close = verb if verb and likely(text, verb, _NEAR) else None
    if close is None:
        return None
    terminal = going_on.get(close) or starters[close]
    problem = Diagnostic("C0101", f"unknown word `{shown(f.token)}`", f.span, _ended(f), (f"did you mean `{close}`?",))
    return Told(problem, ((terminal, close),))


def _no_word(f: Failure) -> Told:
    what = "a declaration begins" if f.place == "file" else f"in {PLACE_NAMES[f.place]} a statement begins"
    way_out: tuple[str, ...] = ()
    if f.place == "file":
        way_out = ("for example `source NAME { … }` or `strategy NAME { … }`",)
    problem = Diagnostic("C0101", f"unexpected `{shown(f.token)}`", f.span, f"{what} with a word", way_out)
    return Told(problem, () if f.before_statement else None, sure=True)


def left_over(f: Failure) -> Told:
    """Something that neither goes on with what is complete nor begins anything."""
    text = shown(f.token)
    if "COMMA" in f.expected:
        missing = "a comma or an operator is" if "AND" in f.expected else "a comma is"
        way_out = f"{missing} missing before `{text}`"
    elif "AND" in f.expected:
        way_out = f"an operator is missing before `{text}`, or it is one word too many"
    else:
        way_out = f"leave `{text}` out"
    kind = "word " if _is_word(text) else ""
    message = f"unexpected {kind}`{text}` after `{shown(f.before)}`"
    return Told(Diagnostic("C0101", message, f.span, _ended(f), (way_out,)))


def _ended(f: Failure) -> str:
    return "the expression before is complete" if "AND" in f.expected else "the statement before is complete"
