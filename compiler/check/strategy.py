"""A strategy as a whole: order of steps, branches, sinks, expectations."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from curatec.compiler import plan
from curatec.compiler.check.declarations import Sites, corpus, families, listed
from curatec.compiler.check.expect import ExpectChecker
from curatec.compiler.check.expr import Report
from curatec.compiler.check.lints import always_true, never_true, speaks_of_outcome
from curatec.compiler.check.scope import Scope
from curatec.compiler.check.side import asked_tables
from curatec.compiler.check.sinks import SinkChecker
from curatec.compiler.check.steps import Declared, StepChecker
from curatec.compiler.core import Const, Core
from curatec.compiler.statements import statement_text, verb
from curatec.compiler.verifiers import VERIFIERS
from curatec.dsl import ast
from curatec.dsl.diagnostics import Diagnostic, did_you_mean, nearest
from curatec.dsl.nodes import Name
from curatec.dsl.source import Source, Span

SINKS = ("sft", "rl", "memory", "preference")
_SHARED_ONLY = (ast.From, ast.Split, ast.Render, ast.View, ast.Join)


@dataclass
class StrategyChecker:
    """Checks one strategy; nothing of it is kept between two."""

    report: Report
    declared: Declared
    params: dict[str, Const]
    source: Source
    sites: Sites
    folder: str  # of the file
    labels: dict[str, Span] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)  # at the end of shared, stages and sinks
    misnamed: set[str] = field(default_factory=set)  # sinks that do not exist

    def error(self, code: str, message: str, span: Span, *help: str) -> None:
        self.report(Diagnostic(code, message, span, "", help))

    def check(self, strategy: ast.Strategy, *, evolved: bool) -> plan.Plan | None:
        words = {
            "source": tuple(dict.fromkeys(n.name for i in strategy.body if isinstance(i, ast.From) for n in i.sources)),
            "failure": tuple(family.name.name for family in self.declared.failures),
        }
        scope = Scope(params=self.params, listed=listed(self.declared), signals=evolved, words=words)
        corpora = self._from(strategy)
        steps = self._steps(scope, "shared")
        shared: list[plan.Step] = []
        branches: dict[str, tuple[StepChecker, list[plan.Step]]] = {}
        stages: list[plan.Branch] = []
        sinks: list[plan.Branch] = []
        expects: list[ast.Expect] = []
        emitted: Span | None = None
        for item in strategy.body:
            match item:
                case ast.Expect():
                    expects.append(item)
                case ast.Stage():
                    emitted = emitted or item.span
                    expects.extend(step for step in item.steps if isinstance(step, ast.Expect))
                    self._stage(item, steps, branches, stages)
                case ast.Sink():
                    emitted = emitted or item.span
                    expects.extend(step for step in item.steps if isinstance(step, ast.Expect))
                    self._sink(item, steps, branches, sinks)
                case ast.From():
                    pass
                case _:
                    if emitted is not None:
                        help_ = "move it above them, or into the sink that it is for"
                        self.error("C0407", "a shared step stands after a sink or stage", self.verb(item), help_)
                    self._position(item, strategy)
                    shared.extend(self._one(steps, item))
        if not any(isinstance(item, ast.Sink) for item in strategy.body):
            self.error(
                "C0410",
                f"strategy `{strategy.name}` emits nothing",
                strategy.name.span,
                "add a sink: `emit sft { loss on assistant }`",
            )
        self.scopes["shared"] = steps.scope
        expectations = self._expectations(expects, sinks)
        self._view_of_user(strategy, shared)
        whole = plan.Plan(
            strategy.name.name,
            corpora,
            tuple(shared),
            tuple(stages),
            tuple(sinks),
            expectations,
            tuple((name, str(const.value)) for name, const in sorted(self.params.items())),
            tuple(sorted(steps.scope.derived.items())),
            asked_tables(self.declared.tables, (tuple(shared), tuple(stages), tuple(sinks), expectations)),
            tuple(self.declared.sealed[name] for name in sorted(self.declared.sealed)),
        )
        self._rollouts(whole)
        self._lint_outcome(strategy, whole)
        return whole

    def verb(self, statement: ast.Statement) -> Span:
        return verb(statement, self.source)

    # ---- from ----

    def _from(self, strategy: ast.Strategy) -> tuple[plan.Corpus, ...]:
        froms = [item for item in strategy.body if isinstance(item, ast.From)]
        if not froms:
            self.error(
                "C0410", f"strategy `{strategy.name}` has no `from`", strategy.name.span, "begin it with `from SOURCE`"
            )
            return ()
        for extra in froms[1:]:
            self.error("C0406", "`from` stands twice", self.verb(extra), "name all sources in one: `from a, b`")
        first = next(item for item in strategy.body if not isinstance(item, ast.Expect))
        if first is not froms[0]:
            self.error("C0406", "`from` comes first", self.verb(froms[0]), "move it to the top of the strategy")
        corpora: list[plan.Corpus] = []
        for name in dict.fromkeys(froms[0].sources):
            corpora.extend(self._source(name))
        for n, name in enumerate(froms[0].sources):
            if name in froms[0].sources[:n]:
                self.error("C0202", f"source `{name}` is named twice", name.span, "name it once")
        return tuple(corpora)

    def _source(self, name: Name) -> list[plan.Corpus]:
        if name.name in self.declared.syntheses:
            help_ = "name a `source`; this version parses, formats and checks a `synthesis`"
            self.error("C0501", f"`from {name}`: a `synthesis` is not available yet", name.span, help_)
            return []
        if name.name not in self.sites:
            words = [*self.declared.sources, *self.declared.syntheses]
            listed = (
                (f"declared: {', '.join(words)}",) if words else ('declare one: `source runs { path "runs/*.jsonl" }`',)
            )
            self.error("C0201", f"no source is called `{name}`", name.span, *(did_you_mean(name.name, words) or listed))
            return []
        declaration, module = self.sites[name.name]
        found: list[Diagnostic] = []
        made = corpus(declaration, module, self.params, found)
        for problem in found:
            self.report(problem)
        return [made]

    # ---- steps and branches ----

    def _steps(self, scope: Scope, place: str) -> StepChecker:
        return StepChecker(
            self.report,
            scope,
            self.declared,
            self.source,
            place,
            self.labels,
            families=self._families,
            folder=self.folder,
        )

    def _families(self, scope: Scope) -> tuple[tuple[str, Core], ...]:
        """They may use what the strategy derived before."""
        return families(self.declared, scope, self.report)

    def _one(self, steps: StepChecker, item: ast.Statement) -> list[plan.Step]:
        made = steps.check(item)
        if made is None:
            return []
        if isinstance(made.operation, plan.Filter) and isinstance(item, ast.Filter):
            self._lint_filter(made.operation, item)
        return [made]

    def _lint_filter(self, operation: plan.Filter, item: ast.Filter) -> None:
        keep = operation.verb == "keep"
        if never_true(operation.where):
            message = "this filter keeps nothing" if keep else "this filter drops nothing"
        elif not keep and always_true(operation.where):
            message = "this filter drops everything"
        else:
            return
        note = "true of no run" if never_true(operation.where) else "true of every run"
        help_ = "look at the bounds: no value lies in all of them" if keep else "look at the bounds"
        self.report(Diagnostic("C0401", message, item.where.span, note, (help_,), severity="warning"))

    def _position(self, item: ast.Statement, strategy: ast.Strategy) -> None:
        """`split` is preceded only by `from`, `join` and `derive`, and stands once."""
        if not isinstance(item, ast.Split):
            return
        before = list(itertools.takewhile(lambda other: other is not item, strategy.body))
        if any(isinstance(other, ast.Split) for other in before):
            self.error("C0406", "`split` stands twice", self.verb(item), "one split holds for every sink")
            return
        steps = [b for b in before if isinstance(b, ast.Statement)]
        wrong = next((b for b in steps if not isinstance(b, (ast.From, ast.Join, ast.Derive, ast.Expect))), None)
        if wrong is not None:
            word = self.source.excerpt(self.verb(wrong))
            line, _ = self.source.position(wrong.span.start)
            help_ = "move it up, right after `from`, so that no filter can move a task from one part to the other"
            self.report(
                Diagnostic("C0406", f"`split` stands after `{word}`", self.verb(item), f"line {line}", (help_,))
            )

    def _stage(
        self,
        stage: ast.Stage,
        shared: StepChecker,
        branches: dict[str, tuple[StepChecker, list[plan.Step]]],
        stages: list[plan.Branch],
    ) -> None:
        name = stage.name.name
        if name in branches or name in SINKS or name == "shared":
            self.error(
                "C0202",
                f"stage `{name}` is declared twice" if name in branches else f"`{name}` is taken",
                stage.name.span,
                "choose another name",
            )
            return
        base = self._base(stage.base, branches, may_be_shared=True)
        steps = self._branch(base, shared, branches, "stage")
        made = [step for item in stage.steps for step in self._inner(steps, item)]
        branches[name] = (steps, made)
        self.scopes[name] = steps.scope
        stages.append(plan.Branch(name, base, tuple(made)))

    def _base(
        self, base: Name | None, branches: dict[str, tuple[StepChecker, list[plan.Step]]], *, may_be_shared: bool
    ) -> str | None:
        if base is None or (may_be_shared and base.name == "shared"):
            return None
        if base.name not in branches:
            words = [*branches, "shared"]
            self.error(
                "C0214",
                f"no stage is called `{base}`",
                base.span,
                *(did_you_mean(base.name, words) or (f"there are: {', '.join(words)}",)),
            )
            return nearest(base.name, branches)  # so that its columns are not unknown as well
        return base.name

    def _branch(
        self,
        base: str | None,
        shared: StepChecker,
        branches: dict[str, tuple[StepChecker, list[plan.Step]]],
        place: str,
    ) -> StepChecker:
        start = branches[base][0] if base is not None else shared
        steps = self._steps(start.scope, place)
        steps.decomposed, steps.context = start.decomposed, start.context
        return steps

    def _inner(self, steps: StepChecker, item: ast.Statement) -> list[plan.Step]:
        if isinstance(item, ast.Expect):
            return []
        if isinstance(item, _SHARED_ONLY):
            word = self.source.excerpt(self.verb(item))
            self.error("C0406", f"`{word}` is a shared step", self.verb(item), "move it above the first sink or stage")
            return []
        return self._one(steps, item)

    def _sink(
        self,
        sink: ast.Sink,
        shared: StepChecker,
        branches: dict[str, tuple[StepChecker, list[plan.Step]]],
        sinks: list[plan.Branch],
    ) -> None:
        name = sink.name.name
        if name not in SINKS:
            self.misnamed.add(name)
            known = ", ".join(f"`{s}`" for s in SINKS)
            self.error(
                "C0213",
                f"nothing is emitted as `{name}`",
                sink.name.span,
                *(did_you_mean(name, SINKS) or (f"the sinks are {known}",)),
            )
            return
        if any(made.name == name for made in sinks):
            self.error("C0202", f"`emit {name}` stands twice", sink.name.span, "put both into one sink")
            return
        base = self._base(sink.base, branches, may_be_shared=True)
        steps = self._branch(base, shared, branches, name)
        made = [step for item in sink.steps for step in self._inner(steps, item)]
        target = SinkChecker(steps, sink).target()
        made = [_mixed_by(step, target) for step in made]
        self.scopes[name] = steps.scope
        sinks.append(plan.Branch(name, base, tuple(made), target))

    def _rollouts(self, whole: plan.Plan) -> None:
        """What stands above an rl sink and would make its rows impossible to win."""
        rl = next((sink for sink in whole.sinks if isinstance(sink.target, plan.Rl)), None)
        if rl is None or not isinstance(rl.target, plan.Rl):
            return
        passed = [step for _, step in whole.passed(rl)]
        for step in passed:
            if isinstance(step.operation, plan.Rebind) and step not in rl.steps:
                help_ = "a copy's task is not verified again; put it into `emit sft`"
                self.error("C0409", "`augment rebind` stands above `emit rl`", self.verb(step.statement), help_)
        reads = [name for name, _ in rl.target.reward if VERIFIERS[name].inputs]
        for step in passed:
            if isinstance(step.operation, plan.Redact) and reads:
                message = f"`{reads[0]}` compares with values that are redacted"
                help_ = "an environment knows the real ones: redact in `emit sft`, or reward with `call_format`"
                where = self.verb(step.statement)
                self.report(Diagnostic("C0420", message, where, "above `emit rl`", (help_,), severity="warning"))

    def _view_of_user(self, strategy: ast.Strategy, shared: list[plan.Step]) -> None:
        """The system prompt is the agent's: whoever plays the user should be told something else."""
        view = next((step for step in shared if step.operation == plan.View("user")), None)
        set_ = any(isinstance(n, ast.TurnsSet) and n.field.name == "content" for n in strategy.walk())
        if view is None or set_:
            return
        help_ = 'say what the user knows: `turns set content = trajectory.meta.… where role == "system"`'
        message = "who plays the user is shown the agent's system prompt"
        self.report(Diagnostic("C0419", message, self.verb(view.statement), "", (help_,), severity="warning"))

    # ---- expectations and lints ----

    def _expectations(self, expects: list[ast.Expect], sinks: list[plan.Branch]) -> tuple[plan.Expectation, ...]:
        scopes = {name: self.scopes[name] for name in ("shared", *(s.name for s in sinks))}
        checker = ExpectChecker(self.report, scopes, frozenset(self.misnamed))
        made: list[plan.Expectation] = []
        for n, expect in enumerate(expects, 1):
            condition = checker.condition(expect.condition)
            label = expect.label.name if expect.label is not None else f"expect_{n}"
            if expect.label is not None and label in self.labels:
                line, _ = self.source.position(self.labels[label].start)
                message, note = f"label `{label}` is used twice", f"first on line {line}"
                self.report(Diagnostic("C0207", message, expect.label.span, note, ("choose another",)))
            self.labels.setdefault(label, expect.span)
            if condition is not None:
                made.append(
                    plan.Expectation(condition, label, statement_text(expect), expect.because, expect.span, self.source)
                )
        return tuple(made)

    def _lint_outcome(self, strategy: ast.Strategy, whole: plan.Plan) -> None:
        sft = next((s for s in whole.sinks if s.name == "sft"), None)
        if sft is None:
            return
        steps = [step for _, step in whole.passed(sft)]
        asked = any(isinstance(s.operation, plan.Filter) and speaks_of_outcome(s.operation.where) for s in steps)
        loss = sft.target.loss if isinstance(sft.target, plan.Sft) else plan.Loss()
        asked = asked or any(c is not None and speaks_of_outcome(c) for c in (loss.where, loss.weight))
        if not asked:
            at = next(i for i in strategy.body if isinstance(i, ast.Sink) and i.name.name == "sft")
            self.report(
                Diagnostic(
                    "C0403",
                    "failed runs are trained on as well",
                    at.name.span,
                    "no step asks how a run ended",
                    ("add a filter such as `winners: keep where success`",),
                    severity="warning",
                )
            )


def _mixed_by(step: plan.Step, target: plan.Target | None) -> plan.Step:
    """A mix by trained tokens asks the sink what it trains."""
    if isinstance(step.operation, plan.Mix) and step.operation.target is not None and isinstance(target, plan.Sft):
        return replace(step, operation=replace(step.operation, target=target))
    return step
