"""Steps of a strategy: `ast` statements → plan steps. What is not built yet is checked and then says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from curatec.compiler import plan
from curatec.compiler.check.expr import ExprChecker, Report
from curatec.compiler.check.later import check_later
from curatec.compiler.check.scope import RESERVED, Scope
from curatec.compiler.core import Column, Core, Order
from curatec.compiler.fields import FIELDS, SETTABLE
from curatec.compiler.statements import stable_name, verb
from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Name
from curatec.dsl.source import Source, Span

DEFAULT_BEST = Column(Level.TRAJECTORY, "reward", Type.FLOAT)


@dataclass
class Declared:
    """What the file declares that steps may name."""

    sources: dict[str, ast.Source] = field(default_factory=dict)
    syntheses: dict[str, ast.Synthesis] = field(default_factory=dict)
    tables: dict[str, dict[str, Type]] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    sealed: set[str] = field(default_factory=set)
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
        tables = {*self.scope.tables, *self.scope.unjoined}
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
        if not isinstance(operation, (plan.Tag, plan.Split, plan.Derive, type(None))):
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
            case ast.DedupExact():
                return self._dedup(s)
            case ast.Limit(each=False):
                return self._limit(s)
            case ast.Sample():
                return self._sample(s)
            case ast.Derive():
                return self._derive(s)
            case ast.Tag():
                return self._tag(s)
            case ast.Sort():
                return plan.Sort(self.expr().orders(s.by))
            case ast.Split():
                return self._split(s)
        check_later(self, s)
        return None

    def _turns_set(self, s: ast.TurnsSet) -> plan.Operation | None:
        if not self.settable(s.field):
            return None
        value = self.expr(Level.TURN).text(s.value)
        where = self.expr(Level.TURN).condition(s.where) if s.where is not None else None
        return plan.TurnsSet(s.field.name, value, where)

    def _dedup(self, s: ast.DedupExact) -> plan.Operation:
        keys = tuple(self.expr().key(key) for key in s.on)
        best = self.expr().orders(s.best) or (Order(DEFAULT_BEST, descending=True),)
        return plan.Dedup(keys, best)

    def _limit(self, s: ast.Limit) -> plan.Operation | None:
        count = self.count(s.count, "a limit")
        keys = tuple(self.expr().key(key) for key in s.per)
        order = self.expr().orders(s.order)
        if not s.order:
            self.warn(
                "C0402",
                "a limit without `order by` keeps arbitrary rows",
                self.verb(s),
                "say which ones matter: `order by reward desc`",
            )
        return None if count is None else plan.Limit(count, keys, order)

    def _sample(self, s: ast.Sample) -> plan.Operation | None:
        keys = tuple(self.expr().key(key) for key in s.per)
        if s.amount.percent:
            if not 0 <= s.amount.value <= 100:
                self.error("C0304", "a share is from 0% to 100%", s.amount.span, "write a share inside")
                return None
            return plan.Sample(None, s.amount.value / 100, keys, s.seed)
        count = self.count(s.amount, "a sample", 0)
        return None if count is None else plan.Sample(count, None, keys, s.seed)

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

    def _split(self, s: ast.Split) -> plan.Operation | None:
        by = self.expr().key(s.by)
        if s.near is not None:
            self.later("`split … near text`", s.near.span)
        shares = self.shares(s.shares, s.span)
        names = [name for name, _ in shares]
        unknown = [share.name for share in s.shares if share.name.name not in ("train", "validation")]
        for name in unknown:
            held = name.name in ("dev", "holdout", "test")
            sealed = "sealed parts come from a `benchmark` or a `test set`, never from the same runs"
            help_ = sealed if held else "the parts are `train` and `validation`"
            self.error("C0408", f"a split has no part `{name}`", name.span, help_)
        if "train" not in names and not unknown:
            self.error("C0408", "a split needs `train`", self.verb(s), "for example `{ train 90% validation 10% }`")
        return plan.Split(by, shares, s.seed) if by.type is not Type.UNKNOWN and s.near is None else None

    def shares(self, shares: tuple[ast.Share, ...], span: Span) -> tuple[tuple[str, float], ...]:
        seen: set[str] = set()
        for share in shares:
            if share.name.name in seen:
                self.error("C0408", f"`{share.name}` is given twice", share.name.span, "one share for each name")
            seen.add(share.name.name)
        total = sum(share.percent.value for share in shares)
        if abs(total - 100) > 1e-9:
            place = shares[0].span.to(shares[-1].span) if shares else span
            gap = f"{abs(100 - total):g}% {'are missing' if total < 100 else 'are too many'}"
            self.error("C0408", f"the shares sum to {total:g}%, not 100%", place, gap)
        return tuple((share.name.name, share.percent.value / 100) for share in shares)
