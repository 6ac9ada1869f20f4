"""Reads a corpus of raw trajectories into parts, once: what was read before comes from the cache.

The cache is keyed by the content of the files, the formats' versions and the tables' columns; a file's name or place
plays no part in it. Small files share parts, long files give several, so that every part is bounded.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import orjson
import xxhash

from .cache import Cache, CacheError
from .formats import adapters
from .formats.counts import COUNTS
from .formats.model import Adapter
from .formats.parse import PART_TEXT, Contents, format_of, pieces
from .formats.pool import Died, Pool, Stopped, cores
from .formats.worker import Task, perform
from .patterns import IngestError, near, resolve, shown_as
from .scan import scanned
from .tables import RUNS, TURNS

__all__ = ["Cache", "Corpus", "IngestError", "Part", "Progress", "Reject", "ingest", "resolve"]

_FORM = 2  # of entries: goes up when their files or the digests of runs change
_LITTLE = 16 << 20  # bytes that are read before other processes are at work
_TICK = 0.1  # seconds
_GROUP_LEAST = PART_TEXT // 8  # bytes; a group is not closed early below this


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that could not be read. `line` is as in `RUNS.line`, 0 for the file as a whole; `raw` is capped."""

    file: str
    line: int
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class Part:
    """Two files for `formats.part`: RUNS with its counts, and TURNS. `RUNS.file` is an index into `files`."""

    runs: Path
    turns: Path
    files: tuple[str, ...]
    n_runs: int
    n_turns: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that was read. `formats` counts runs by format; `empty_files` held no record at all."""

    parts: tuple[Part, ...]
    rejects: tuple[Reject, ...]
    formats: dict[str, int]
    files: tuple[str, ...]
    empty_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far reading has come; bytes are those of the files on disk."""

    files_done: int
    files_total: int
    bytes_done: int
    bytes_total: int
    runs: int


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    shown: str
    size: int
    digest: str
    stamp: int  # time of the last change, ns
    cuts: tuple[tuple[int, int], ...]


def ingest(
    paths: Sequence[Path],
    *,
    base: Path,
    format: str | None = None,
    cache: Cache | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    processes: int | None = None,
) -> Corpus:
    """Reads files into parts, or finds them in the cache.

    `format` names an adapter; null or "auto" recognises each file by its content. Files that no adapter recognises are
    rejected as a whole when others are read. Raises IngestError when a file cannot be opened, when nothing at all could
    be read (unknown_format, all_rejected), or when the cache cannot be written. Reading takes `processes` at a time, by
    default one for each core, or none but this one where there is little to read.
    """
    forced = _forced(format)
    store = cache if cache is not None else Cache()
    files = [_opened(path, base, store) for path in paths]
    groups = _groups(files)
    meter = _Meter(files, on_progress)
    directories = _Reading(forced, store, meter, processes or cores()).directories(groups)
    entries = [
        (tuple(file.shown for file in group), directory, Contents.load(directory))
        for group, directory in zip(groups, directories, strict=True)
    ]
    return _corpus(files, entries)


def _forced(format: str | None) -> Adapter | None:
    if format in (None, "auto"):
        return None
    known = adapters()
    if format not in known:
        close = difflib.get_close_matches(str(format), known, 1)
        advice = f"did you mean {close[0]}? " if close else ""
        raise IngestError("unknown_format", f"there is no format {format}", f"{advice}known: {', '.join(known)}")
    return known[str(format)]


def _opened(path: Path, base: Path, store: Cache) -> _File:
    shown = shown_as(path, base)
    try:
        status = path.stat()
        found = scanned(path, PART_TEXT, store)
        return _File(path, shown, status.st_size, found.digest, status.st_mtime_ns, found.cuts)
    except FileNotFoundError:
        raise IngestError("missing_file", f"there is no file {shown}", near(path), shown) from None
    except OSError as error:
        raise IngestError("unreadable", f"{shown} cannot be read: {error.strerror}", "", shown) from error


_Group = tuple[_File, ...]


def _groups(files: Sequence[_File]) -> list[_Group]:
    """Files that share a cache entry: in order of their digests, closed where a digest says so or the group is full.

    Boundaries depend on contents alone: a file more or less changes one group, or two, not all that follow.
    """
    groups: list[list[_File]] = []
    held = 0
    for file in sorted(files, key=lambda file: (file.digest, file.shown)):
        if not groups or held + file.size > PART_TEXT:
            groups.append([])
            held = 0
        groups[-1].append(file)
        held += file.size
        if held >= _GROUP_LEAST and int(file.digest[-1], 16) < 4:
            held = PART_TEXT
    return [tuple(group) for group in groups]


def _key(group: _Group, forced: Adapter | None) -> str:
    used = [forced] if forced is not None else list(adapters().values())
    versions = [(adapter.name, adapter.version) for adapter in used]
    columns = [str(RUNS), str(TURNS), str(COUNTS)]
    content = [_FORM, columns, PART_TEXT, forced is None, versions, [file.digest for file in group]]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(content))


class _Reading:
    """Finds the entries of groups, and makes those that are not there."""

    def __init__(self, forced: Adapter | None, store: Cache, meter: _Meter, processes: int) -> None:
        self._forced = forced
        self._store = store
        self._meter = meter
        self._processes = processes
        self._pool: Pool | None = None  # null: this process reads

    def directories(self, groups: Sequence[_Group]) -> list[Path]:
        found = {group: self._store.get(_key(group, self._forced)) for group in groups}
        missing = [group for group, directory in found.items() if directory is None]
        for group, directory in found.items():
            if directory is not None:
                self._meter.finished(group, Contents.load(directory))
        if self._processes == 1 or sum(file.size for group in missing for file in group) < _LITTLE:
            return [directory or self._made(group) for group, directory in found.items()]
        made = self._all_made(missing)
        return [directory or made[group] for group, directory in found.items()]

    def _all_made(self, groups: Sequence[_Group]) -> dict[_Group, Path]:
        """New entries, several at a time."""
        with ThreadPoolExecutor(self._processes) as threads, Pool(self._processes) as self._pool:
            futures = {group: threads.submit(self._made, group) for group in groups}
            pending = set(futures.values())
            while pending:  # now and then, since a signal does not end a wait once polars is loaded
                done, pending = wait(pending, _TICK, FIRST_EXCEPTION)
                for error in (future.exception() for future in done):
                    if error is not None and not isinstance(error, Stopped):
                        raise error
            return {group: future.result() for group, future in futures.items()}

    def _made(self, group: _Group) -> Path:
        """The directory of a new entry."""
        try:
            directory = self._store.put(_key(group, self._forced), lambda directory: self._fill(group, directory))
        except CacheError as error:
            raise IngestError(
                "cache",
                f"the cache in {self._store.root} cannot be written: {error.strerror}",
                "set CURATEC_CACHE_DIR to a directory with free space",
                str(self._store.root),
            ) from error
        except OSError as error:
            shown = next((f.shown for f in group if str(f.path) == str(error.filename)), str(error.filename or ""))
            raise IngestError("unreadable", f"{shown} cannot be read: {error.strerror or error}", "", shown) from error
        return directory

    def _fill(self, group: _Group, directory: Path) -> None:
        contents = Contents()
        for found in self._performed(group, directory):
            contents.add(found)
        contents.save(directory)
        for file in group:
            _check_unchanged(file)
        self._meter.finished(group, contents)

    def _performed(self, group: _Group, directory: Path) -> list[Contents]:
        """What the tasks of a group give, in their order."""
        tasks = _tasks(group, self._forced, directory)
        pool = self._pool
        if pool is None:
            return [perform(task, self._meter.inside(group, number)) for number, task in enumerate(tasks)]
        try:
            futures = [pool.submit(task, self._meter.inside(group, number)) for number, task in enumerate(tasks)]
            return [future.result() for future in futures]
        except Died as death:
            shown = group[0].shown
            advice = "there may be too little memory for what runs at the same time"
            raise IngestError("unreadable", f"the process that read {shown} is gone: {death}", advice, shown) from None
        finally:
            if sys.exception() is not None:
                pool.stop()  # before the directory goes that its processes write to


def _tasks(group: _Group, forced: Adapter | None, directory: Path) -> Iterator[Task]:
    """What is read at a time: pieces of a long file of lines, else the whole group."""
    files = tuple(str(file.path) for file in group)
    adapter = format_of(group[0].path, forced) if group[0].size > PART_TEXT else None
    if adapter is None:
        yield Task(files, str(directory), forced.name if forced is not None else None)
        return
    for piece in pieces(group[0].cuts, group[0].size):
        yield Task(files, str(directory), adapter.name, piece)


def _check_unchanged(file: _File) -> None:
    """A file that was written to while it was read must not stand in the cache under its former content."""
    status = file.path.stat()
    if (status.st_size, status.st_mtime_ns) != (file.size, file.stamp):
        raise IngestError("unreadable", f"{file.shown} changed while it was read", "compile again", file.shown)


class _Meter:
    """Adds up what was read and tells it on. Groups and their tasks tell it from several threads."""

    def __init__(self, files: Sequence[_File], tell: Callable[[Progress], None] | None) -> None:
        self._tell = tell
        self._files = len(files)
        self._bytes = sum(file.size for file in files)
        self._read: dict[tuple[_Group, int], tuple[int, int, int]] = {}  # files, bytes and runs of each task
        self._lock = Lock()

    def inside(self, group: _Group, task: int) -> Callable[[int, int, int], None]:
        def tell(files_done: int, text: int, runs: int) -> None:
            size = sum(file.size for file in group[:files_done])
            if files_done < len(group):
                size += min(text, group[files_done].size)  # unpacked text may be longer than the file
            self._say((group, task), (files_done, size, runs))

        return tell

    def finished(self, group: _Group, contents: Contents) -> None:
        with self._lock:
            for task in [task for task in self._read if task[0] == group]:
                del self._read[task]
        self._say((group, 0), (len(group), sum(file.size for file in group), sum(contents.formats.values())))

    def _say(self, task: tuple[_Group, int], read: tuple[int, int, int]) -> None:
        with self._lock:
            self._read[task] = read
            if self._tell is not None:
                files, size, runs = map(sum, zip(*self._read.values(), strict=True))
                self._tell(Progress(files, self._files, size, self._bytes, runs))


def _corpus(files: Sequence[_File], entries: Sequence[tuple[tuple[str, ...], Path, Contents]]) -> Corpus:
    parts: list[Part] = []
    rejects: list[Reject] = []
    formats: Counter[str] = Counter()
    empty: list[str] = []
    unknown: list[tuple[str, str, str]] = []
    for names, directory, contents in entries:
        formats.update(contents.formats)
        empty.extend(names[index] for index in contents.empty)
        rejects.extend(Reject(names[index], line, reason, raw) for index, line, reason, raw in contents.rejects)
        unknown.extend((names[index], message, advice) for index, message, advice in contents.unknown)
        for part in contents.parts:
            paths = directory / part["runs"], directory / part["turns"]
            parts.append(Part(*paths, names, part["n_runs"], part["n_turns"]))
    rejects.sort(key=lambda reject: (reject.file, reject.line))
    if not parts and unknown:
        name, message, advice = min(unknown)
        raise IngestError("unknown_format", f"{name}: {message}", advice, name)
    if not parts and rejects:
        worst = rejects[0]
        raise IngestError(
            "all_rejected",
            f"no record could be read, {len(rejects)} failed; {worst.file} line {worst.line}: {worst.reason}",
            "",
            worst.file,
        )
    shown = tuple(file.shown for file in files)
    return Corpus(tuple(parts), tuple(rejects), dict(sorted(formats.items())), shown, tuple(sorted(empty)))
