"""Declarations that this version does not use yet: what they name, their paths and their shares are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from curatec.compiler.check.declarations import declarations, stays
from curatec.compiler.load import Module, Program
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Name
from curatec.dsl.source import Span

_LATER = {
    ast.Use: "`use` of Python functions",
    ast.Tools: "`tools`",
    ast.Model: "`model`",
    ast.Workflow: "`workflow`",
    ast.Synthesis: "`synthesis`",
    ast.Recipe: "`recipe`",
    ast.Benchmark: "`benchmark`",
    ast.Evolve: "`evolve`",
}
BENCHMARKS = ("bfcl", "tau2", "agentdojo")
CLASSES = ("matcher", "retriever", "analyzer", "aggregator", "metadata", "access")
DIFFICULTIES = ("easy", "medium", "hard")

# code, message, place, help
Problem = Callable[[str, str, Span, str], None]


def later_declarations(program: Program, allowed: tuple[Path, ...]) -> Iterator[Diagnostic]:
    """What is wrong with them, and a warning for each. Paths of all but sources are looked at here."""
    declared: dict[str, set[str]] = {}
    for _, declaration in declarations(program):
        name = getattr(declaration, "name", None)
        if isinstance(name, Name):
            declared.setdefault(declaration.kind, set()).add(name.name)
    for module, declaration in declarations(program):
        found: list[Diagnostic] = []

        def problem(code: str, message: str, span: Span, help_: str, found: list[Diagnostic] = found) -> None:
            found.append(Diagnostic(code, message, span, "", (help_,)))

        _check(declaration, declared, problem)
        _paths(declaration, module, program, allowed, problem)
        yield from (d.at(module.parsed.source) for d in found)
        what = _LATER.get(type(declaration))
        if what is None:
            continue
        name = declaration.function if isinstance(declaration, ast.Use) else getattr(declaration, "name", None)
        assert isinstance(name, Name)
        help_ = ("nothing is made of it; this version parses, formats and checks it",)
        message = f"{what} is not available yet"
        yield Diagnostic("C0501", message, name.span, "", help_, severity="warning", source=module.parsed.source)


def _check(declaration: ast.Declaration, declared: dict[str, set[str]], problem: Problem) -> None:
    def known(what: str, names: Iterable[Name | None], *builtin: str) -> None:
        words = [*sorted(declared.get(what.replace(" ", "_"), ())), *builtin]
        for name in names:
            if name is not None and name.name not in words:
                listed = f"there are: {', '.join(words)}" if words else f"declare one: `{what} {name} {{ … }}`"
                close = did_you_mean(name.name, words)
                problem("C0201", f"no {what} is called `{name}`", name.span, close[0] if close else listed)

    match declaration:
        case ast.Workflow():
            _workflow(declaration, problem)
        case ast.Synthesis():
            known("tools", [declaration.tools])
            known("workflow", declaration.workflows)
            known("model", [declaration.annotate], "template")
            _shares(declaration.difficulty, problem)
            _shares(declaration.split, problem)
        case ast.Benchmark():
            known("synthesis", [declaration.tasks if isinstance(declaration.tasks, Name) else None], *BENCHMARKS)
            known("tools", [declaration.tools])
            known("model", [declaration.agent_model])
        case ast.Evolve():
            known("strategy", [declaration.strategy])
            known("workflow", declaration.workflows)
            known("recipe", [declaration.recipe])
            known("benchmark", [declaration.benchmark])
            known("model", [declaration.propose], "rules")


def _workflow(workflow: ast.Workflow, problem: Problem) -> None:
    before: list[str] = []
    for node in workflow.nodes:
        _word("class of tools", node.op_class, CLASSES, problem)
        for name in (*node.inputs, *node.after):
            _node(name, before, problem)
        before.append(node.name.name)
    if workflow.answer is not None:
        _node(workflow.answer, before, problem)
    if workflow.difficulty is not None:
        _word("difficulty", workflow.difficulty, DIFFICULTIES, problem)


def _node(name: Name, before: list[str], problem: Problem) -> None:
    if name.name not in before:
        close = did_you_mean(name.name, before)
        help_ = close[0] if close else "a node is named before it is used"
        problem("C0201", f"no node before this is called `{name}`", name.span, help_)


def _word(what: str, name: Name, words: tuple[str, ...], problem: Problem) -> None:
    if name.name not in words:
        close = did_you_mean(name.name, words)
        listed = f"there are {', '.join(f'`{word}`' for word in words)}"
        problem("C0215", f"no {what} is called `{name}`", name.span, close[0] if close else listed)


def _shares(shares: tuple[ast.Share, ...], problem: Problem) -> None:
    total = sum(share.percent.value for share in shares)
    if shares and abs(total - 100) > 1e-9:
        gap = f"{abs(100 - total):g}% {'are missing' if total < 100 else 'are too many'}"
        problem("C0408", f"the shares sum to {total:g}%, not 100%", shares[0].span.to(shares[-1].span), gap)


def _paths(
    declaration: ast.Declaration, module: Module, program: Program, allowed: tuple[Path, ...], problem: Problem
) -> None:
    paths: tuple[ast.Text, ...] = ()
    match declaration:
        case ast.Table() | ast.SealedSet():
            paths = declaration.path
        case ast.Use():
            paths = (declaration.path,)
        case ast.Tools() if declaration.config is not None:
            paths = (declaration.config,)
    for path in paths:
        if "://" not in path.value and not stays(path.value, module, program, allowed):
            help_ = "move the files into the project, or pass `--allow-path DIR`"
            problem("C0411", "this path leaves the project", path.span, help_)
