"""Steps of a strategy: `ast` statements → plan steps. What is not built yet is checked and then says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from curatec.compiler import plan
from curatec.compiler.check_expr import ExprChecker, Report
from curatec.compiler.core import Column, Const, Core, Order, Quantifier, walk
from curatec.compiler.fields import FIELDS, SETTABLE
from curatec.compiler.scope import Scope
from curatec.compiler.types import Level, Type
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean
from curatec.dsl.nodes import Name, Node
from curatec.dsl.printer import print_node
from curatec.dsl.source import Source, Span

AUGMENTATIONS = {
    "distractors": ("n", "pool", "copies"),
    "rebind": ("entities", "copies"),
    "recover": ("max_gap",),
}
REDACTIONS = ("pii", "secrets")
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
    families: Callable[[Scope], tuple[tuple[str, Core], ...]] | None = None

    # ---- helpers ----

    def expr(self, level: Level = Level.TRAJECTORY) -> ExprChecker:
        return ExprChecker(self.report, self.scope.at(level))

    def error(self, code: str, message: str, span: Span, *help: str, note: str = "") -> None:  # noqa: A002
        self.report(Diagnostic(code, message, span, note, help))

    def warn(self, code: str, message: str, span: Span, *help: str) -> None:  # noqa: A002
        self.report(Diagnostic(code, message, span, "", help, severity="warning"))

    def later(self, what: str, span: Span) -> None:
        self.error("C0501", f"{what} is not available yet", span, "this version parses, formats and checks it")

    def known(self, what: str, name: Name, names: object) -> bool:
        words = list(names)  # type: ignore[call-overload]
        if name.name in words:
            return True
        listed = did_you_mean(name.name, words) or ((f"declared: {', '.join(words)}",) if words else ("declare one",))
        self.error("C0201", f"no {what} is called `{name}`", name.span, *listed)
        return False

    def count(self, number: ast.Number, what: str, least: int = 1) -> int | None:
        if isinstance(number.value, float) or number.percent or number.value < least:
            self.error("C0304", f"{what} is a whole number from {least} on", number.span)
            return None
        return number.value

    def bind(self, name: Name, type_: Type) -> None:
        """A new column of the trajectory."""
        taken = {**FIELDS[Level.TRAJECTORY], **self.scope.derived, **self.scope.params, **self.scope.tables}
        if name.name in taken or name.name in ("trajectory", "turn", "signal", "prev", "next", "caller", "reply"):
            self.error("C0208", f"`{name}` is taken", name.span, "choose another name; a column is never overwritten")
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
            statement_text(statement),
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
                    "C0207", f"label `{name}` is used twice", span, "choose another one", note=f"first on line {line}"
                )
            self.taken[name] = span
            return name
        base = stable_name(statement, operation)
        name, n = base, 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken[name] = statement.span
        if not isinstance(operation, (plan.Tag, plan.Split, type(None))):
            self.warn(
                "C0405",
                "this step has no label",
                statement.span,
                f"begin it with a name, `{name}: …`: ledger, report and diff speak labels",
            )
        return name

    def _operation(self, s: ast.Statement) -> plan.Operation | None:  # noqa: PLR0915
        match s:
            case ast.Filter():
                return plan.Filter(s.verb, self._sound(self.expr().condition(s.where)))
            case ast.TurnsFilter():
                where = self.expr(Level.TURN).condition(s.where)
                return plan.TurnsFilter(s.verb, where, s.repair)
            case ast.TurnsSet():
                return self._turns_set(s)
            case ast.TurnsCut():
                self.expr(Level.TURN).condition(s.where)
                self.later("`turns cut`", s.span)
            case ast.ToolsFilter():
                return plan.ToolsFilter(s.verb, self.expr(Level.TOOL).condition(s.where))
            case ast.DedupExact():
                return self._dedup(s)
            case ast.Limit():
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
            case _:
                self._not_yet(s)
        return None

    def _sound(self, where: Core) -> Core:
        return where

    def _turns_set(self, s: ast.TurnsSet) -> plan.Operation | None:
        if s.field.name not in SETTABLE:
            words = " and ".join(f"`{name}`" for name in SETTABLE)
            self.error(
                "C0203",
                f"`{s.field}` cannot be set",
                s.field.span,
                *did_you_mean(s.field.name, SETTABLE),
                f"a step can set {words}",
            )
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
        if s.each:
            if keys and keys[0].type not in (Type.TEXTS, Type.UNKNOWN):
                self.error("C0304", "`per each` goes over a list", s.per[0].span, "for example `per each tool_names`")
            else:
                self.later("`limit … per each`", s.span)
            return None
        if not s.order:
            self.warn(
                "C0402",
                "a limit without `order by` keeps arbitrary rows",
                s.span,
                "say which ones matter: `order by reward desc`",
            )
        return None if count is None else plan.Limit(count, keys, order)

    def _sample(self, s: ast.Sample) -> plan.Operation | None:
        keys = tuple(self.expr().key(key) for key in s.per)
        if s.amount.percent:
            if not 0 <= s.amount.value <= 100:
                self.error("C0304", "a share is from 0% to 100%", s.amount.span)
                return None
            return plan.Sample(None, s.amount.value / 100, keys, s.seed)
        count = self.count(s.amount, "a sample", 0)
        return None if count is None else plan.Sample(count, None, keys, s.seed)

    def _derive(self, s: ast.Derive) -> plan.Operation | None:
        value = self.expr().value(s.value)
        if value.type is Type.NULL:
            self.error("C0304", "this column would always be null", s.value.span)
        self.bind(s.name, value.type)
        return None if value.type is Type.UNKNOWN else plan.Derive(s.name.name, value)

    def _tag(self, s: ast.Tag) -> plan.Operation | None:
        if self.scope.tagged:
            self.error("C0406", "`tag failure` stands twice", s.span, "families are tagged once")
        if not self.declared.failures:
            self.error("C0201", "no failure family is declared", s.span, "declare one: `failure name { when … }`")
        families = self.families(self.scope) if self.families else ()
        self.scope = replace(self.scope, tagged=True)
        return plan.Tag(families)

    def _split(self, s: ast.Split) -> plan.Operation | None:
        by = self.expr().key(s.by)
        if s.near is not None:
            self.later("`split … near text`", s.span)
        shares = self.shares(s.shares, s.span)
        names = [name for name, _ in shares]
        unknown = [share.name for share in s.shares if share.name.name not in ("train", "validation")]
        for name in unknown:
            held = name.name in ("dev", "holdout", "test")
            help_ = (
                "sealed parts come from a benchmark or a `test set`"
                if held
                else "the parts are `train` and `validation`"
            )
            self.error("C0408", f"a split has no part `{name}`", name.span, help_)
        if "train" not in names and not unknown:
            self.error("C0408", "a split needs `train`", s.span)
        return plan.Split(by, shares, s.seed) if by.type is not Type.UNKNOWN and s.near is None else None

    def shares(self, shares: tuple[ast.Share, ...], span: Span) -> tuple[tuple[str, float], ...]:
        seen: set[str] = set()
        for share in shares:
            if share.name.name in seen:
                self.error("C0408", f"`{share.name}` is given twice", share.span)
            seen.add(share.name.name)
        total = sum(share.percent.value for share in shares)
        if abs(total - 100) > 1e-9:
            self.error(
                "C0408",
                f"the shares sum to {total:g}%, not 100%",
                shares[0].span.to(shares[-1].span) if shares else span,
            )
        return tuple((share.name.name, share.percent.value / 100) for share in shares)

    # ---- not available yet: names and types are checked all the same ----

    def _not_yet(self, s: ast.Statement) -> None:
        match s:
            case ast.Join():
                if self.known("table", s.table, self.declared.tables):
                    self.expr().key(s.on)
                    self.scope = replace(
                        self.scope, tables={**self.scope.tables, s.table.name: self.declared.tables[s.table.name]}
                    )
                self.later("`join`", s.span)
            case ast.Render():
                self.later("`render`", s.span)
            case ast.View():
                if s.side.name not in ("agent", "user"):
                    self.error("C0215", f"there is no view `{s.side}`", s.side.span, "the views are `agent` and `user`")
                self.later("`view`", s.span)
            case ast.Redact():
                for family in s.families:
                    if family.name not in REDACTIONS:
                        self.error(
                            "C0215",
                            f"nothing is called `{family}`",
                            family.span,
                            *did_you_mean(family.name, REDACTIONS),
                            "redact `pii`, `secrets` or both",
                        )
                self.later("`redact`", s.span)
            case ast.DedupNear():
                self.expr().text(s.on)
                for key in s.over:
                    self.expr().key(key)
                self.expr().orders(s.best)
                self.later("`dedup near`", s.span)
            case ast.Mix():
                for share in s.shares:
                    self.known("source", share.name, self._corpora())
                self.shares(s.shares, s.span)
                if s.by is not None and (s.by.name != "trained_tokens" or self.place != "sft"):
                    self.error("C0409", "`mix … by trained_tokens` stands in an sft sink", s.by.span)
                self.later("`mix`", s.span)
            case ast.Decompose():
                self.expr(Level.TURN).condition(s.at)
                self.decomposed = True
                self.later("`decompose`", s.span)
            case ast.Augment():
                self._augment(s)
            case ast.Judge():
                self._judge(s)
            case ast.Rewrite():
                self.known("model", s.model, self.declared.models)
                self.later("`rewrite`", s.span)
            case ast.Decontaminate():
                self.known("test set", s.against, self.declared.sealed)
                self.later("`decontaminate`", s.span)
            case _:
                raise AssertionError(s)

    def _corpora(self) -> list[str]:
        return [*self.declared.sources, *self.declared.syntheses]

    def _augment(self, s: ast.Augment) -> None:
        name = s.call.function
        if name.name not in AUGMENTATIONS:
            known = ", ".join(f"`{n}`" for n in AUGMENTATIONS)
            self.error(
                "C0204",
                f"unknown augmentation `{name}`",
                name.span,
                *(did_you_mean(name.name, AUGMENTATIONS) or (f"there are {known}",)),
            )
            return
        for argument in s.call.arguments:
            words = AUGMENTATIONS[name.name]
            if argument.name is not None and argument.name not in words:
                self.error(
                    "C0304",
                    f"`{name}` has no argument `{argument.name}`",
                    argument.span,
                    *did_you_mean(argument.name, words),
                )
        if self.decomposed and name.name in ("recover", "rebind"):
            self.error("C0406", f"`augment {name}` cannot follow `decompose`", s.span, "put it before")
        self.later("`augment`", s.span)

    def _judge(self, s: ast.Judge) -> None:
        self.known("model", s.model, self.declared.models)
        verdict = s.verdict
        type_ = Type.INT if verdict.range else Type.TEXT if verdict.choices else Type.BOOL
        if not s.turns:
            self.bind(verdict.name, type_)
        self.later("`judge`", s.span)


def statement_text(statement: ast.Statement) -> str:
    """The statement in one line, without label, reason and reference."""
    bare = statement.model_copy(update={"label": None, "because": None, "see": ()})
    return " ".join(print_node(bare).split())


def stable_name(statement: ast.Statement, operation: plan.Operation | None) -> str:
    """A name for a step without a label: verb and the names it reads, so that a new threshold keeps it."""
    verb = getattr(statement, "verb", None)
    kind = {"turns_filter": f"turns_{verb}", "filter": str(verb), "tools_filter": f"tools_{verb}"}.get(
        str(statement.kind) if hasattr(statement, "kind") else "", str(getattr(statement, "kind", "step"))
    )
    read: list[str] = []
    for node in statement.walk():
        word = _word(node)
        if word and word not in read:
            read.append(word)
    if operation is None and not read:
        return kind
    return "_".join([kind, *read[:3]])


def _word(node: Node) -> str | None:
    match node:
        case ast.Reference(name=name):
            return name
        case ast.Quantifier(quantifier=quantifier):
            return quantifier
        case ast.Attribute(name=name):
            return name.name
    return None


def constant(core: Core) -> bool:
    """Whether a predicate reads no row at all."""
    return not any(isinstance(n, (Column, Quantifier)) for n in walk(core)) and isinstance(core, Const)
