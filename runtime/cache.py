"""A content-addressed cache of directories on disk.

An entry is a directory of files under a key that says all about its content. It is written aside and renamed, so that a
reader sees all of it or nothing; a seal lists the files, so that a damaged entry is found and written again. As git
does it, a file is taken for what it was while its size and time are: to read all that is kept would take longer than
much of what it saves. Where the time is another, the digest decides, which small files have. Processes may share a
cache. Entries that were not used for longest go first when the cache
grows over its bound; those used within the last hour stay.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import xxhash

ENVIRONMENT = "CURATEC_CACHE_DIR"
DEFAULT_BOUND = 32 << 30  # bytes
GRACE = 3600.0  # seconds
STALE = 24 * 3600.0  # seconds after which an abandoned temporary directory is removed
_SEAL = "seal.json"
_KEY = re.compile(r"[0-9a-zA-Z_-]{4,128}")
_CHUNK = 1 << 20
_SMALL = 1 << 20  # bytes up to which a file is sealed with its digest
# A file that changed this shortly before it was read may have changed once more at the same moment by its clock.
TICK = 100_000_000  # ns
_TOUCH = GRACE / 6  # seconds between two signs of life for what a process reads
_COUNT = 60.0  # seconds for which the size of the cache is taken to be what it was, plus what was put


class CacheError(OSError):
    """The cache cannot be written (permissions, a full disk); `filename` is its directory."""


class DamagedEntry(Exception):
    """A file of an entry is not what was sealed; `key` names the entry, which is not found any more."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def default_root() -> Path:
    """`$CURATEC_CACHE_DIR`, else the user's cache directory for curatec."""
    if named := os.environ.get(ENVIRONMENT):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("curatec"))


def hash_file(path: Path) -> str:
    """xxh3_128 (32 hex digits) of a file's bytes. Raises OSError."""
    with path.open("rb", buffering=0) as stream:
        digest = xxhash.xxh3_128()
        while data := stream.read(_CHUNK):
            digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Sealed:
    """What the seal says of a file: its size, the time of its last change in ns, perhaps its digest."""

    size: int
    changed: int
    digest: str | None


def stamp_of(path: Path) -> tuple[int, ...]:
    """Size, time of the last change in ns, inode: while these stay, a file holds what it held. Raises OSError."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


@dataclass(frozen=True)
class Entry:
    """A found entry: all files are there in their sizes. What they hold is looked at when they are asked for."""

    cache: Cache
    key: str
    path: Path
    files: Mapping[str, Sealed]

    def file(self, name: str) -> Path:
        """The path of a file that holds what was sealed. Raises DamagedEntry."""
        path = self.path / name
        if path not in self.cache.looked_at:
            self._look(path, self.files[name])
        return path

    def _look(self, path: Path, sealed: Sealed) -> None:
        if not _holds(path, sealed):
            raise self.damaged()
        self.cache.looked_at.add(path)

    def damaged(self) -> DamagedEntry:
        """Takes the entry out of sight; the error that says so."""
        self.cache.damaged.add(self.key)  # it may be that it cannot be removed
        self.cache.discard(self.key)
        return DamagedEntry(self.key)


class Cache:
    """`find` and `put` directories by key. `bound` is in bytes. The directory is made at the first `put`."""

    def __init__(self, root: Path | None = None, bound: int = DEFAULT_BOUND) -> None:
        self.root = root if root is not None else default_root()
        self.bound = bound
        self.looked_at: set[Path] = set()  # files that were found to be whole
        self.damaged: set[str] = set()
        self._used: set[Path] = set()  # seals of entries that this process was given
        self._touched = time.monotonic()
        self._size = 0
        self._counted: float | None = None

    def find(self, key: str) -> Entry | None:
        """An entry whose files are all there, or null. Counts as a use."""
        path = self._entry(key)
        listed = _listed(path) if key not in self.damaged else None
        if listed is None:
            return None
        self._use(path / _SEAL)
        return Entry(self, key, path, listed)

    def get(self, key: str) -> Path | None:
        """The directory of an entry, whole and unchanged, or null. Counts as a use."""
        entry = self.find(key)
        if entry is None:
            return None
        try:
            for name in entry.files:
                entry.file(name)
        except DamagedEntry:
            return None
        return entry.path

    def put(self, key: str, fill: Callable[[Path], None], digests: Mapping[str, str] | None = None) -> Path:
        """Writes an entry: `fill` puts its files into an empty directory; of some the digest may be known. Raises
        CacheError and what `fill` raises.

        When another process wrote the same key meanwhile, its entry is kept if it is whole.
        """
        entry = self._entry(key)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".new-", dir=self.root))
        except OSError as error:
            raise CacheError(error.errno, error.strerror or str(error), str(self.root)) from error
        try:
            fill(made)
            size = _seal(made, digests or {})
            entry.parent.mkdir(exist_ok=True)
            self._publish(made, entry)
        except OSError as error:
            if error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(self.root):
                raise
            raise CacheError(error.errno, error.strerror or str(error), str(self.root)) from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self.damaged.discard(key)
        self._use(entry / _SEAL)
        self._trim(size)
        return entry

    def discard(self, key: str) -> None:
        """Takes an entry out of sight at once, then removes it. One that cannot be removed stays."""
        with contextlib.suppress(OSError):
            self._discard(self._entry(key))

    def beside(self, folder: Path) -> bool:
        """Whether files of a folder can be linked into the cache."""
        try:
            return self.root.stat().st_dev == folder.stat().st_dev
        except OSError:
            return False

    def scratch(self) -> AbstractContextManager[Path]:
        """A folder whose files can be linked into the cache; it is gone afterwards. Raises CacheError."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".new-", dir=self.root))
        except OSError as error:
            raise CacheError(error.errno, error.strerror or str(error), str(self.root)) from error
        return _removed(made)

    def stay(self) -> None:
        """A sign of life, now and then, for the entries that this process was given: they are still being read."""
        if time.monotonic() - self._touched < _TOUCH:
            return
        self._touched = time.monotonic()
        for seal in self._used:
            _touch(seal)

    def _use(self, seal: Path) -> None:
        self._used.add(seal)
        _touch(seal)

    def _entry(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a cache key: {key!r}")
        return self.root / key[:2] / key

    def _publish(self, made: Path, entry: Path) -> None:
        for _ in range(3):
            try:
                made.rename(entry)
                return
            except OSError:
                if _whole(entry):
                    return
                self._discard(entry)
        made.rename(entry)

    def _discard(self, entry: Path) -> None:
        self.looked_at = {path for path in self.looked_at if path.parent != entry}
        aside = Path(tempfile.mkdtemp(prefix=".old-", dir=self.root))
        with contextlib.suppress(OSError):
            entry.rename(aside / "entry")
        shutil.rmtree(aside, ignore_errors=True)

    def _trim(self, added: int) -> None:
        """Keeps the bound, after `added` bytes. Looking at every entry takes time: it is done now and then."""
        now = time.monotonic()
        self._size += added
        if self._counted is not None and now - self._counted < _COUNT and self._size <= self.bound:
            return
        self._counted, self._size = now, self._sweep()

    def _sweep(self) -> int:
        """Removes what is too much, and what killed processes left. Returns the size of what stays."""
        now = time.time()
        entries = []
        for seal in self.root.glob(f"??/*/{_SEAL}"):
            with contextlib.suppress(OSError):
                used, listed = seal.stat().st_mtime, _said(seal.parent)
                entries.append((used, sum(file.size for file in listed.values()), seal.parent))
        total = sum(size for _, size, _ in entries)
        for used, size, entry in sorted(entries):
            if total <= self.bound or used > now - GRACE:
                break
            self._discard(entry)
            total -= size
        for left in (*self.root.glob(".new-*"), *self.root.glob(".old-*")):
            with contextlib.suppress(OSError):
                if left.stat().st_mtime < now - STALE:
                    shutil.rmtree(left, ignore_errors=True)
        return total


@contextlib.contextmanager
def _removed(folder: Path) -> Iterator[Path]:
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _touch(seal: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only cache can still be read
        os.utime(seal)


def _seal(directory: Path, digests: Mapping[str, str]) -> int:
    """Bytes of what is sealed."""
    listed: dict[str, Sealed] = {}
    for path in sorted(directory.iterdir()):
        size, changed, _ = stamp_of(path)
        digest = digests.get(path.name) or (hash_file(path) if size <= _SMALL else None)
        listed[path.name] = Sealed(size, changed, digest)
    (directory / _SEAL).write_bytes(orjson.dumps({name: asdict(file) for name, file in listed.items()}))
    return sum(file.size for file in listed.values())


def _said(entry: Path) -> dict[str, Sealed]:
    """What a seal says; nothing where it says nothing that can be read."""
    try:
        listed = orjson.loads((entry / _SEAL).read_bytes())
        return {name: Sealed(**said) for name, said in listed.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _listed(entry: Path) -> dict[str, Sealed] | None:
    """The files of an entry, if it is sealed and all are there in their sizes."""
    try:
        listed = _said(entry)
        return listed if listed and all((entry / name).stat().st_size == f.size for name, f in listed.items()) else None
    except OSError:
        return None


def _holds(path: Path, sealed: Sealed) -> bool:
    """Whether a file holds what was sealed."""
    try:
        size, changed, _ = stamp_of(path)
        return size == sealed.size and (changed == sealed.changed or hash_file(path) == sealed.digest)
    except OSError:
        return False


def _whole(entry: Path) -> bool:
    listed = _listed(entry)
    return listed is not None and all(_holds(entry / name, file) for name, file in listed.items())
