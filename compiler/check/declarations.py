"""Declarations of a program: what exists, under which names, and what is wrong with it by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

from curatec.compiler import plan
from curatec.compiler.check.expr import ExprChecker
from curatec.compiler.check.patterns import check_pattern
from curatec.compiler.check.scope import Scope
from curatec.compiler.check.steps import Declared
from curatec.compiler.core import Const, Core
from curatec.compiler.fields import TRAJECTORY
from curatec.compiler.load import Module, Program, inside
from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span

SOURCE_FORMATS = ("auto", "openai", "trl", "tau_bench", "tau2", "sharegpt", "llamafactory", "swe_agent", "atif")
_STORES = ("s3://", "gs://", "az://", "http://", "https://", "hf://")
_COLUMN_TYPES = {"bool": Type.BOOL, "int": Type.INT, "float": Type.FLOAT, "text": Type.TEXT}
# What a source's settings may not ask: it is made from their answers, from other runs, or when all sources are read.
_SETTLED_LATER = {"id", "task", "success", "attempts", "pass_rate", "spread", "failure", "outcome"}
_KNOWN_WHILE_READ = frozenset(TRAJECTORY) - _SETTLED_LATER
# A declaration with the module that it stands in, by name.
Sites = dict[str, tuple[ast.Source, Module]]


def declarations(program: Program) -> Iterator[tuple[Module, ast.Declaration]]:
    for module in program.modules:
        for declaration in module.parsed.file.declarations:
            yield module, declaration


def declare(program: Program, problems: list[Diagnostic], allowed: tuple[Path, ...]) -> tuple[Declared, Sites]:
    """Collect all declarations; clashes and faults of single ones are reported."""
    declared, sites = Declared(), Sites()
    first: dict[tuple[str, str], tuple[Module, Name]] = {}
    for module, declaration in declarations(program):
        name = getattr(declaration, "name", None)
        if isinstance(name, Name):
            _clash(module, declaration, name, first, problems)
        match declaration:
            case ast.Source():
                declared.sources[declaration.name.name] = declaration
                sites[declaration.name.name] = (declaration, module)
            case ast.Synthesis():
                declared.syntheses[declaration.name.name] = declaration
            case ast.Table():
                declared.tables[declaration.name.name] = table(declaration, module, problems)
            case ast.Model():
                declared.models.add(declaration.name.name)
            case ast.SealedSet():
                declared.sealed[declaration.name.name] = sealed_set(declaration, module, problems)
            case ast.Benchmark():
                declared.benchmarks.add(declaration.name.name)
            case ast.Tools():
                declared.tools.add(declaration.name.name)
            case ast.Failure():
                declared.failures = (*declared.failures, declaration)
                declared.homes[declaration.name.name] = module.parsed.source
    for declaration, module in sites.values():
        _source_paths(declaration, module, program, problems, allowed)
    return declared, sites


def _space(declaration: ast.Declaration) -> str:
    """Sources and syntheses share one space: both stand behind `from`."""
    return "source" if isinstance(declaration, (ast.Source, ast.Synthesis)) else declaration.kind


def _clash(
    module: Module,
    declaration: ast.Declaration,
    name: Name,
    first: dict[tuple[str, str], tuple[Module, Name]],
    problems: list[Diagnostic],
) -> None:
    key = (_space(declaration), name.name)
    if key not in first:
        first[key] = (module, name)
        return
    other, at = first[key]
    line, _ = other.parsed.source.position(at.span.start)
    problems.append(
        Diagnostic(
            "C0202",
            f"`{name}` is declared twice",
            name.span,
            f"first in {other.parsed.source.name}:{line}",
            ("rename one of the two",),
            source=module.parsed.source,
        )
    )


def listed(declared: Declared) -> dict[str, dict[str, Type]]:
    """The columns of each declared table, its key among them."""
    return {name: {table.key: table.key_type, **dict(table.columns)} for name, table in declared.tables.items()}


def table(declared: ast.Table, module: Module, problems: list[Diagnostic]) -> plan.Table:
    """A declared table as the plan has it. The key is a text unless `columns` says its type."""
    columns = _columns(module, declared, problems)
    wanted = [("path", declared.path, 'path "reports/*.json"'), ("key", declared.key, "key task_id")]
    _lacks("table", declared.name, wanted, module, problems)
    key = declared.key.name if declared.key is not None else ""
    return plan.Table(
        declared.name.name,
        tuple(text.value for text in declared.path),
        key,
        columns.get(key, Type.TEXT),
        tuple((name, type_) for name, type_ in columns.items() if name != key),
        str(module.folder),
        declared.span,
        module.parsed.source,
    )


def sealed_set(declared: ast.SealedSet, module: Module, problems: list[Diagnostic]) -> plan.SealedSet:
    """A declared test set as the plan has it."""
    wanted = [
        ("path", declared.path, 'path "test_tasks.jsonl"'),
        ("id` or `text", declared.id or declared.text, "id task_id text instruction"),
    ]
    _lacks("test set", declared.name, wanted, module, problems)
    return plan.SealedSet(
        declared.name.name,
        tuple(text.value for text in declared.path),
        declared.id.name if declared.id is not None else None,
        declared.text.name if declared.text is not None else None,
        str(module.folder),
        declared.span,
        module.parsed.source,
    )


def _lacks(
    what: str, name: Name, wanted: Sequence[tuple[str, object, str]], module: Module, problems: list[Diagnostic]
) -> None:
    for setting, given, example in wanted:
        if not given:
            message, help_ = f"{what} `{name}` has no `{setting}`", f"for example `{example}`"
            problems.append(Diagnostic("C0410", message, name.span, "", (help_,), source=module.parsed.source))


def _columns(module: Module, table: ast.Table, problems: list[Diagnostic]) -> dict[str, Type]:
    columns: dict[str, Type] = {}
    for column in table.columns:
        if column.type.name not in _COLUMN_TYPES:
            help_ = did_you_mean(column.type.name, _COLUMN_TYPES) or (f"types: {', '.join(_COLUMN_TYPES)}",)
            problems.append(
                Diagnostic(
                    "C0304",
                    f"no type is called `{column.type}`",
                    column.type.span,
                    "",
                    help_,
                    source=module.parsed.source,
                )
            )
        columns[column.name.name] = _COLUMN_TYPES.get(column.type.name, Type.UNKNOWN)
    return columns


def _source_paths(
    source: ast.Source, module: Module, program: Program, problems: list[Diagnostic], allowed: tuple[Path, ...]
) -> None:
    def problem(code: str, message: str, span: Span, *help: str) -> None:
        problems.append(Diagnostic(code, message, span, "", help, source=module.parsed.source))

    if not source.path:
        problem(
            "C0410",
            f"source `{source.name}` has no `path`",
            source.name.span,
            'say where its files are: `path "runs/*.jsonl"`',
        )
    if source.system is not None and source.system_from is not None:
        problem("C0409", "`system` is given twice", source.system_from.span, "keep the text or the file")
    for written in (*source.path, *filter(None, (source.tools_from, source.system_from))):
        if written.value.startswith(_STORES):
            problem("C0501", "object stores are not available yet", written.span, "copy the files into the project")
        elif not stays(written.value, module, program, allowed):
            help_ = "move the files into the project, or pass `--allow-path DIR`"
            problem("C0411", "this path leaves the project", written.span, help_)
    if source.format is not None and source.format.name not in SOURCE_FORMATS:
        known = (*SOURCE_FORMATS, *sorted(point.name for point in entry_points(group="curatec.formats")))
        if source.format.name not in known:
            listed = f"the formats are {', '.join(f'`{name}`' for name in known)}"
            close = did_you_mean(source.format.name, known) or (listed,)
            problem("C0215", f"no format is called `{source.format}`", source.format.span, *close)


def stays(pattern: str, module: Module, program: Program, allowed: tuple[Path, ...]) -> bool:
    """Whether a path or glob can only name files of the project. `..` behind a wildcard could lead anywhere."""
    fixed: list[str] = []
    rest = pattern.split("/")
    while rest and not any(char in rest[0] for char in "*?["):
        fixed.append(rest.pop(0))
    where = "/".join(fixed) or ("/" if pattern.startswith("/") else ".")
    return ".." not in rest and "\0" not in pattern and inside(module.folder / where, program.project, allowed)


def corpus(source: ast.Source, module: Module, params: dict[str, Const], problems: list[Diagnostic]) -> plan.Corpus:
    """A declared source as the plan has it."""
    found: list[Diagnostic] = []
    scope = Scope(params=params, windows=False, frozen=_KNOWN_WHILE_READ)
    turn = ExprChecker(found.append, scope.at(Level.TURN))
    run = ExprChecker(found.append, scope)
    made = plan.Corpus(
        name=source.name.name,
        path=tuple(text.value for text in source.path),
        format=None if source.format is None or source.format.name == "auto" else source.format.name,
        tools_from=source.tools_from.value if source.tools_from else None,
        system=source.system.value if source.system else None,
        system_from=source.system_from.value if source.system_from else None,
        domain=source.domain.value if isinstance(source.domain, ast.Text) else None,
        domain_from_path=_from_path(source.domain, found),
        model=source.model.value if isinstance(source.model, ast.Text) else None,
        model_from_path=_from_path(source.model, found),
        error_when=turn.condition(source.error_when) if source.error_when is not None else None,
        success_when=run.condition(source.success_when) if source.success_when is not None else None,
        license=source.license.value if source.license else None,
        base=str(module.folder),
        span=source.span,
        source=module.parsed.source,
    )
    problems.extend(d.at(module.parsed.source) for d in found)
    return made


def _from_path(setting: ast.Text | ast.FromPath | None, found: list[Diagnostic]) -> str | None:
    if not isinstance(setting, ast.FromPath):
        return None
    check_pattern(found.append, setting.pattern)
    return setting.pattern.value


def families(declared: Declared, scope: Scope, report: Callable[[Diagnostic], None]) -> tuple[tuple[str, Core], ...]:
    """The failure families as predicates. They are asked before `failure` exists, and never see other runs."""
    found: list[tuple[str, Core]] = []
    inner = replace(scope, tagged=False, windows=False, words={}, family=True)
    for family in declared.failures:
        problems: list[Diagnostic] = []
        found.append((family.name.name, ExprChecker(problems.append, inner).condition(family.when)))
        for problem in problems:
            report(problem.at(declared.homes[family.name.name]))
    return tuple(found)
