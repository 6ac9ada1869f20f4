"""A spec and what it imports: files → modules. The only place where the compiler reads files."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from curatec.dsl import ast
from curatec.dsl.diagnostics import CuratecError, Diagnostic
from curatec.dsl.parse import Parsed, decode, parse


@dataclass(frozen=True)
class Module:
    """One parsed file. `folder` is what its paths are relative to."""

    parsed: Parsed
    folder: Path
    imported: bool = False


@dataclass(frozen=True)
class Program:
    """The root module first, then imports in the order of their first mention."""

    modules: tuple[Module, ...]
    project: Path
    diagnostics: tuple[Diagnostic, ...] = field(default=())

    @property
    def root(self) -> Module:
        return self.modules[0]


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
    name, text, folder = _read_root(spec)
    return load_text(text, name, folder, allowed)


def load_text(text: str, name: str, folder: Path, allowed: tuple[Path, ...] = ()) -> Program:
    """A program from text that lies, or would lie, in a folder."""
    project = project_of(folder)
    root = Module(parse(text, name), folder)
    modules = [root]
    problems: list[Diagnostic] = []
    _imports(root, modules, problems, project, allowed, chain=((folder / Path(name).name).resolve(),))
    return Program(tuple(modules), project, tuple(problems))


def _read_root(spec: str) -> tuple[str, str, Path]:
    path = Path(spec)
    if not path.exists() and ":" in spec:
        return _read_revision(spec)
    return spec, _read(path, spec), path.parent


def _read(path: Path, shown: str) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise CuratecError.of(
            "C0601", f"there is no file `{shown}`", help="check the path; `curatec init` writes a first spec"
        ) from None
    except OSError as error:
        raise CuratecError.of("C0602", f"`{shown}` cannot be read: {error.strerror}", place=shown) from None
    return _text(raw, shown)


def _text(raw: bytes, shown: str) -> str:
    decoded = decode(raw, shown)
    if isinstance(decoded, Diagnostic):
        raise CuratecError([decoded])
    return decoded.text


def _read_revision(spec: str) -> tuple[str, str, Path]:
    """`REV:path` as git has it; the path is relative to here when it begins with `./`, as in git."""
    revision, _, path = spec.partition(":")
    try:
        shown = subprocess.run(["git", "show", spec], capture_output=True, check=False)
        top = subprocess.run(["git", "rev-parse", "--show-toplevel"], capture_output=True, check=False, text=True)
    except FileNotFoundError:
        raise CuratecError.of("C0602", "`REV:path` needs git, and git is not installed", place=spec) from None
    if shown.returncode != 0:
        reason = shown.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise CuratecError.of(
            "C0601",
            f"git has no `{path}` at `{revision}`",
            help=(reason, "check the path and the revision"),
            place=spec,
        )
    base = Path.cwd() if path.startswith("./") else Path(top.stdout.strip() or ".")
    return spec, _text(shown.stdout, spec), (base / path).parent


def _imports(
    module: Module,
    modules: list[Module],
    problems: list[Diagnostic],
    project: Path,
    allowed: tuple[Path, ...],
    chain: tuple[Path, ...],
) -> None:
    for declaration in module.parsed.file.declarations:
        if not isinstance(declaration, ast.Import):
            continue
        target = module.folder / declaration.path.value
        real = target.resolve()

        def problem(code: str, message: str, *help: str, at: ast.Import = declaration) -> None:  # noqa: A002
            problems.append(Diagnostic(code, message, at.path.span, "", help, source=module.parsed.source))

        if not inside(target, project, allowed):
            problem("C0411", "this import leaves the project", "move the file into the project, or pass `--allow-path`")
        elif real in chain:
            problem("C0210", "this import comes back to itself", "move what both need into a third file")
        elif not any(real == _place(m) for m in modules):
            _import_one(declaration, target, modules, problems, project, allowed, chain, module)


def _place(module: Module) -> Path:
    return (module.folder / Path(module.parsed.source.name).name).resolve()


def _import_one(
    declaration: ast.Import,
    target: Path,
    modules: list[Module],
    problems: list[Diagnostic],
    project: Path,
    allowed: tuple[Path, ...],
    chain: tuple[Path, ...],
    importer: Module,
) -> None:
    shown = str(Path(importer.parsed.source.name).parent / declaration.path.value)
    try:
        text = _read(target, shown)
    except CuratecError as error:
        problems.extend(
            Diagnostic("C0210", d.message, declaration.path.span, "", d.help[:0], source=importer.parsed.source)
            for d in error.diagnostics
        )
        return
    module = Module(parse(text, shown), target.parent, imported=True)
    modules.append(module)
    _imports(module, modules, problems, project, allowed, (*chain, target.resolve()))
