"""The parser of the regex subset; `curatec.compiler.regex` is the way in.

A forbidden construct becomes a `RegexProblem` and is read past, so that one run names them all.
"""

from __future__ import annotations

import re
from typing import Final

from curatec.compiler.regex_tree import (
    LAST,
    Anchor,
    Chars,
    Choice,
    Group,
    Node,
    Ranges,
    Regex,
    RegexProblem,
    Repeat,
    Sequence,
    complement,
    copies,
    fold,
    matches_empty,
    size,
    union,
)

MAX_BYTES: Final = 4096
MAX_REPEAT: Final = 1000
MAX_SIZE: Final = 10_000
MAX_DEPTH: Final = 100

_DIGIT: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_SETS: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE} | {
    name: complement(ranges) for name, ranges in (("D", _DIGIT), ("W", _WORD), ("S", _SPACE))
}
_CONTROLS: Final = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11}
_NEWLINE: Final[Ranges] = ((10, 10),)
_ANY: Final[Ranges] = ((0, LAST),)
_UNKNOWN: Final = Chars(_ANY)  # stands for a part with a problem, so that nothing after it seems wrong

# --- what is named when it is refused ---------------------------------------------------------------------------------

# Openers of groups that are not in the subset, tried in this order.
_GROUPS: Final[tuple[tuple[str, str, str], ...]] = (
    (r"\(\?<?[=!]", "look-around", "match the neighbour too and extract a group, or use a second condition"),
    (r"\(\?(?:P?<\w+>|'\w+')", "named group", "write ( ) and refer to it by number"),
    (r"\(\?P[=>]\w*", "back-reference", "compare two extracted groups with =="),
    (r"\(\?>", "atomic group", "write (?: ); no engine here backtracks"),
    (r"\(\?#[^)]*", "comment", "use a # comment of the spec"),
    (r"\(\?\|", "branch reset", "write (?: ) and one group in each branch"),
    (r"\(\?\([^)]*\)?", "conditional", "write both alternatives out with |"),
    (r"\(\?(?:R|[+-]?\d+|&\w*)(?=\))", "recursion", "nested structures need another tool than a regex"),
    (r"\(\?[a-zA-Z]*(?:-[a-zA-Z]*)?[:)]", "flag", "only i, s and m, together at the very start: (?i)"),
    (r"\(\?", "unknown group", "write ( ) or (?: )"),
)
_GROUP_PATTERNS: Final = [(re.compile(text), kind, advice) for text, kind, advice in _GROUPS]

# Escapes that are not in the subset; "bad escape" where no name fits.
_ESCAPES: Final[tuple[tuple[str, str, str], ...]] = (
    (r"\\0[0-7]{0,2}|\\[1-7][0-7]{2}", "octal escape", r"write \x{41}"),
    (r"\\[1-9]\d?|\\[kg](?:<\w*>|\{\w*\}|'\w*'|\d+)?", "back-reference", "compare two extracted groups with =="),
    (
        r"\\[pP](?:\{[^}]*\}?|\w)?",
        "Unicode class",
        r"name the range, as in [\x{4e00}-\x{9fff}]: tables differ by version",
    ),
    (r"\\B", "negated word boundary", "RE2 finds it inside of a character; name the neighbours instead"),
    (r"\\Z", "end before a newline", r"write $ or \z, the very end of the text"),
    (r"\\[uU](?:\{[0-9a-fA-F]*\}?|[0-9a-fA-F]{4})?", "bad escape", r"write \x{e9}"),
    (r"\\Q|\\E", "quotation", r"escape each character, as in \."),
    (r"\\x(?:\{[^}]*\}?|[0-9a-fA-F]?)", "bad escape", r"\x41 takes two digits, \x{1f600} up to six, and no surrogate"),
    (r"\\b\{\w*-?\w*\}?", "word boundary kind", r"write \b"),
)
_ESCAPE_PATTERNS: Final = [(re.compile(text), kind, advice) for text, kind, advice in _ESCAPES]

_HEX = re.compile(r"\\x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\})")
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_FLAGS = re.compile(r"\(\?([ism]+)\)")
_SET_OPERATOR = re.compile(r"&&|--|~~")
_POSIX = re.compile(r"\[:\^?\w*:\]?|\[\.|\[=")


class _Parser:
    """Recursive descent over one pattern; a forbidden construct is noted and read past, so that all are found."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.groups = 0
        self.depth = 0
        self.problems: list[RegexProblem] = []
        self.flags = ""

    def problem(self, start: int, end: int, kind: str, advice: str, message: str = "") -> None:
        message = message or f"{kind}: `{self.text[start:end]}` is not in the regex subset"
        self.problems.append(RegexProblem(start, end, kind, message, advice))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def whole(self) -> Node:
        if match := _FLAGS.match(self.text):
            self.flags = match[1]
            self.at = match.end()
        branches = [self.choice()]
        while self.at < len(self.text):  # only a `)` can stop a choice early
            self.problem(self.at, self.at + 1, "unbalanced parenthesis", r"write \) for the character", "unmatched )")
            self.at += 1
            branches.append(self.choice())
        return Sequence(tuple(branches)) if len(branches) > 1 else branches[0]

    def choice(self) -> Node:
        branches = [self.sequence()]
        while self.take("|"):
            branches.append(self.sequence())
        return Choice(tuple(branches)) if len(branches) > 1 else branches[0]

    def sequence(self) -> Node:
        items: list[Node] = []
        while (char := self.peek()) and char not in "|)":
            start = self.at
            if char in "*+?" or _COUNT.match(self.text, self.at):
                self.quantifier()
                self.problem(start, self.at, "nothing to repeat", rf"write \{char} for the character")
                continue
            items.append(self.repeated(self.atom(), start))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    # --- repetition

    def quantifier(self) -> tuple[int, int | None] | None:
        """Read `*`, `+`, `?` or a count; None when there is none."""
        for token, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(token):
                return bounds
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return None
        start, self.at = self.at, match.end()
        if max(len(match[1]), len(match[3] or "")) > 4 or max(int(match[1]), int(match[3] or 0)) > MAX_REPEAT:
            self.problem(start, self.at, "repetition over 1,000", f"at most {{{MAX_REPEAT}}}, or * without a limit")
            return 0, 1
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        if high is not None and high < low:
            self.problem(start, self.at, "bad repetition", "the smaller number stands first")
            return 0, 1
        return low, high

    def repeated(self, item: Node, start: int) -> Node:
        mark = self.at
        bounds = self.quantifier()
        if bounds is None:
            return item
        lazy = self.take("?")
        node = Repeat(item, *bounds, lazy)
        if matches_empty(item):
            advice = "let what is repeated take at least one character; engines differ in how often nothing fits"
            self.problem(start, self.at, "repetition of the empty text", advice)
        elif copies(node) > MAX_REPEAT:
            advice = f"nested counts multiply to at most {MAX_REPEAT}"
            self.problem(mark, self.at, "repetition over 1,000", advice)
        while (again := self.at) < len(self.text) and self.quantifier() is not None:
            if self.text[again] == "+":
                self.problem(mark, self.at, "possessive quantifier", "leave the + out; no engine here backtracks")
            else:
                self.problem(mark, self.at, "double repetition", "put (?: ) around the inner repetition")
            self.problems = [p for p in self.problems if not again <= p.start < self.at]
        return node

    # --- atoms

    def atom(self) -> Node:
        char = self.peek()
        if char == "(":
            return self.group()
        if char == "[":
            return self.bracket()
        if char == "\\":
            return self.escape_outside()
        start = self.at
        self.at += 1
        if char == ".":
            return Chars(_ANY if "s" in self.flags else complement(_NEWLINE))
        if char in "^$":
            place = "start" if char == "^" else "end"
            return Anchor(f"line_{place}" if "m" in self.flags else place)
        if char == "{":
            self.problem(start, self.at, "bare brace", r"write \{ for the character, {2,5} for a count")
            return _UNKNOWN
        return self.chars([(ord(char), ord(char))])

    def chars(self, ranges: list[tuple[int, int]], negated: bool = False) -> Chars:
        folded = fold(union(ranges)) if "i" in self.flags else union(ranges)
        return Chars(complement(folded) if negated else folded)

    def group(self) -> Node:
        start = self.at
        captures = False
        if not self.take("(?:"):
            captures = not self.text.startswith("(?", self.at)
            self.at += 1
            if not captures:
                self.at = start
                if self.named(_GROUP_PATTERNS) == "flag" and self.text[self.at - 1] == ")":  # `(?i)` opens nothing
                    return Sequence(())
        self.groups += captures
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.problem(start, self.at, "too deep", f"groups nest at most {MAX_DEPTH} deep")
            self.at = len(self.text)
            return Sequence(())
        body = self.choice()
        self.depth -= 1
        if not self.take(")") and not any(p.kind in ("too deep", "unterminated class") for p in self.problems):
            self.problem(start, start + 1, "unbalanced parenthesis", r"write \( for the character", "( is never closed")
        return Group(body) if captures else body

    def named(self, table: list[tuple[re.Pattern[str], str, str]]) -> str:
        """Note the first construct of a table that stands here and read past it; its name, or ""."""
        for pattern, kind, advice in table:
            if match := pattern.match(self.text, self.at):
                self.problem(self.at, match.end(), kind, advice)
                self.at = match.end()
                return kind
        return ""

    def forbidden_escape(self, in_class: bool) -> None:
        if self.named(_ESCAPE_PATTERNS):
            return
        end = min(self.at + 2, len(self.text))
        advice = "an anchor has no meaning in a class" if in_class else r"escape only punctuation, as in \."
        self.problem(self.at, end, "bad escape", advice)
        self.at = end

    def escape(self, in_class: bool) -> Ranges | None:
        """Read an escape that stands for characters; None (and a problem) for any other."""
        if match := _HEX.match(self.text, self.at):
            code = int(match[1] or match[2], 16)
            if code <= LAST and not 0xD800 <= code <= 0xDFFF:
                self.at = match.end()
                return ((code, code),)
        char = self.text[self.at + 1 : self.at + 2]
        punctuation = " " <= char <= "~" and not char.isalnum() and char not in "<>"
        if char not in _SETS and char not in _CONTROLS and not punctuation:
            self.forbidden_escape(in_class)
            return None
        self.at += 2
        code = _CONTROLS[char] if char in _CONTROLS else ord(char)
        return _SETS.get(char, ((code, code),))

    def escape_outside(self) -> Node:
        boundary_kind = self.text.startswith(r"\b{", self.at) and not _COUNT.match(self.text, self.at + 2)
        for token, place in ((r"\A", "start"), (r"\z", "end"), (r"\b", "word")):
            if not boundary_kind and self.take(token):
                return Anchor(place)
        ranges = self.escape(in_class=False)
        return _UNKNOWN if ranges is None else self.chars(list(ranges))

    # --- classes

    def bracket(self) -> Node:
        start = self.at
        self.at += 1
        negated = self.take("^")
        first, known = self.at, len(self.problems)
        ranges: list[tuple[int, int]] = []
        while self.at == first or self.peek() != "]":
            if self.at >= len(self.text):
                advice = r"close it with ], write \[ for the character"
                self.problem(start, start + 1, "unterminated class", advice, "[ is never closed")
                return _UNKNOWN
            ranges += self.class_item(first)
        self.at += 1
        found = self.chars(ranges, negated)
        if len(self.problems) > known:
            return _UNKNOWN
        if not found.ranges:
            self.problem(start, self.at, "empty class", "no character is in this class")
        return found

    def class_item(self, first: int) -> Ranges:
        """One character, set or range of a class; nothing where a problem was noted."""
        start = self.at
        if self.peek() == "[":
            match = _POSIX.match(self.text, start)
            self.at = match.end() if match else start + 1
            if match:
                self.problem(start, self.at, "POSIX class", r"write \d, \w, \s or the range, as in [a-zA-Z]")
            else:
                self.problem(start, self.at, "nested class", r"write \[ for the character; classes do not nest")
            return ()
        if match := _SET_OPERATOR.match(self.text, start):
            self.at += 2
            advice = r"write \& \- \~ for the characters; list the range that is meant"
            self.problem(start, self.at, "set operator", advice)
            return ()
        low = self.class_char()
        if self.text[start] == "-" and start != first and self.peek() != "]":
            self.problem(start, self.at, "bad range", r"write \- for the character, or put it first or last")
            return ()
        ends_class = self.text[self.at + 1 : self.at + 2] in ("]", "-", "")
        if (start == first and self.text[start] == "-") or self.peek() != "-" or ends_class:
            return low or ()
        self.at += 1
        high = self.class_char()
        if low is None or high is None:
            return ()
        if len(low) > 1 or len(high) > 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1] or low > high:
            advice = r"a range goes from a smaller character to a larger one; write \- for the character"
            self.problem(start, self.at, "bad range", advice)
            return ()
        return ((low[0][0], high[0][1]),)

    def class_char(self) -> Ranges | None:
        if self.peek() == "\\":
            return self.escape(in_class=True)
        self.at += 1
        return ((ord(self.text[self.at - 1]),) * 2,)


def parse(pattern: str) -> Regex | tuple[RegexProblem, ...]:
    """Read a pattern of the subset; otherwise all of its problems, in the order of their places.

    Takes any text and raises nothing. An accepted pattern compiles in all three engines.
    """
    length = len(pattern.encode("utf-8", "surrogatepass"))
    if length > MAX_BYTES:
        message = f"the pattern has {length} bytes, more than {MAX_BYTES}"
        return (RegexProblem(0, len(pattern), "pattern over 4 kB", message, "use a list with `in`, or a table"),)
    parser = _Parser(pattern)
    tree = parser.whole()
    for match in re.finditer("[\ud800-\udfff]", pattern):
        parser.problem(match.start(), match.end(), "lone surrogate", "no text holds one; remove it")
    if not parser.problems and size(tree) > MAX_SIZE:
        message = "the repetitions of the pattern multiply to too many states"
        parser.problem(0, len(pattern), "pattern too large", "lower the counts, or use * and +", message)
    if parser.problems:
        return tuple(sorted(parser.problems, key=lambda p: (p.start, p.end)))
    return Regex(pattern, tree, parser.groups)
