"""Around every command: signals, streams, and what a user sees when something goes wrong. Never a traceback."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import click

from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime.cli.console import show_diagnostics, tell

OK, WRONG, USAGE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130
# Errors of the command line rather than of the spec: a wrong `-D`, an unclear `--strategy`.
_USAGE_CODES = {"C0417", "C0418"}
# What a stream in ASCII shows in place of the signs that messages use.
_PLAIN = {
    "→": "->",
    "…": "...",
    "⟦": "[[",
    "⟧": "]]",
    "·": "-",
    "×": "x",
    "–": "-",
    "—": "-",
    "≥": ">=",
    "≤": "<=",
    "✓": "ok",
    "✗": "x",
}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, with what became of the output."""


class UsageProblem(CuratecError):
    """A diagnostic about the command line: exit code 2 whatever its code."""


def prepare() -> None:
    """Streams that are there and cannot fail on a character, and SIGTERM as Ctrl-C."""
    # A process may be started with closed streams (`>&-`); Python has None for them then.
    sys.stdin, sys.stdout, sys.stderr = (
        stream if stream is not None else open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )
    codecs.register_error("curatec", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="curatec")
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def guarded(work: Callable[[], int], *, as_json: bool) -> int:
    """The exit code of some work; every way it can fail is told in words."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever reads has seen enough (`| head`); the interpreter must not try to flush once more.
        _silence(sys.stdout)
        return OK
    except BaseException as error:
        _unstick(sys.stdout)
        try:
            return _told(error, as_json)
        except BrokenPipeError:
            _silence(sys.stdout)
            _silence(sys.stderr)
            return WRONG


def _unstick(stream: TextIO) -> None:
    """What a stream cannot take, because its device is full, must not stand in the way of saying so."""
    try:
        stream.flush()
    except OSError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


def _told(error: BaseException, as_json: bool) -> int:
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else WRONG
        case _ if isinstance(error, KeyboardInterrupt | click.Abort) or _in_engine(error):
            return _interrupted(error, as_json)
        case click.ClickException():
            return _usage(error, as_json)
        case CuratecError():
            show_diagnostics(error.diagnostics, as_json=as_json)
            return exit_code(error)
        case _ if _full_disk(error):
            help_ = ("free some space and run it again",)
            show_diagnostics([Diagnostic("C0613", "the disk is full", help=help_)], as_json=as_json)
            return WRONG
        case OSError() if error.errno == errno.ENAMETOOLONG:
            message = f"the name `{str(error.filename)[:60]}…` is too long for a file"
            show_diagnostics([Diagnostic("C0603", message, help=("give a shorter one",))], as_json=as_json)
            return WRONG
        case _:
            return _internal(error, as_json)


def _in_engine(error: BaseException) -> bool:
    """Ctrl-C inside polars' own Python code: its engine panics, and the panic only quotes what was raised."""
    return type(error).__name__ == "PanicException" and "KeyboardInterrupt" in str(error)


@contextmanager
def interruptible(told: str) -> Iterator[None]:
    """What is said of the output when Ctrl-C ends this, also inside the engine."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or _in_engine(error):
            raise Interrupted(told) from None
        raise


def exit_code(error: CuratecError) -> int:
    """2 when it is the command line that is wrong, else 1."""
    usage = isinstance(error, UsageProblem) or all(
        d.code in _USAGE_CODES or (d.code == "C0213" and d.span is None) for d in error.diagnostics
    )
    return USAGE if usage and error.diagnostics else WRONG


def _interrupted(error: BaseException, as_json: bool) -> int:
    # A second Ctrl-C while this is told must not end in a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    message = str(error) if isinstance(error, Interrupted) else "interrupted"
    if as_json:
        show_diagnostics([Diagnostic("interrupted", message)], as_json=True)
    else:
        tell(message)
    return INTERRUPTED


def _usage(error: click.ClickException, as_json: bool) -> int:
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "curatec"
    way_out: Sequence[str] = (f"`{path} --help` shows how it is called",)
    if as_json:
        show_diagnostics([Diagnostic("usage", message, help=tuple(way_out))], as_json=True)
    else:
        if context is not None:
            tell(context.get_usage())
        tell(f"error: {message}")
        tell(f" = help: {way_out[0]}")
    return USAGE


def _full_disk(error: BaseException) -> bool:
    from curatec.runtime.publish import full_disk

    return full_disk(error)


def _internal(error: BaseException, as_json: bool) -> int:
    """A fault of curatec itself: a short name for it, and the traceback in a file."""
    text = "".join(traceback.format_exception(error))
    frames = [f"{f.filename.rpartition('/')[2]}:{f.name}" for f in traceback.extract_tb(error.__traceback__)]
    short = hashlib.sha256("\n".join([type(error).__name__, *frames]).encode()).hexdigest()[:8]
    place = _saved(text, short)
    help_ = (
        "this is a fault of curatec, not of your spec; please report it with the file below",
        f"the details are in {place}" if place else "the details could not be saved",
    )
    message = f"internal error {short}: {type(error).__name__}: {_first_line(error)}"
    show_diagnostics([Diagnostic("C0999", message, help=help_)], as_json=as_json)
    return WRONG


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines() or [""]
    return lines[0][:200]


def _saved(text: str, short: str) -> str | None:
    try:
        number, place = tempfile.mkstemp(prefix=f"curatec-error-{short}-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError:
        return None
    return place
