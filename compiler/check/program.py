"""Names, types and rules of whole files: program → plans, with every error in one pass.

`check` reads no data and loads no model (semantics 37).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from curatec.compiler import plan
from curatec.compiler.check.declarations import corpus, declarations, declare, families, listed
from curatec.compiler.check.later_declarations import later_declarations
from curatec.compiler.check.params import params_of
from curatec.compiler.check.scope import Scope
from curatec.compiler.check.strategy import StrategyChecker
from curatec.compiler.core import Const
from curatec.compiler.load import Module, Program
from curatec.dsl import ast
from curatec.dsl.diagnostics import CuratecError, Diagnostic, did_you_mean, in_order
from curatec.dsl.source import Source, Span

_WORD = re.compile(r"[a-z_][a-z0-9_]*")
# Advice about a strategy that will not be compiled helps nobody.
_ADVICE = ("C0401", "C0402", "C0403", "C0405")
# Says that a name is unknown; it may stand in a part that could not be read.
_NAMES = ("C0201", "C0203", "C0205", "C0209", "C0213", "C0214", "C0216")
# Says that something is missing; it may be there, with a mistake in it.
_MISSING = ("C0403", "C0410")


@dataclass(frozen=True)
class Checked:
    """What a program means. `plans` holds the strategies of the root file that have no error."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]
    plans: dict[str, plan.Plan]
    strategies: tuple[str, ...]
    params: dict[str, Const]

    @property
    def ok(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)

    @property
    def effects(self) -> tuple[str, ...]:
        """What compiling may do beyond reading its own files: none of the effects exist in this version."""
        return ()

    def plan(self, name: str | None) -> plan.Plan:
        """The strategy to compile; raises CuratecError (C0417) when it is not clear which."""
        if name is None and len(self.strategies) == 1:
            name = self.strategies[0]
        if name is None:
            listed = ", ".join(f"`{strategy}`" for strategy in self.strategies)
            told = f"the file has {listed}" if self.strategies else "the file declares none"
            help_ = (
                "choose one: `--strategy NAME`" if self.strategies else "add `strategy name { from … emit sft { } }`"
            )
            raise CuratecError.of(
                "C0417", f"which strategy? {told}", help=help_, place=self.program.root.parsed.source.name
            )
        if name not in self.strategies:
            raise CuratecError.of(
                "C0417",
                f"there is no strategy `{name}`",
                help=did_you_mean(name, self.strategies) or (f"there are: {', '.join(self.strategies)}",),
                place=self.program.root.parsed.source.name,
            )
        if name not in self.plans:
            raise CuratecError(d for d in self.diagnostics if d.severity == "error")
        return self.plans[name]


def check(program: Program, given: dict[str, str] | None = None, allowed: tuple[Path, ...] = ()) -> Checked:
    """Check a program. `given` are `-D name=value` texts; a wrong one raises CuratecError (C0418)."""
    problems: list[Diagnostic] = list(program.diagnostics)
    for module in program.modules:
        problems.extend(module.parsed.diagnostics)
        problems.extend(_version(module))
    declared, sites = declare(program, problems, allowed)
    params = params_of(program, given or {}, problems)
    for source, home in sites.values():
        corpus(source, home, params, problems)
    evolved = {
        d.strategy.name for _, d in declarations(program) if isinstance(d, ast.Evolve) and d.strategy is not None
    }
    plans: dict[str, plan.Plan] = {}
    names: list[str] = []
    tagged = False
    for module, declaration in declarations(program):
        match declaration:
            case ast.Strategy(name=name):
                found: list[Diagnostic] = []
                checker = StrategyChecker(
                    found.append, declared, params, module.parsed.source, sites, str(module.folder)
                )
                made = checker.check(declaration, evolved=name.name in evolved)
                problems.extend(_of_strategy(found, module))
                tagged = tagged or any(isinstance(node, ast.Tag) for node in declaration.walk())
                if not module.imported:
                    names.append(name.name)
                    if made is not None and not any(d.severity == "error" for d in found):
                        plans[name.name] = made
            case ast.Evolve(objective=objective) if objective is not None:
                _objective(objective, module.parsed.source, problems)
    if not tagged:
        # Nobody asks for the families, so they are checked on their own.
        families(declared, Scope(params=params, listed=listed(declared), windows=False), problems.append)
    problems.extend(later_declarations(program, allowed))
    told = in_order(p for p in problems if not _may_be_told_already(p, program))
    return Checked(program, tuple(told), plans, tuple(names), params)


def _of_strategy(found: list[Diagnostic], module: Module) -> Iterator[Diagnostic]:
    """What is worth saying about one strategy. Imported ones are checked and never compiled (semantics 38)."""
    wrong = any(d.severity == "error" for d in found)
    for problem in found:
        if wrong and problem.code == "C0403":  # the filter that it misses may be the one with the error
            continue
        if module.imported and problem.code in _ADVICE:
            continue
        if module.imported and problem.code == "C0501":
            yield replace(problem, severity="warning").at(module.parsed.source)
        else:
            yield problem.at(module.parsed.source)


def _may_be_told_already(problem: Diagnostic, program: Program) -> bool:
    """Whether it may follow from a part of a file that was not understood, or from an import that is missing."""
    if problem.code.startswith(("C02", "C03", "C04")) and _beside_syntax_error(problem, program):
        return True
    if problem.code in _NAMES and problem.source is not None and problem.span is not None:
        close = any(line.startswith("did you mean") for line in problem.help)
        if not program.complete and (problem.code == "C0201" or (problem.code == "C0203" and not close)):
            return True
        words = _WORD.findall(problem.source.excerpt(problem.span))
        return any(word in module.parsed.unread for module in program.modules for word in words)
    if problem.code in _MISSING:
        return any(m.parsed.source is problem.source and not m.parsed.ok for m in program.modules)
    return False


def _beside_syntax_error(problem: Diagnostic, program: Program) -> bool:
    """Whether its line holds a syntax error: what was read there may not be what was meant."""
    module = next((m for m in program.modules if m.parsed.source is problem.source), None)
    if module is None or problem.span is None:
        return False
    line = module.parsed.source.position
    wrong = {line(d.span.start)[0] for d in module.parsed.diagnostics if d.severity == "error" and d.span is not None}
    return line(problem.span.start)[0] in wrong


def _version(module: Module) -> Iterator[Diagnostic]:
    """`curate 1` is the first line of every file."""
    source, file = module.parsed.source, module.parsed.file

    def problem(message: str, span: Span, help_: str) -> Diagnostic:
        return Diagnostic("C0415", message, span, "", (help_,), source=source)

    versions = [d for d in file.declarations if isinstance(d, ast.Version)]
    if not versions:
        if module.parsed.ok:
            first = file.declarations[0].span.start if file.declarations else 0
            yield problem("the language version is missing", Span(first, first + 1), "begin the file with `curate 1`")
        return
    for again in versions[1:]:
        yield problem("the language version is given twice", again.span, "keep the first line")
    if versions[0] is not file.declarations[0]:
        yield problem("`curate 1` is the first line of a file", versions[0].span, "move it to the top")
    number = versions[0].number
    if number.value != 1:
        yield problem(f"language version {number.value} is not known", number.span, "this compiler reads `curate 1`")


def _objective(expr: ast.Expr, source: Source, problems: list[Diagnostic]) -> None:
    """`performance - 0.3 * cost(n_ref: 100_000)`: its own two names."""
    for node in expr.walk():
        if isinstance(node, ast.Reference) and node.name != "performance":
            problems.append(
                Diagnostic(
                    "C0203",
                    f"an objective has no `{node.name}`",
                    node.span,
                    "",
                    did_you_mean(node.name, ("performance", "cost")) or ("it is made of `performance` and `cost(…)`",),
                    source=source,
                )
            )
        if isinstance(node, ast.Call) and node.function.name != "cost":
            problems.append(
                Diagnostic(
                    "C0204",
                    f"an objective has no `{node.function}`",
                    node.function.span,
                    "",
                    ("it is made of `performance` and `cost(…)`",),
                    source=source,
                )
            )
