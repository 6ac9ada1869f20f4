"""What terminals and places are called when one talks to people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from curatec.dsl.diagnostics import nearest
from curatec.dsl.grammar import Grammar

_NAMES = {
    "NAME": "a name",
    "QUOTED_NAME": "a name in back-quotes",
    "NUMBER": "a number",
    "STRING": "a string",
    "RAW_STRING": "a raw string",
    "LONG_STRING": "a long string",
    "LABEL": "a label",
    "COMMENT": "a comment",
    "SPACE": "white space",
    "$END": "the end of the file",
}

# Place → what it is called, and how a statement gets into it.
PLACE_NAMES = {
    "file": "the top level of the file",
    "source": "a source",
    "table": "a table",
    "columns": "the columns of a table",
    "tools": "tools",
    "tool": "a tool of `tools`",
    "model": "a model",
    "test set": "a test set",
    "workflow": "a workflow",
    "synthesis": "a synthesis",
    "recipe": "a recipe",
    "recipe sft": "the `sft` part of a recipe",
    "recipe grpo": "the `grpo` part of a recipe",
    "benchmark": "a benchmark",
    "agent": "the agent of a benchmark",
    "evolve": "an evolve block",
    "strategy": "a strategy",
    "stage": "a stage",
    "sink": "a sink",
}
WAYS_IN = {
    "file": "move it to the top level, outside all braces",
    "strategy": "put it between the braces of `strategy NAME { … }`",
    "stage": "put it between the braces of `stage NAME from NAME { … }`",
    "sink": "put it between the braces of `emit NAME { … }`",
    "columns": "put it between the braces of `columns { … }`",
    "tools": "put it between the braces of `tools NAME { … }`",
    "tool": "put it between the braces of `tool NAME { … }`",
    "agent": "put it between the braces of `agent { … }`",
    "recipe sft": "put it between the braces of `sft { … }`",
    "recipe grpo": "put it between the braces of `grpo { … }`",
}

# Words of other languages → what does it here.
VERBS_ELSEWHERE = {
    "filter": "keep where …",
    "select": "keep where …",
    "where": "keep where …",
    "if": "keep where …",
    "when": "keep where …",
    "retain": "keep where …",
    "remove": "drop where …",
    "delete": "drop where …",
    "exclude": "drop where …",
    "reject": "drop where …",
    "discard": "drop where …",
    "let": "derive NAME = …",
    "var": "derive NAME = …",
    "set": "derive NAME = …` or `turns set content = …",
    "map": "derive NAME = …` or `turns set content = …",
    "compute": "derive NAME = …",
    "dedupe": "dedup exact on …",
    "deduplicate": "dedup exact on …",
    "unique": "dedup exact on …",
    "distinct": "dedup exact on …",
    "take": "limit N",
    "head": "limit N",
    "top": "limit N … order by …",
    "order": "sort by …",
    "order_by": "sort by …",
    "shuffle": "sample 100%",
    "output": "emit NAME { … }",
    "sink": "emit NAME { … }",
    "write": "emit NAME { … }",
    "export": "emit NAME { … }",
    "assert": "expect …",
    "check": "expect …",
    "test": "expect …",
    "require": "expect …",
    "mask": "redact … in …",
    "load": "from NAME",
    "read": "from NAME",
    "use": "from NAME",
    "tokenize": 'render "…"',
    "tokenizer": 'render "…"',
    "truncate": "turns set content = truncate(content, N)",
    "classify": "judge …",
    "score": "judge …",
    "weight": "loss on … weight …",
    "max_tokens": "fit N tokens else drop",
}
DECLARATIONS_ELSEWHERE = {
    "dataset": "source",
    "data": "source",
    "corpus": "source",
    "input": "source",
    "let": "param",
    "var": "param",
    "const": "param",
    "set": "param",
    "pipeline": "strategy",
    "flow": "workflow",
    "include": "import",
    "require": "import",
    "def": "use",
    "function": "use",
    "version": "curate",
    "llm": "model",
    "eval": "benchmark",
    "testset": "test set",
    "test_set": "test set",
    "training": "recipe",
    "train": "recipe",
    "optimize": "evolve",
    "search": "evolve",
    "lookup": "table",
}
OPERATORS_ELSEWHERE = {
    "equals": "==",
    "eq": "==",
    "equal": "==",
    "isnt": "!=",
    "ne": "!=",
    "gt": ">",
    "lt": "<",
    "ge": ">=",
    "gte": ">=",
    "le": "<=",
    "lte": "<=",
    "contains": "~",
    "like": "~",
    "matches": "~",
    "match": "~",
    "startswith": "~",
    "elif": "else if",
    "elsif": "else if",
    "mod": "",
    "xor": "!=",
    "asc": "",
    "ascending": "",
    "descending": "desc",
}

# Inside a statement: words of other languages → the keyword that was meant.
SYNONYMS = {
    "remove": "drop",
    "delete": "drop",
    "exclude": "drop",
    "filter": "keep",
    "select": "keep",
    "excluding": "except",
    "without": "except",
    "having": "where",
    "when": "where",
    "if": "where",
    "for": "per",
    "in": "within",
    "orderby": "order",
    "dollars": "usd",
    "money": "usd",
    "model": "using",
    "boolean": "bool",
    "integer": "int",
    "descending": "desc",
}


def human(terminal: str, words: dict[str, str]) -> str:
    """A terminal's name in a message. Raises KeyError for one without a name."""
    return _NAMES[terminal] if terminal in _NAMES else f"`{words[terminal]}`"


_STRINGS = frozenset(("STRING", "RAW_STRING", "LONG_STRING"))
_NAME_FORMS = frozenset(("NAME", "QUOTED_NAME"))
_LITERALS = frozenset(("TRUE", "FALSE", "MINUS", "NUMBER"))
_OPERAND = _STRINGS | _NAME_FORMS | _LITERALS | {"NULL", "LPAR", "LSQB", "NOT", "IF"}
_OPERATOR = re.compile(r"[=!<>~+\-*/%.]+$|\[$")
_WORD_OPERATORS = frozenset(("and", "or", "not", "in", "is", "as", "between"))


def expectation(expected: frozenset[str], grammar: Grammar) -> str:
    """What could have stood somewhere, in few words."""
    left = set(expected)
    parts: list[str] = []
    if {"NAME", "NUMBER", "LPAR"} <= left:
        parts.append("an expression")
        left -= _OPERAND
    elif {"NUMBER", "NAME", "STRING"} <= left:
        parts.append("a value")
        left -= _STRINGS | _NAME_FORMS | _LITERALS
    if left >= _NAME_FORMS:
        parts.append("a name")
        left -= _NAME_FORMS
    if left >= _STRINGS:
        parts.append("a string")
        left -= _STRINGS
    if {"NUMBER", "MINUS"} <= left and "PLUS" not in left:
        parts.append("a number")
        left -= {"NUMBER", "MINUS"}
    operators = {t for t in left if is_operator(grammar.words.get(t, ""))}
    if len(operators) > 4:
        parts.append("an operator")
        left -= operators
    parts += [human(t, grammar.words) for t in sorted(left, key=lambda t: _rank(t, grammar))]
    return one_of(parts)


def _rank(terminal: str, grammar: Grammar) -> tuple[bool, bool, str]:
    """Words before signs, what ends something last."""
    text = grammar.words.get(terminal, "")
    return terminal in ("RBRACE", "RPAR", "RSQB", "$END"), not text[:1].isalpha(), text


def is_operator(text: str) -> bool:
    return bool(_OPERATOR.fullmatch(text)) or text in _WORD_OPERATORS


def one_of(parts: Iterable[str], limit: int = 8) -> str:
    """`a`, `b` or `c`; long lists are cut."""
    found = list(parts)
    if len(found) > limit:
        found = [*found[: limit - 1], "…"]
        return ", ".join(found)
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + " or " + found[-1] if found else "nothing"


def likely(word: str, other: str, least: float = 0.7) -> bool:
    """A word is near enough to another one to be read as that."""
    return SequenceMatcher(None, word, other).ratio() >= least


def close_word(word: str, known: Iterable[str]) -> str | None:
    """The nearest known word; of long words more must agree than `nearest` asks for."""
    close = nearest(word, known)
    return close if close and (len(word) <= 4 or likely(word, close)) else None
