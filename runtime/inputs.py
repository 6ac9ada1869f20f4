"""Sources of a spec → parsed parts: finds and reads what settings name, says what is wrong where the spec says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import xxhash

from curatec.compiler import plan
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.runtime import ingest
from curatec.runtime.cache import Cache


@dataclass(frozen=True)
class Input:
    """One source as read: its parsed corpus and the digest of what its settings name."""

    corpus: plan.Corpus
    parsed: ingest.Corpus
    tools: dict[str | None, str]  # domain (None: all) → tools_json from `tools from`
    system: str | None
    files_digest: str  # of the files that `tools from` and `system from` name


def read_inputs(
    corpora: Sequence[plan.Corpus],
    project: Path,
    allowed: tuple[Path, ...],
    cache: Cache,
    progress: Callable[[str, ingest.Progress], None] | None = None,
) -> tuple[Input, ...]:
    """Find and parse the files of each source; CuratecError (C06…) when that cannot be done."""
    return tuple(_read_input(corpus, project, allowed, cache, progress) for corpus in corpora)


def _read_input(
    corpus: plan.Corpus,
    project: Path,
    allowed: tuple[Path, ...],
    cache: Cache,
    progress: Callable[[str, ingest.Progress], None] | None,
) -> Input:
    base = Path(corpus.base)
    told = (lambda p: progress(corpus.name, p)) if progress is not None else None
    try:
        paths = ingest.resolve(corpus.path, base, project, allowed)
        parsed = ingest.ingest(paths, base=base, format=corpus.format, cache=cache, on_progress=told)
        side = [_side_file(name, base, project, allowed) for name in (corpus.tools_from, corpus.system_from)]
    except ingest.IngestError as error:
        raise CuratecError([_diagnostic(error, corpus)]) from None
    tools = _tools_by_domain(side[0], corpus) if side[0] is not None else {}
    system = corpus.system if side[1] is None else side[1].decode("utf-8", errors="replace")
    digest = xxhash.xxh3_128_hexdigest(b"\0".join(part or b"" for part in side))
    return Input(corpus, parsed, tools, system, digest)


def _side_file(name: str | None, base: Path, project: Path, allowed: tuple[Path, ...]) -> bytes | None:
    if name is None:
        return None
    found = ingest.resolve([name], base, project, allowed)
    try:
        return found[0].read_bytes()
    except OSError as error:
        raise ingest.IngestError("unreadable", f"`{name}` cannot be read: {error.strerror}", "", name) from error


CODES = {
    "missing_file": "C0603",
    "empty_glob": "C0604",
    "unknown_format": "C0605",
    "outside_project": "C0411",
    "unreadable": "C0602",
    "object_store": "C0501",
    "all_rejected": "C0606",
    "cache": "C0607",
}


def _diagnostic(error: ingest.IngestError, corpus: plan.Corpus) -> Diagnostic:
    return Diagnostic(
        CODES[error.kind],
        error.message,
        corpus.span,
        f"source `{corpus.name}`",
        (error.help,) if error.help else (),
        source=corpus.source,
    )


def _tools_by_domain(raw: bytes, corpus: plan.Corpus) -> dict[str | None, str]:
    """A list of tools for all runs, or an object with one list a domain."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise CuratecError.of(
            "C0602", f"`{corpus.tools_from}` is not JSON: {error}", place=str(corpus.tools_from)
        ) from None
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    listed = {None: value} if isinstance(value, list) else value
    if not isinstance(listed, dict) or not all(isinstance(tools, list) for tools in listed.values()):
        raise CuratecError.of(
            "C0602",
            f"`{corpus.tools_from}` holds no tools",
            help='write a list of tools, or an object with one list for each domain: {"airline": […]}',
            place=str(corpus.tools_from),
        )
    return {domain: orjson.dumps([_as_function(tool) for tool in tools]).decode() for domain, tools in listed.items()}


def _as_function(tool: dict[str, object]) -> dict[str, object]:
    return tool if "function" in tool else {"type": "function", "function": tool}
