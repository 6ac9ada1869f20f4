"""Steps of a strategy: `ast` statements → plan steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from curatec.compiler import plan
from curatec.compiler.check import multiply, quotas, side
from curatec.compiler.check.expr import ExprChecker, Report
from curatec.compiler.check.models import check_model_step
from curatec.compiler.check.scope import RESERVED, Scope
from curatec.compiler.core import Core
from curatec.compiler.fields import FIELDS, INNER, SETTABLE
from curatec.compiler.statements import stable_name, verb
from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Name
from curatec.dsl.source import Source, Span

# Settings of the whole strategy more than steps: a label would say what the verb says.
_UNLABELLED = (plan.Tag, plan.Split, plan.Derive, plan.Join, plan.Render, plan.View, type(None))
REDACTIONS = ("pii", "secrets")
REDACTED = ("all", "content", "arguments", "results", "reasoning", "system")


@dataclass
class Declared:
    """What the file declares that steps may name."""

    sources: dict[str, ast.Source] = field(default_factory=dict)
    syntheses: dict[str, ast.Synthesis] = field(default_factory=dict)
    tables: dict[str, plan.Table] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    sealed: dict[str, plan.SealedSet] = field(default_factory=dict)
    benchmarks: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    failures: tuple[ast.Failure, ...] = ()
    homes: dict[str, Source] = field(default_factory=dict)  # the files of the failure families


@dataclass
class StepChecker:
    """Checks the statements of one list (shared, a stage, a sink) in order; `scope` grows as columns are made."""

    report: Report
    scope: Scope
    declared: Declared
    source: Source
    place: str = "shared"  # or `stage`, or a sink's name
    taken: dict[str, Span] = field(default_factory=dict)  # labels of the strategy
    decomposed: bool = False
    context: bool = False  # that `decompose` says what it shows
    rendered: bool = False
    folder: str = ""  # of the file: what a step's paths are relative to
    viewed: bool = False
    errors: int = 0
    families: Callable[[Scope], tuple[tuple[str, Core], ...]] | None = None

    # ---- helpers ----

    def expr(self, level: Level = Level.TRAJECTORY) -> ExprChecker:
        return ExprChecker(self.tell, self.scope.at(level))

    def error(self, code: str, message: str, span: Span, *help: str, note: str = "") -> None:
        self.tell(Diagnostic(code, message, span, note, help))

    def warn(self, code: str, message: str, span: Span, *help: str) -> None:
        self.tell(Diagnostic(code, message, span, "", help, severity="warning"))

    def tell(self, problem: Diagnostic) -> None:
        self.errors += problem.severity == "error"
        self.report(problem)

    def verb(self, statement: ast.Statement) -> Span:
        return verb(statement, self.source)

    def later(self, what: str, span: Span) -> None:
        self.error(
            "C0501",
            f"{what} is not available yet",
            span,
            "take it out to compile; this version parses, formats and checks it",
        )

    def known(self, what: str, name: Name, names: Iterable[str], declaration: str) -> bool:
        words = list(names)
        if name.name in words:
            return True
        listed = f"declared: {', '.join(words)}" if words else f"declare one: `{declaration}`"
        self.error("C0201", f"no {what} is called `{name}`", name.span, *(did_you_mean(name.name, words) or (listed,)))
        return False

    def one_of(self, what: str, name: Name, words: Sequence[str], code: str = "C0215") -> bool:
        """A word that the language knows."""
        if name.name in words:
            return True
        listed = ("there is " if len(words) == 1 else "there are ") + ", ".join(f"`{word}`" for word in words)
        self.error(code, f"no {what} is called `{name}`", name.span, *(did_you_mean(name.name, words) or (listed,)))
        return False

    def settable(self, name: Name) -> bool:
        if name.name in SETTABLE:
            return True
        words = " and ".join(f"`{word}`" for word in SETTABLE)
        help_ = did_you_mean(name.name, SETTABLE) or (f"a step can set {words} of a turn",)
        self.error("C0203", f"`{name}` cannot be set", name.span, *help_)
        return False

    def count(self, number: ast.Number, what: str, least: int = 1) -> int | None:
        if isinstance(number.value, float) or number.percent or number.value < least:
            self.error("C0304", f"{what} is a whole number from {least} on", number.span, f"write {least} or more")
            return None
        return number.value

    def bind(self, name: Name, type_: Type) -> None:
        """A new column of the trajectory."""
        tables = {*self.scope.tables, *self.scope.listed}
        what = (
            "a field of every trajectory"
            if name.name in FIELDS[Level.TRAJECTORY]
            else "derived before"
            if name.name in self.scope.derived
            else "a parameter"
            if name.name in self.scope.params
            else "a table"
            if name.name in tables
            else "a word of the language"
            if name.name in RESERVED
            else "a column that every row has beside its fields"
            if name.name in INNER
            else None
        )
        if what is not None:
            help_ = "choose another name; a column is never overwritten"
            self.error("C0208", f"`{name}` is taken", name.span, help_, note=f"it is {what}")
            return
        self.scope = self.scope.with_derived(name.name, type_)

    # ---- steps ----

    def check(self, statement: ast.Statement) -> plan.Step | None:
        """One statement; None when it is wrong or not available yet (it is reported then)."""
        operation = self._operation(statement)
        label = self._label(statement, operation)
        if operation is None:
            return None
        return plan.Step(
            operation,
            label,
            statement,
            statement.because,
            statement.see,
            statement.label is not None,
            statement.span,
            self.source,
        )

    def _label(self, statement: ast.Statement, operation: plan.Operation | None) -> str:
        if statement.label is not None:
            name, span = statement.label.name, statement.label.span
            if name in self.taken:
                line, _ = self.source.position(self.taken[name].start)
                self.error(
                    "C0207", f"label `{name}` is used twice", span, "choose another", note=f"first on line {line}"
                )
                return name
            self.taken[name] = span
            return name
        base = stable_name(statement)
        name, n = base, 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken[name] = statement.span
        if not isinstance(operation, _UNLABELLED):
            help_ = f"begin it with a name, as in `{name}: …`: ledger, report and diff speak labels"
            self.warn("C0405", "this step has no label", self.verb(statement), help_)
        return name

    def _operation(self, s: ast.Statement) -> plan.Operation | None:
        match s:
            case ast.Filter():
                return plan.Filter(s.verb, self.expr().condition(s.where))
            case ast.TurnsFilter():
                where = self.expr(Level.TURN).condition(s.where)
                return plan.TurnsFilter(s.verb, where, s.repair)
            case ast.TurnsSet():
                return self._turns_set(s)
            case ast.ToolsFilter():
                return plan.ToolsFilter(s.verb, self.expr(Level.TOOL).condition(s.where))
            case ast.TurnsCut():
                where = self.expr(Level.TURN).condition(s.where)
                return plan.TurnsCut(s.side, s.pick, where, s.repair)
            case ast.DedupExact():
                return quotas.dedup(self, s)
            case ast.DedupNear():
                return quotas.dedup_near(self, s)
            case ast.Limit():
                return quotas.limit_each(self, s) if s.each else quotas.limit(self, s)
            case ast.Sample():
                return quotas.sample(self, s)
            case ast.Mix():
                return quotas.mix(self, s)
            case ast.Split():
                return quotas.split(self, s)
            case ast.Join():
                return side.join(self, s)
            case ast.Decontaminate():
                return side.decontaminate(self, s)
            case ast.Decompose():
                return multiply.decompose(self, s)
            case ast.Augment():
                return multiply.augment(self, s)
            case ast.Redact():
                return self._redact(s)
            case ast.Render():
                return self._render(s)
            case ast.View():
                return self._view(s)
            case ast.Derive():
                return self._derive(s)
            case ast.Tag():
                return self._tag(s)
            case ast.Sort():
                return plan.Sort(self.expr().orders(s.by))
            case ast.Judge() | ast.Rewrite():
                check_model_step(self, s)
                return None
        raise AssertionError(s)

    def _turns_set(self, s: ast.TurnsSet) -> plan.Operation | None:
        if not self.settable(s.field):
            return None
        value = self.expr(Level.TURN).text(s.value)
        where = self.expr(Level.TURN).condition(s.where) if s.where is not None else None
        return plan.TurnsSet(s.field.name, value, where)

    def _redact(self, s: ast.Redact) -> plan.Operation | None:
        known = [self.one_of("family of redactions", family, REDACTIONS) for family in s.families]
        if not (self.one_of("place to redact", s.scope, REDACTED) and all(known)):
            return None
        return plan.Redact(tuple(dict.fromkeys(family.name for family in s.families)), s.scope.name)

    def _render(self, s: ast.Render) -> plan.Operation | None:
        if self.rendered:
            self.error("C0406", "`render` stands twice", self.verb(s), "one tokenizer counts for every sink")
            return None
        self.rendered = True
        template = s.template.value if s.template is not None else None
        return plan.Render(s.tokenizer.value, template, self.folder)

    def _view(self, s: ast.View) -> plan.Operation | None:
        if self.viewed:
            self.error("C0406", "`view` stands twice", self.verb(s), "a strategy trains one side")
            return None
        self.viewed = True
        if not self.one_of("view", s.side, ("agent", "user")):
            return None
        return plan.View("user" if s.side.name == "user" else "agent")

    def _derive(self, s: ast.Derive) -> plan.Operation | None:
        value = self.expr().value(s.value)
        null = value.type is Type.NULL
        if null:
            self.error("C0304", "this column would always be null", s.value.span, "derive it from a field")
        self.bind(s.name, Type.UNKNOWN if null else value.type)
        return None if null or value.type is Type.UNKNOWN else plan.Derive(s.name.name, value)

    def _tag(self, s: ast.Tag) -> plan.Operation | None:
        if self.scope.tagged:
            self.error("C0406", "`tag failure` stands twice", self.verb(s), "families are tagged once; keep the first")
        if not self.declared.failures:
            help_ = "declare one: `failure name { when … }`"
            self.error("C0201", "no failure family is declared", self.verb(s), help_)
        families = self.families(self.scope) if self.families else ()
        self.scope = replace(self.scope, tagged=True)
        return plan.Tag(families)
