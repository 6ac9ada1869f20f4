"""Text → AST with every syntax error of the file.

The driver feeds an LALR machine token by token. The machine saves itself at each statement start; at an error one
diagnostic is recorded, the saved copy put back, and reading goes on at the next line that begins a statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, in_order
from curatec.dsl.source import Source

if TYPE_CHECKING:
    from lark import Token

_WORD = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class Parsed:
    """What one file says.

    `tokens` are all terminals in order, `comments` the ignored ones (`#` to the end of the line, without the line
    end). With errors in `diagnostics`, `file` holds what could be read, `tokens` may have holes, and `unread` has the
    words of the parts that were left out: a name among them is not unknown, it was only not understood.
    """

    source: Source
    file: ast.File
    diagnostics: tuple[Diagnostic, ...]
    tokens: tuple[Token, ...]
    comments: tuple[Token, ...]
    unread: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)


def parse(text: str, name: str = "<text>") -> Parsed:
    """The file's AST as far as it can be read, and all that is wrong with its syntax. Raises nothing."""
    # Lark is 40 ms of import: only who parses pays.
    from curatec.dsl.building.build import build
    from curatec.dsl.parsing.driver import Driver
    from curatec.dsl.parsing.lexical import lone_return

    source = Source(name, text.removeprefix("\ufeff"))
    driver = Driver(source)
    file, problems = build(driver.run())
    returned = lone_return(source.text)
    problems = [*driver.problems, *problems, *([returned] if returned else [])]
    found = in_order(p.at(source) for p in problems)
    unread = frozenset(word for span in driver.skipped for word in _WORD.findall(source.excerpt(span)))
    return Parsed(source, file, tuple(found), tuple(driver.tokens), tuple(driver.scanner.comments), unread)


def read_source(path: Path, name: str | None = None) -> Source | Diagnostic:
    """A file's text; a diagnostic when it cannot be read or is not UTF-8."""
    shown = str(path) if name is None else name
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Diagnostic("C0001", f"cannot read `{shown}`: {reason.lower()}", place=shown)
    return decode(data, shown)


def decode(data: bytes, name: str) -> Source | Diagnostic:
    """UTF-8 with or without a byte order mark → text; the first wrong byte is reported with its line."""
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        # `utf-8-sig` counts from behind the mark.
        offset = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        line = data.count(b"\n", 0, offset) + 1
        way_out = "save the file as UTF-8"
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            way_out += "; it looks like UTF-16"
        elif data[:2] == b"\x1f\x8b":
            way_out = "this is a gzip file: unpack it first"
        return Diagnostic(
            "C0001",
            f"not UTF-8: byte 0x{data[offset]:02x} at offset {offset}",
            note=f"in line {line}",
            help=(way_out,),
            place=f"{name}:{line}",
        )
