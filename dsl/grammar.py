"""The grammar as a ready parser: built once, kept on disk, loaded in some 40 ms instead of built in 400.

`Grammar` adds what the driver and the messages ask of the tables: which states begin a statement, and in what place.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from lark import Lark
from lark.parsers.lalr_analysis import Shift

from curatec.dsl.parsing.lexicon import Lexicon

GRAMMAR_FILE = "grammar.lark"
CACHE_VARIABLE = "CURATEC_CACHE_DIR"

# The text that opens each place where statements stand. The tables say which words may begin one there.
PLACES = {
    "file": (),
    "source": ("SOURCE", "NAME", "LBRACE"),
    "table": ("TABLE", "NAME", "LBRACE"),
    "columns": ("TABLE", "NAME", "LBRACE", "COLUMNS", "LBRACE"),
    "tools": ("TOOLS", "NAME", "LBRACE"),
    "tool": ("TOOLS", "NAME", "LBRACE", "TOOL", "NAME", "LBRACE"),
    "model": ("MODEL", "NAME", "LBRACE"),
    "test set": ("TEST", "SET", "NAME", "LBRACE"),
    "workflow": ("WORKFLOW", "NAME", "LBRACE"),
    "synthesis": ("SYNTHESIS", "NAME", "LBRACE"),
    "recipe": ("RECIPE", "NAME", "LBRACE"),
    "recipe sft": ("RECIPE", "NAME", "LBRACE", "SFT", "LBRACE"),
    "recipe grpo": ("RECIPE", "NAME", "LBRACE", "GRPO", "LBRACE"),
    "benchmark": ("BENCHMARK", "NAME", "LBRACE"),
    "agent": ("BENCHMARK", "NAME", "LBRACE", "AGENT", "LBRACE"),
    "evolve": ("EVOLVE", "NAME", "LBRACE"),
    "strategy": ("STRATEGY", "NAME", "LBRACE"),
    "stage": ("STRATEGY", "NAME", "LBRACE", "STAGE", "NAME", "FROM", "NAME", "LBRACE"),
    "sink": ("STRATEGY", "NAME", "LBRACE", "EMIT", "NAME", "LBRACE"),
}
_OTHER_OPENINGS = {
    "workflow": ("WORKFLOW", "LABEL", "NAME", "LBRACE"),
    "sink": ("STRATEGY", "NAME", "LBRACE", "EMIT", "NAME", "FROM", "NAME", "LBRACE"),
}


def grammar_text() -> str:
    return (files("curatec.dsl") / GRAMMAR_FILE).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Grammar:
    """The LALR tables and the terminals of one built grammar."""

    lark: Lark

    @cached_property
    def states(self) -> dict[int, dict[str, tuple[Any, Any]]]:
        return self._conf.states  # type: ignore[no-any-return]

    @cached_property
    def callbacks(self) -> dict[Any, Any]:
        return self._conf.callbacks  # type: ignore[no-any-return]

    @cached_property
    def lexicon(self) -> Lexicon:
        return Lexicon(self.lark.terminals)

    @cached_property
    def _conf(self) -> Any:
        return self.lark.parse_interactive("").parser_state.parse_conf

    @property
    def start(self) -> int:
        return self._conf.start_state  # type: ignore[no-any-return]

    @property
    def end(self) -> int:
        return self._conf.end_state  # type: ignore[no-any-return]

    @cached_property
    def words(self) -> dict[str, str]:
        """Terminal → its text, for those that have one text."""
        return {t.name: t.pattern.value for t in self.lark.terminals if t.pattern.type == "str"}

    @cached_property
    def keywords(self) -> dict[str, str]:
        """Keyword → terminal."""
        return {text: name for name, text in self.words.items() if text[0].isalpha()}

    @cached_property
    def places(self) -> dict[int, str]:
        """Parser state at the start of a statement → the place that the statement stands in."""
        found: dict[int, str] = {}
        for place, opening in [*PLACES.items(), *_OTHER_OPENINGS.items()]:
            states = self.after(opening)
            found[states[-1]] = place
            gotos = self.states[states[-1]].items()
            found |= {goto: place for symbol, (_, goto) in gotos if symbol.startswith("__") and symbol.islower()}
        return found

    def after(self, opening: tuple[str, ...]) -> list[int]:
        states = [self.start]
        for terminal in opening:
            moved = self.shifted(states, terminal)
            assert moved is not None, (opening, terminal)
            states = moved
        return states

    @cached_property
    def starters(self) -> dict[str, frozenset[str]]:
        """Place → terminals that may begin a statement there."""
        found = {}
        for place, opening in PLACES.items():
            states = self.after(opening)
            found[place] = frozenset(t for t in self.choices(states) if t not in ("RBRACE", "$END"))
        return found

    @cached_property
    def starter_words(self) -> dict[str, frozenset[str]]:
        """Place → keywords that may begin a statement there; under "" those of all places."""
        words = {
            place: frozenset(self.words[t] for t in terminals if t in self.words)
            for place, terminals in self.starters.items()
        }
        return words | {"": frozenset().union(*words.values())}

    def choices(self, states: list[int]) -> list[str]:
        """The terminals that really can follow, sorted."""
        return sorted(t for t in self.states[states[-1]] if not t.islower() and self.accepts(states, t))

    def accepts(self, states: list[int], terminal: str) -> bool:
        return self.shifted(states, terminal) is not None

    def shifted(self, states: list[int], terminal: str) -> list[int] | None:
        """The state stack after a terminal, or None where it cannot stand. Nothing is built."""
        stack = states
        copied = False
        while True:
            found = self.states[stack[-1]].get(terminal)
            if found is None:
                return None
            action, argument = found
            if not copied:
                stack, copied = list(stack), True
            if action is Shift:
                stack.append(argument)
                return stack
            size = len(argument.expansion)
            if size:
                del stack[-size:]
            goto = self.states[stack[-1]][argument.origin.name][1]
            stack.append(goto)
            if terminal == "$END" and goto == self.end:
                return stack


@lru_cache(maxsize=1)
def grammar() -> Grammar:
    text = grammar_text()
    path = cache_path(text)
    lark = _load(path) if path else None
    if lark is None:
        lark = build_lark(text)
        if path:
            _save(lark, path)
    return Grammar(lark)


def build_lark(text: str, *, strict: bool = False) -> Lark:
    """The tables. Only the strict form, which tests look at, has Lark's contextual lexer: `Lexicon` reads the text."""
    return Lark(
        text,
        parser="lalr",
        lexer="contextual" if strict else "basic",
        propagate_positions=True,
        maybe_placeholders=False,
        strict=strict,
    )


# ---- the copy on disk ----


def cache_path(text: str) -> Path | None:
    """Where the tables of this grammar text lie for this Python and Lark, or None where there is no place."""
    folder = os.environ.get(CACHE_VARIABLE)
    if not folder:
        from platformdirs import user_cache_dir

        folder = user_cache_dir("curatec")
    digest = hashlib.sha256("\0".join((text, version("lark"), sys.version, "2")).encode()).hexdigest()[:24]
    return Path(folder) / f"grammar-{digest}.tables"


def _load(path: Path) -> Lark | None:
    """The stored tables; None where there are none, or none that this user alone may have written.

    The file is a pickle, which can run code when read, so the open file itself is looked at, not its name.
    """
    try:
        with path.open("rb") as file:
            if not _only_mine(os.fstat(file.fileno())):
                return None
            data = file.read()
        head, body = data[:32], data[32:]
        if hashlib.sha256(body).digest() != head:
            return None
        return Lark.load(io.BytesIO(body))
    except Exception:
        # Whatever is wrong with a cached file, the grammar can be built again.
        return None


def _only_mine(status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _save(lark: Lark, path: Path) -> None:
    """Written aside and renamed, so that a reader sees the whole file or none."""
    body = io.BytesIO()
    lark.save(body)
    data = body.getvalue()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).digest() + data)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return
