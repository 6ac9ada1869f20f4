"""Strings and numbers inside JSON text, rewritten where they stand; every other byte stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import orjson

# Within valid JSON quotes and brackets of strings are the only others, and the first alternative takes those.
_TOKEN = re.compile(
    r'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")(?P<colon>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<open>[\[{])|(?P<close>[\]}])'
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
# A text and the member whose value it is → the new text.
Edit = Callable[[str, str | None], str]


def rewritten(text: str, edit: Edit, *, keys: bool, member: str | None = None) -> str:
    """The text with every text in it edited: itself, or if it is a JSON object or list, its strings, and its numbers
    as they are written. `keys`: whether names of members are texts as well. A string that is JSON itself is treated as
    such. A number that is edited becomes a string, unless the new text is a number as well."""
    if not _is_container(text):
        return edit(text, member)
    out: list[str] = []
    done = 0
    within: list[str | None] = []
    name = member
    for token in _TOKEN.finditer(text):
        if token["open"]:
            within.append(name)
        elif token["close"]:
            name = within.pop()
        elif token["colon"] is not None:
            name = _decoded(token["string"])
            if keys:
                new = edit(name, None)
                if new != name:
                    out += [text[done : token.start()], _encoded(new, token["string"])]
                    done = token.end("string")
        elif token["string"]:
            old = _decoded(token["string"])
            new = rewritten(old, edit, keys=keys, member=name)
            if new != old:
                out += [text[done : token.start()], _encoded(new, token["string"])]
                done = token.end()
        else:
            new = edit(token["number"], name)
            if new != token["number"]:
                out += [text[done : token.start()], new if _NUMBER.fullmatch(new) else json.dumps(new)]
                done = token.end()
    return "".join((*out, text[done:]))


def _decoded(string: str) -> str:
    decoded: str = json.loads(string) if "\\" in string else string[1:-1]
    return decoded


def _encoded(new: str, old: str) -> str:
    """As JSON, escaped as the old one was where that can be told."""
    return json.dumps(new, ensure_ascii=old.isascii())


def _is_container(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            json.loads(text)  # takes NaN and lone surrogates, which sources hold as well
        except (ValueError, RecursionError):
            return False
    return True
