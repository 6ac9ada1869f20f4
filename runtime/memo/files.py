"""Files that an output and the cache share, or two entries of the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link(old: Path, new: Path) -> None:
    """The same file under another name; a copy where the file system has no such thing."""
    try:
        os.link(old, new)
    except OSError:
        copy(old, new)


def lend(kept: Path, new: Path, former: Path) -> None:
    """A file of the cache for a new output: linked if no other output has it, else copied.

    Whoever edits an output in place must not change another one. What that does to the cache is found: a file is lent
    only as long as its digest is that of the seal. `former` is the file that the new one takes the place of.
    """
    allowed = 1 + _same(kept, former)
    if kept.stat().st_nlink <= allowed:
        try:
            os.link(kept, new)
        except OSError:
            copy(kept, new)
            return
        if kept.stat().st_nlink <= allowed + 1:
            return
        new.unlink()  # at this moment it was lent to another one as well
    copy(kept, new)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def copy(old: Path, new: Path) -> None:
    """A copy; where the file system can, one that shares its blocks until it is changed."""
    with old.open("rb") as source, new.open("wb") as sink:
        try:
            while os.copy_file_range(source.fileno(), sink.fileno(), 1 << 30):
                pass
        except (OSError, AttributeError):  # not between these file systems, not on this platform
            source.seek(0)
            sink.seek(0)
            sink.truncate()
            shutil.copyfileobj(source, sink, 1 << 20)
