"""Where to go on after an error: the next place that looks like the begin of a statement.

Line starts and indentation are only used here. They say nothing about a good file, but in a broken one they are the
best witness of what was meant.
"""

from __future__ import annotations

import re

from curatec.dsl.diagnostics import nearest

# What a skipped stretch is made of; a string that is not closed ends with its line.
_PIECE = re.compile(
    r'(?P<string>"""(?:[^"]|"(?!""))*(?:"""|\Z)|r?"(?:[^"\\\n]|\\[^\n])*(?:"|(?=\n)|\Z|\\(?=\n|\Z))|\#[^\n]*)'
    r"|(?P<open>\{)|(?P<close>\})|(?P<line>\n[ \t\r]*)|[^\"#{}\nr]+|."
)
_FIRST = re.compile(r"(?:(?P<word>[A-Za-z_]\w*)|(?P<quoted>`[^`\n]+`))(?P<label>[ \t]*:)?[ \t]*(?P<next>[a-z_]\w*)?")

# A line that begins with one of these goes on with the statement before it.
_GO_ON = (
    "and or not in is as between where then else because see per by order on over best seed near threshold votes using"
    " template to repair ngram desc within chosen rejected margin max except only including weight top"
)
CONTINUATIONS = frozenset(_GO_ON.split())

# Starters that also stand inside statements; deeper on the page than the broken statement they are part of it.
_ALSO_INSIDE = "from context key value group format tools reward model seed count name text id memory tasks path domain"
WEAK = frozenset(_ALSO_INSIDE.split())

# No line is indented deeper: looking further back for its begin only costs time in files that are one long line.
_MARGIN = 1_000


def indent_at(text: str, position: int) -> int:
    """The columns of white space before the first character of the line at a position."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start : start + _MARGIN]
    return len(line) - len(line.lstrip(" \t\r"))


def first_on_line(text: str, position: int) -> bool:
    start = text.rfind("\n", max(0, position - _MARGIN), position) + 1
    return (start > 0 or position < _MARGIN) and not text[start:position].strip()


def resume(
    text: str, position: int, *, starters: frozenset[str], known: frozenset[str], indent: int, depth: int, top: bool
) -> int:
    """The next position at or after one where a statement may begin or the block end; the text's end if none.

    `starters` may begin a statement here, `known` anywhere; `indent` is the broken statement's, `depth` how many
    braces it has open; `top` stands for the level of declarations.
    """
    if first_on_line(text, position) and _begins(
        text, position, starters=starters, known=known, indent=indent, depth=depth, top=top
    ):
        return position
    for piece in _PIECE.finditer(text, position):
        match piece.lastgroup:
            case "open":
                depth += 1
            case "close":
                if depth == 0 and not top:
                    return piece.start()
                depth = max(0, depth - 1)
            case "line":
                at = piece.end()
                if text[at : at + 1] == "}" and not top and indent_at(text, at) < indent:
                    return at
                if _begins(text, at, starters=starters, known=known, indent=indent, depth=depth, top=top):
                    return at
    return len(text)


def _begins(
    text: str, position: int, *, starters: frozenset[str], known: frozenset[str], indent: int, depth: int, top: bool
) -> bool:
    found = _FIRST.match(text, position)
    if found is None:
        return False
    word, label, after = found["word"], found["label"], found["next"]
    column = indent_at(text, position)
    if top:
        if word is None or label:
            return False
        # In the first column also what is nearly a declaration begins one.
        return (word in starters and (depth == 0 or column == 0)) or (
            column == depth == 0 and word not in known and nearest(word, starters) is not None
        )
    if column > indent:
        return depth == 0 and (after in known if label else word in starters and word not in WEAK)
    return bool(label) or (word is not None and word not in CONTINUATIONS)
