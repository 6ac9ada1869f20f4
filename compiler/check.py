"""Names, types and rules of whole files: program → plans, with every error in one pass.

`check` reads no data and loads no model (semantics 37).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from curatec.compiler import plan
from curatec.compiler.check_declarations import declare, later_declarations, params_of
from curatec.compiler.check_strategy import StrategyChecker
from curatec.compiler.core import Const
from curatec.compiler.load import Program
from curatec.dsl import ast
from curatec.dsl.diagnostics import CuratecError, Diagnostic, did_you_mean, in_order
from curatec.dsl.source import Source


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
            told = f"it has {', '.join(self.strategies)}" if self.strategies else "it declares none"
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
        return self.plans[name]


def check(program: Program, given: dict[str, str] | None = None, allowed: tuple[Path, ...] = ()) -> Checked:
    """Check a program. `given` are `-D name=value` texts; a wrong one raises CuratecError (C0418)."""
    problems: list[Diagnostic] = list(program.diagnostics)
    for module in program.modules:
        problems.extend(module.parsed.diagnostics)
    declared, sites = declare(program, problems, allowed)
    params = params_of(program, given or {}, problems)
    _version(program, problems)
    evolved = {
        d.strategy.name
        for module in program.modules
        for d in module.parsed.file.declarations
        if isinstance(d, ast.Evolve) and d.strategy is not None
    }
    plans: dict[str, plan.Plan] = {}
    names: list[str] = []
    for module in program.modules:
        for declaration in module.parsed.file.declarations:
            if isinstance(declaration, ast.Strategy):
                found: list[Diagnostic] = []
                checker = StrategyChecker(found.append, declared, params, module.parsed.source, sites)
                made = checker.check(declaration, evolved=declaration.name.name in evolved)
                problems.extend(d.at(module.parsed.source) for d in found)
                if not module.imported:
                    names.append(declaration.name.name)
                    if made is not None and not any(d.severity == "error" for d in found):
                        plans[declaration.name.name] = made
            elif isinstance(declaration, ast.Evolve) and declaration.objective is not None:
                _objective(declaration.objective, module.parsed.source, problems)
    problems.extend(later_declarations(program))
    return Checked(program, tuple(in_order(problems)), plans, tuple(names), params)


def _version(program: Program, problems: list[Diagnostic]) -> None:
    """`curate 1` is the first line of every file."""
    for module in program.modules:
        source, file = module.parsed.source, module.parsed.file
        versions = [d for d in file.declarations if isinstance(d, ast.Version)]
        if not module.parsed.ok and not versions:
            continue
        first = file.declarations[0] if file.declarations else None
        if not versions:
            problems.append(
                Diagnostic(
                    "C0415",
                    "the language version is missing",
                    file.span if first is None else first.span._replace(end=first.span.start + 1),
                    "",
                    ("begin the file with `curate 1`",),
                    source=source,
                )
            )
            continue
        if versions[0] is not first or len(versions) > 1:
            problems.append(
                Diagnostic(
                    "C0415",
                    "`curate 1` stands once, first",
                    versions[-1].span,
                    "",
                    ("move it to the first line",),
                    source=source,
                )
            )
        if versions[0].number.value != 1:
            problems.append(
                Diagnostic(
                    "C0415",
                    f"language version {versions[0].number.value} is not known",
                    versions[0].number.span,
                    "",
                    ("this compiler reads `curate 1`",),
                    source=source,
                )
            )


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
