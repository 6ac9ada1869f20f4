"""A spec and what it imports: files → modules. The only place where the compiler reads files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from curatec.dsl import ast
from curatec.dsl.diagnostics import CuratecError, Diagnostic, did_you_mean
from curatec.dsl.parse import Parsed, decode, parse


@dataclass(frozen=True)
class Module:
    """One parsed file. `folder` is what its paths are relative to."""

    parsed: Parsed
    folder: Path
    imported: bool = False


@dataclass(frozen=True)
class Program:
    """The root module first, then imports in the order of their first mention.

    `complete` is false when an import could not be read: a name that is unknown may then be one of its.
    """

    modules: tuple[Module, ...]
    project: Path
    diagnostics: tuple[Diagnostic, ...] = field(default=())

    @property
    def root(self) -> Module:
        return self.modules[0]

    @property
    def complete(self) -> bool:
        return not self.diagnostics


# A file's text; the second argument is the name that messages show. Raises CuratecError.
Reader = Callable[[Path, str], str]


def project_of(folder: Path) -> Path:
    """The git work tree that holds a folder, else the folder: what specs may read (semantics 33)."""
    here = folder.resolve()
    return next((parent for parent in (here, *here.parents) if (parent / ".git").exists()), here)


def inside(path: Path, project: Path, allowed: tuple[Path, ...] = ()) -> bool:
    """Whether a path, links followed, stays in the project or an allowed folder."""
    real = path.resolve()
    return any(real == root or real.is_relative_to(root) for root in (project, *(a.resolve() for a in allowed)))


def load(spec: str, allowed: tuple[Path, ...] = ()) -> Program:
    """Read a spec by path or `REV:path` and everything that it imports. Raises CuratecError for an unreadable root."""
    path = Path(spec)
    if ":" in spec and not path.exists():
        return _load_revision(spec, allowed)
    return load_text(_read(path, spec), spec, path.parent, allowed)


def load_text(text: str, name: str, folder: Path, allowed: tuple[Path, ...] = ()) -> Program:
    """A program from text that lies, or would lie, in a folder."""
    return _program(text, name, folder / Path(name).name, allowed, _read)


def _program(text: str, name: str, file: Path, allowed: tuple[Path, ...], read: Reader) -> Program:
    loader = _Loader(project_of(file.parent), allowed, read)
    loader.add(Module(parse(text, name), file.parent), (file,))
    return Program(tuple(loader.modules), loader.project, tuple(loader.problems))


def _read(path: Path, shown: str) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise CuratecError.of(
            "C0601", f"there is no file `{shown}`", help="check the path; `curatec init` writes a first spec"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the path holds a null character"
        raise CuratecError.of("C0602", f"`{shown}` cannot be read: {reason}", place=shown) from None
    return _text(raw, shown)


def _text(raw: bytes, shown: str) -> str:
    decoded = decode(raw, shown)
    if isinstance(decoded, Diagnostic):
        raise CuratecError([decoded])
    return decoded.text


# ---- specs in git ----


def _load_revision(spec: str, allowed: tuple[Path, ...]) -> Program:
    """`REV:path` as git has it; the path is relative to here when it begins with `./`, as in git.

    Imported files are read from the same revision; data and checked paths are those of the work tree.
    """
    revision, _, path = spec.partition(":")
    top = Path(_git(["rev-parse", "--show-toplevel"], spec, "this folder is in no git work tree").decode().strip())
    base = Path.cwd() if path.startswith(("./", "../")) else top
    where = Path(os.path.normpath(base / path))

    def read(file: Path, shown: str) -> str:
        real = Path(os.path.normpath(file))
        if not real.is_relative_to(top):
            raise CuratecError.of("C0601", f"`{shown}` is not in the git work tree", place=shown)
        inner = real.relative_to(top).as_posix()
        missing = f"git has no `{inner}` at `{revision}`"
        return _text(_git(["show", "--end-of-options", f"{revision}:{inner}"], shown, missing), shown)

    return _program(read(where, spec), spec, where, allowed, read)


def _git(arguments: list[str], place: str, missing: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise CuratecError.of("C0602", "`REV:path` needs git, and git is not installed", place=place) from None
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise CuratecError.of("C0601", missing, help=(reason, "check the path and the revision"), place=place)
    return done.stdout


# ---- imports ----


@dataclass
class _Loader:
    """Follows imports depth first; every file is read once, under the name of its first mention."""

    project: Path
    allowed: tuple[Path, ...]
    read: Reader
    modules: list[Module] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)

    def add(self, module: Module, chain: tuple[Path, ...]) -> None:
        """`chain` are the files from the root down to this one."""
        self.modules.append(module)
        self.seen.add(chain[-1].resolve())
        for declaration in module.parsed.file.declarations:
            if isinstance(declaration, ast.Import):
                self._follow(module, declaration, chain)

    def _follow(self, importer: Module, declaration: ast.Import, chain: tuple[Path, ...]) -> None:
        written = declaration.path.value

        def problem(code: str, message: str, note: str, *lines: str) -> None:
            found = Diagnostic(code, message, declaration.path.span, note, lines, source=importer.parsed.source)
            self.problems.append(found)

        if "\0" in written:
            return problem("C0210", "this import names no file", "it holds a null character")
        target = importer.folder / written
        if not inside(target, self.project, self.allowed):
            way_out = "move the file into the project, or pass `--allow-path DIR`"
            return problem("C0411", "this import leaves the project", "", way_out)
        real = target.resolve()
        back = [file.resolve() for file in chain]
        if real in back:
            files = " → ".join([*(file.name for file in chain[back.index(real) :]), target.name])
            itself = real == back[-1]
            help_ = "leave it out" if itself else "move what both files need into a third one"
            return problem("C0210", "this import closes a circle", files, help_)
        if real in self.seen:
            return None
        shown = os.path.normpath(Path(importer.parsed.source.name).parent / written)
        try:
            text = self.read(target, shown)
        except CuratecError as error:
            for found in error.diagnostics:
                problem("C0210", found.message, found.note, *(_nearby(target) or found.help[:0] or _relative(importer)))
            return None
        return self.add(Module(parse(text, shown), target.parent, imported=True), (*chain, target))


def _nearby(target: Path) -> tuple[str, ...]:
    """The file beside a missing one that was most likely meant."""
    if target.exists() or not target.parent.is_dir():
        return ()
    return did_you_mean(target.name, (file.name for file in sorted(target.parent.glob("*.curate"))))


def _relative(importer: Module) -> tuple[str, ...]:
    return (f"the path is relative to the folder of `{Path(importer.parsed.source.name).name}`",)
