"""OUT is replaced as a whole or not at all: everything is written beside it, then the two directories change places.

A kill at any moment leaves either the old or the new OUT. What a killed run left beside it is removed by the next.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        raise CuratecError.of(
            "C0613", f"`{out.parent}` cannot be written: {error.strerror}", help="choose another place with `-o`", place=str(out)
        ) from None
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def publish(made: Path, out: Path) -> None:
    """`made` becomes OUT in one step; what OUT was goes away."""
    _sync(made)
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
    if out.is_file():
        raise CuratecError.of("C0612", f"`{out}` is a file", help="choose another place with `-o`", place=str(out))
    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
        raise CuratecError.of(
            "C0612", f"`{out}` holds other files", help="it would be replaced as a whole: choose an empty or new directory with `-o`", place=str(out)
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
