"""A content-addressed cache of directories on disk.

An entry is a directory of files under a key that says all about its content. It is written aside and renamed, so that a
reader sees all of it or nothing; a seal lists the files with their sizes and digests, so that a damaged entry
is found and written again. Processes may share a cache. Entries that were not used for longest go first when the cache
grows over its bound; those used within the last hour stay.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
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


class CacheError(OSError):
    """The cache cannot be written (permissions, a full disk); `filename` is its directory."""


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


class Cache:
    """`get` and `put` directories by key. `bound` is in bytes. The directory is made at the first `put`."""

    def __init__(self, root: Path | None = None, bound: int = DEFAULT_BOUND) -> None:
        self.root = root if root is not None else default_root()
        self.bound = bound

    def get(self, key: str) -> Path | None:
        """The directory of an entry, whole and unchanged, or null. Counts as a use."""
        entry = self._entry(key)
        if not _sealed(entry):
            return None
        with contextlib.suppress(OSError):  # a read-only cache can still be read
            os.utime(entry / _SEAL)
        return entry

    def put(self, key: str, fill: Callable[[Path], None]) -> Path:
        """Writes an entry: `fill` puts its files into an empty directory. Raises CacheError and what `fill` raises.

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
            _seal(made)
            entry.parent.mkdir(exist_ok=True)
            self._publish(made, entry)
        except OSError as error:
            if error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(self.root):
                raise
            raise CacheError(error.errno, error.strerror or str(error), str(self.root)) from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self._trim()
        return entry

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
                if _sealed(entry):
                    return
                self._discard(entry)
        made.rename(entry)

    def _discard(self, entry: Path) -> None:
        """Takes an entry out of sight at once, then removes it."""
        aside = Path(tempfile.mkdtemp(prefix=".old-", dir=self.root))
        with contextlib.suppress(OSError):
            entry.rename(aside / "entry")
        shutil.rmtree(aside, ignore_errors=True)

    def _trim(self) -> None:
        now = time.time()
        entries = []
        for seal in self.root.glob(f"??/*/{_SEAL}"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                used = seal.stat().st_mtime
                size = sum(listed["size"] for listed in orjson.loads(seal.read_bytes()).values())
                entries.append((used, size, seal.parent))
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


def _seal(directory: Path) -> None:
    listed = {
        path.name: {"size": path.stat().st_size, "xxh3_128": hash_file(path)} for path in sorted(directory.iterdir())
    }
    (directory / _SEAL).write_bytes(orjson.dumps(listed))


def _sealed(entry: Path) -> bool:
    """True when every file of the entry is there, with the size and digest that the seal names."""
    try:
        listed = orjson.loads((entry / _SEAL).read_bytes())
        return all(
            (entry / name).stat().st_size == seal["size"] and hash_file(entry / name) == seal["xxh3_128"]
            for name, seal in listed.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
