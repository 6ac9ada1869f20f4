"""Which code computes something: the digest of a module and of all modules of curatec that it imports, at any depth.

No version number has to be raised by hand: what the code of a function, a step or a sink writes is kept only for as
long as that code, and the libraries that it uses, stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import xxhash

ROOT = Path(__file__).parents[2]  # the folder that holds `compiler`, `dsl` and `runtime`
_FLOORS = ("curatec.compiler", "curatec.runtime")  # what a spec says is in its plan, not in the code that read it
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<module>[\w.]+))",
    re.MULTILINE,
)
# Libraries whose results go into rows or files, by the name under which they are imported.
_LIBRARIES = {
    "polars": "polars", "pyarrow": "pyarrow", "xxhash": "xxhash", "msgspec": "msgspec", "orjson": "orjson",
    "rensa": "rensa", "tokenizers": "tokenizers", "jinja2": "jinja2", "detect_secrets": "detect-secrets",
    "phonenumbers": "phonenumbers", "stdnum": "python-stdnum", "email_validator": "email-validator",
}  # fmt: skip


@cache
def code_of(module: str) -> str:
    """32 hex digits over a module, what it imports of curatec, and the versions of the libraries that these import."""
    return _digest(_closure(module))


def libraries() -> list[str]:
    """The versions of all libraries that may have a part in rows or files."""
    return [f"{name} {_version(name)}" for name in _LIBRARIES.values()]


@cache
def own_code(module: str) -> str:
    """32 hex digits over a module alone."""
    return _digest({module})


def _digest(modules: set[str]) -> str:
    hasher = xxhash.xxh3_128()
    libraries: set[str] = set()
    for module in sorted(modules):
        text, imported = _read(module)
        hasher.update(f"{module}\0{len(text)}\0".encode())
        hasher.update(text)
        libraries.update(name.partition(".")[0] for name in imported)
    for name in sorted(libraries & _LIBRARIES.keys()):
        hasher.update(f"{name} {_version(_LIBRARIES[name])}\0".encode())
    return hasher.hexdigest()


def _closure(module: str) -> set[str]:
    found: set[str] = set()
    ahead = [module]
    while ahead:
        name = ahead.pop()
        if name not in found and _file(name) is not None:
            found.add(name)
            ahead.extend(_read(name)[1])
    return found


@cache
def _read(module: str) -> tuple[bytes, frozenset[str]]:
    """The text of a module and the names that it imports: modules, and what may be a module of a package."""
    file = _file(module)
    if file is None:
        return b"", frozenset()
    text = file.read_bytes()
    return text, frozenset(_imported(module, text.decode("utf-8", errors="replace")))


def _imported(module: str, text: str) -> Iterator[str]:
    for match in _IMPORT.finditer(text):
        if match["module"]:
            yield match["module"]
            continue
        base = _spelled_out(module, match["base"])
        yield base
        for name in re.findall(r"[\w.]+", match["names"].partition("#")[0]):
            yield f"{base}.{name}"


def _spelled_out(module: str, base: str) -> str:
    """The base of an import, a relative one (`.model`) as seen from a module."""
    name = base.lstrip(".")
    up = len(base) - len(name)
    if not up:
        return base
    file = _file(module)
    parents = module.split(".")
    package = parents if file is not None and file.name == "__init__.py" else parents[:-1]
    return ".".join([*package[: len(package) - up + 1], *([name] if name else [])])


@cache
def _file(module: str) -> Path | None:
    """Where a module of curatec lies that computes something; null for anything else."""
    if not module.startswith(_FLOORS):
        return None
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
