"""OUT is replaced as a whole or not at all: everything is written beside it, then the two directories change places.

A kill at any moment leaves either the old or the new OUT. What a killed run left beside it is removed by the next.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from curatec.dsl.diagnostics import CuratecError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
MANIFEST = "manifest.json"


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """An empty directory beside OUT that is gone when the block ends, however it ends."""
    _refuse_foreign(out)
    recover(out)
    stage = out.parent / f".{out.name}.curatec-{os.getpid()}"
    shutil.rmtree(stage, ignore_errors=True)
    absent = [folder for folder in stage.parents if not folder.exists()]
    try:
        _make(stage, out)
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        for folder in absent:
            # One that holds OUT by now is not empty, and stays.
            with suppress(OSError):
                folder.rmdir()


def _make(stage: Path, out: Path) -> None:
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        message = f"`{out.parent}` cannot be written: {error.strerror}"
        raise CuratecError.of("C0613", message, help="choose another place with `-o`", place=str(out)) from None


def publish(made: Path, out: Path) -> None:
    """`made` becomes OUT in one step; what OUT was goes away."""
    _sync(made)
    with undisturbed():
        _take_place(made, out)


def _take_place(made: Path, out: Path) -> None:
    if not out.exists():
        os.rename(made, out)
        return
    old = made.with_name(made.name + ".old")
    if _exchange(made, out):
        os.rename(made, old)
    else:
        # No exchange on this file system: for a moment there is no OUT, and `recover` mends a kill right then.
        old = out.parent / f".{out.name}.curatec-old"
        os.rename(out, old)
        os.rename(made, out)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Holds back Ctrl-C and SIGTERM while an output takes its place: what comes in this moment comes too late, and is
    forgotten, so that "OUT is as it was" is always true where it is said."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def recover(out: Path) -> None:
    """Mends what killed runs left: an OUT in the middle of its exchange, directories of processes that are gone."""
    old = out.parent / f".{out.name}.curatec-old"
    if old.exists() and not out.exists():
        os.rename(old, out)
    for left in out.parent.glob(f".{out.name}.curatec-*") if out.parent.exists() else ():
        owner = left.name.removesuffix(".old").rpartition("-")[2]
        if owner == "old" or (owner.isdigit() and not _alive(int(owner))):
            shutil.rmtree(left, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _refuse_foreign(out: Path) -> None:
    """A directory with something else in it is not ours to replace."""
    if Path.cwd().is_relative_to(out.resolve()):
        help_ = "it is replaced as a whole: go to another folder first, or name a new one with `-o`"
        raise CuratecError.of("C0612", f"`{out}` is the folder that you are in", help=help_, place=str(out))
    if out.is_file():
        raise CuratecError.of("C0612", f"`{out}` is a file", help="choose another place with `-o`", place=str(out))
    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
        raise CuratecError.of(
            "C0612",
            f"`{out}` holds other files",
            help="it would be replaced as a whole: choose an empty or new directory with `-o`",
            place=str(out),
        )


def _exchange(a: Path, b: Path) -> bool:
    """Two directories change places atomically (Linux); False where that does not exist."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    return bool(libc.renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0)


def _sync(directory: Path) -> None:
    """Bytes reach the disk before the name does."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def full_disk(error: BaseException) -> bool:
    """Whether an error of any library means that the disk is full."""
    code = getattr(error, "errno", None)
    return code in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error)
