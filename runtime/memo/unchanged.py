"""Whether there is nothing to do: what the last compile of a request read and wrote is as it was.

A record of each compile lies in the cache, apart from its entries: the files that were read and that were written, with
size, time of the last change and inode, as git has them of a work tree. Where all are as they were, and the code as
well, the output is what a compile would write. Nothing is parsed to see this, and no engine is loaded.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import xxhash

from curatec.runtime.cache import Cache, hash_file, stamp_of
from curatec.runtime.memo.code import ROOT, libraries
from curatec.runtime.patterns import IngestError, resolve
from curatec.runtime.publish import MANIFEST

if TYPE_CHECKING:
    from curatec.runtime.memo.reading import Read
    from curatec.runtime.request import Request

_FOLDER = "compiled"
_MOST = 500  # records
_ANYWHERE = (Path("/"),)  # what leaves the project was refused when it was read
_LAYOUT = 1


@dataclass(frozen=True)
class Unchanged:
    """An output that is as a compile would write it."""

    out: Path
    manifest: dict[str, Any]

    @property
    def runs(self) -> int:
        return sum(given["records"] for given in self.manifest["inputs"].values())


def unchanged(request: Request, cache: Cache | None = None) -> Unchanged | None:
    """The output of a request if there is nothing to do; null where there is, or where that is not known."""
    if request.no_cache:
        return None
    try:
        record = orjson.loads(_path(request, cache or Cache()).read_bytes())
        out = Path(record["out"])
        if record["layout"] != _LAYOUT or record["code"] != _code() or not _read_the_same(record):
            return None
        manifest = orjson.loads((out / MANIFEST).read_bytes())
        return Unchanged(request.out or out, manifest) if _intact(out, record["files"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(request: Request, read: Read | None, out: Path, digests: Mapping[str, str], cache: Cache) -> None:
    """Records a compile that published `out`, whose files have these digests (the manifest's is not among them). Null
    for what it read takes the former record away; a cache that cannot be written has none."""
    path = _path(request, cache)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if read is None:
            return
        written = {**digests, MANIFEST: hash_file(out / MANIFEST)}
        record = {
            "layout": _LAYOUT,
            "code": _code(),
            "out": str(out.absolute()),
            "read": read.files,
            "searched": read.searched,
            "files": {name: [*_stamp(out / name), digest] for name, digest in written.items()},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_bytes(orjson.dumps(record))
        aside.replace(path)
        _sweep(path.parent)


def _path(request: Request, cache: Cache) -> Path:
    """Where the record of a request lies. What never changes an output is not in its name."""
    asked = [
        str(Path.cwd()), request.spec, request.strategy, str(request.out), sorted(request.params.items()),
        sorted(str(path.absolute()) for path in request.allowed), request.limit, sorted(request.only),
    ]  # fmt: skip
    return cache.root / _FOLDER / f"{xxhash.xxh3_128_hexdigest(orjson.dumps(asked))}.json"


def _stamp(file: Path) -> list[int]:
    return list(stamp_of(file))


def search(patterns: Sequence[str], base: str) -> list[str]:
    """The files that patterns name now; none where one of them names nothing."""
    try:
        return [str(path.absolute()) for path in resolve(patterns, Path(base), Path(base), _ANYWHERE)]
    except IngestError:
        return []


def _read_the_same(record: Mapping[str, Any]) -> bool:
    """Whether the same files would be read, and hold what they held."""
    if any(_stamp(Path(file)) != stat for file, stat in record["read"].items()):
        return False
    return all(search(patterns, base) == found for patterns, base, found in record["searched"])


def _intact(out: Path, files: Mapping[str, list[Any]]) -> bool:
    """Whether the files of an output hold what was written. One that was moved or copied is read to see that."""
    for name, (size, changed, inode, digest) in files.items():
        stat = _stamp(out / name)
        if stat != [size, changed, inode] and (stat[0] != size or hash_file(out / name) != digest):
            return False
    return True


def _code() -> str:
    """What computes: the files of curatec, the libraries that it uses, Python."""
    hasher = xxhash.xxh3_128()
    for file in sorted(_sources()):
        stat = file.stat()
        hasher.update(f"{file.relative_to(ROOT)} {stat.st_size} {stat.st_mtime_ns}\0".encode())
    hasher.update("\0".join([*libraries(), sys.version]).encode())
    return hasher.hexdigest()


def _sources() -> Iterable[Path]:
    for floor in ("dsl", "compiler", "runtime"):
        for folder, names, files in os.walk(ROOT / floor):
            names[:] = [name for name in names if name != "__pycache__"]
            yield from (Path(folder, name) for name in files)


def _sweep(folder: Path) -> None:
    """The oldest records go when there are too many."""
    records = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in records[_MOST:]:
        path.unlink(missing_ok=True)
