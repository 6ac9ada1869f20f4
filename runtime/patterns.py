"""Patterns of a spec → files: paths, folders, globs and saved data sets. Loads no engine."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .formats.containers import is_data_file
from .formats.saved import is_apart, saved_files

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = re.compile(r"[*?\[]")


class IngestError(Exception):
    """Input that cannot be read.

    `kind` is one of missing_file, empty_glob, unknown_format, outside_project, unreadable, object_store, all_rejected,
    cache; `path` is the path or pattern as given.
    """

    def __init__(self, kind: str, message: str, help: str = "", path: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.help = help
        self.path = path


def resolve(patterns: Sequence[str], base: Path, project: Path, allow: tuple[Path, ...] = ()) -> list[Path]:
    """The files that patterns name, each once: patterns in order, the files of one pattern sorted.

    A pattern is a path, a directory (searched for data files) or a glob (`**` included), relative to `base`. Of a
    folder that `datasets` has saved, the Arrow files that belong to it are taken, and nothing else. Links are followed
    before the check that every file lies in `project` or one of `allow`. Raises IngestError (missing_file, empty_glob,
    outside_project, object_store).
    """
    roots = tuple(root.resolve() for root in (project, *allow))
    found: dict[Path, Path] = {}
    for pattern in patterns:
        for path in _matches(pattern, base):
            real = path.resolve()
            if not any(real.is_relative_to(root) for root in roots):
                raise IngestError(
                    "outside_project",
                    f"{shown_as(path, base)} lies outside the project",
                    "name its directory with --allow-path to read it",
                    pattern,
                )
            found.setdefault(real, path)
    return list(found.values())


def _matches(pattern: str, base: Path) -> list[Path]:
    if _SCHEME.match(pattern):
        raise IngestError(
            "object_store",
            f"{pattern} is an address, and only files on disk can be read",
            "copy the files first, or mount the store as a directory",
            pattern,
        )
    path = base / pattern
    if path.is_dir():
        files = sorted(_searched(path))
    elif path.exists():
        return [path]
    elif _MAGIC.search(pattern):
        names = glob.glob(str(path), recursive=True)
        any_name = "." in re.split(r"[*?\]]", Path(pattern).name)[-1]  # the pattern itself says which suffix it wants
        files = sorted(file for name in names for file in _globbed(Path(name), any_name))
    else:
        raise IngestError("missing_file", f"there is no file {pattern}", near(path), pattern)
    if not files:
        kind = "directory holds no data file" if path.is_dir() else "pattern matches no file"
        raise IngestError("empty_glob", f"{pattern}: the {kind}", "", pattern)
    return files


def _globbed(path: Path, any_name: bool) -> Iterable[Path]:
    """What a match of a glob stands for: a file, or the files of a saved data set."""
    if path.is_dir():
        return saved_files(path) or ()
    return (path,) if any_name or (is_data_file(path) and not is_apart(path)) else ()


def _searched(directory: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(directory):
        saved = saved_files(Path(folder))
        if saved is not None:
            names.clear()
            yield from saved
            continue
        names[:] = sorted(name for name in names if not name.startswith("."))
        yield from (path for name in files if is_data_file(path := Path(folder, name)))


def near(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"the directory {path.parent.name or path.parent} does not exist either"
    close = difflib.get_close_matches(path.name, names, 1)
    return f"did you mean {close[0]}?" if close else ""


def shown_as(path: Path, base: Path) -> str:
    """A path relative to `base` when it was given so, else as it is."""
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
