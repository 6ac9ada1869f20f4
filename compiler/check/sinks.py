"""Settings of sinks → plan targets."""

from __future__ import annotations

from curatec.compiler import plan
from curatec.compiler.check.lints import loss_is_null
from curatec.compiler.check.multiply import context
from curatec.compiler.check.steps import StepChecker
from curatec.compiler.core import Column
from curatec.compiler.types import Level, Type
from curatec.compiler.verifiers import VERIFIERS
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean

# How rows are laid out, by sink: what `runtime/targets` can write.
FORMATS: dict[str, tuple[str, ...]] = {
    "sft": ("trl", "openai", "sharegpt", "llamafactory", "verl", "atif"),
    "rl": ("trl", "openai", "verl"),
    "preference": ("trl", "openai", "sharegpt", "llamafactory"),
}
SETTINGS: dict[str, tuple[type[ast.Statement], ...]] = {
    "sft": (ast.Loss, ast.Fit, ast.ReasoningShown, ast.ContextSetting, ast.Format),
    "rl": (ast.Prompt, ast.EnvironmentUse, ast.Reward, ast.Group, ast.Format),
    "memory": (ast.Key, ast.Value, ast.Retrieve),
    "preference": (ast.Pair, ast.Format),
}


class SinkChecker:
    """Checks the settings of one sink; its steps are a `StepChecker`'s."""

    def __init__(self, steps: StepChecker, sink: ast.Sink) -> None:
        self.steps = steps
        self.sink = sink
        self.given: dict[str, ast.Statement] = {}

    def target(self) -> plan.Target | None:
        kind = self.sink.name.name
        for setting in self.sink.settings:
            self._take(kind, setting)
        return {"sft": self._sft, "rl": self._rl, "memory": self._memory, "preference": self._preference}[kind]()

    def _take(self, kind: str, setting: ast.Statement) -> None:
        name = setting_name(setting)
        if not isinstance(setting, SETTINGS[kind]):
            homes = " and ".join(f"`emit {sink}`" for sink, kinds in SETTINGS.items() if isinstance(setting, kinds))
            own = ", ".join(f"`{_word(kind)}`" for kind in SETTINGS[kind])
            help_ = f"move it, or leave it out; the settings here are {own}"
            self.steps.error("C0409", f"`{name}` is a setting of {homes}", self.steps.verb(setting), help_)
        elif name in self.given:
            line, _ = self.steps.source.position(self.given[name].span.start)
            note = f"first on line {line}"
            self.steps.error("C0409", f"`{name}` is given twice", self.steps.verb(setting), "keep one", note=note)
        else:
            self.given[name] = setting

    def _wants(self, name: str, example: str) -> bool:
        if name in self.given:
            return True
        self.steps.error(
            "C0410", f"`emit {self.sink.name}` needs `{name}`", self.sink.name.span, f"for example `{example}`"
        )
        return False

    def _format(self) -> str:
        setting = self.given.get("format")
        if not isinstance(setting, ast.Format):
            return "trl"
        self.steps.one_of(f"format of `emit {self.sink.name}`", setting.name, FORMATS[self.sink.name.name])
        return setting.name.name

    # ---- sft ----

    def _sft(self) -> plan.Target | None:
        loss = self._loss()
        fit = self.given.get("fit")
        tokens = None
        if isinstance(fit, ast.Fit):
            tokens = self.steps.count(fit.tokens, "a length in tokens")
        shown = self.given.get("reasoning")
        return plan.Sft(
            loss,
            tokens,
            self._format(),
            shown.shown if isinstance(shown, ast.ReasoningShown) else "keep",
            fit.otherwise if isinstance(fit, ast.Fit) else "drop",
            self._context(),
        )

    def _context(self) -> plan.Context | None:
        setting = self.given.get("context")
        if not isinstance(setting, ast.ContextSetting):
            return None
        if self.steps.context:
            where = self.steps.verb(setting)
            self.steps.error("C0409", "`context` is given to `decompose` already", where, "keep one of the two")
            return None
        return context(self.steps, setting.context)

    def _loss(self) -> plan.Loss:
        setting = self.given.get("loss")
        if not isinstance(setting, ast.Loss):
            return plan.Loss()
        if setting.on.name != "assistant":
            self.steps.error(
                "C0215", f"loss on `{setting.on}` is not possible", setting.on.span, "only `loss on assistant` is"
            )
        where = self.steps.expr(Level.TURN).condition(setting.where) if setting.where is not None else None
        weight = self.steps.expr(Level.TURN).number(setting.weight) if setting.weight is not None else None
        for core, expr in ((where, setting.where), (weight, setting.weight)):
            if core is not None and expr is not None and loss_is_null(core):
                self.steps.error(
                    "C0404",
                    "this is null on every assistant turn, so nothing would be trained",
                    expr.span,
                    "`is_error` and `tool_name` belong to tool turns: ask `none(calls where is_error)`",
                )
        return plan.Loss(where, weight, setting.except_reasoning, setting.only_last, setting.including_edited)

    # ---- rl ----

    def _rl(self) -> plan.Target | None:
        prompt = self.given.get("prompt")
        pick: str = "first"
        if isinstance(prompt, ast.Prompt):
            pick = prompt.pick
            if prompt.role.name != "assistant":
                self.steps.error(
                    "C0215",
                    f"a prompt ends before an assistant turn, not `{prompt.role}`",
                    prompt.role.span,
                    "write `prompt until first assistant`",
                )
        environment = self.given.get("environment")
        declared = self.steps.declared.tools
        if isinstance(environment, ast.EnvironmentUse) and self.steps.known(
            "tools", environment.tools, declared, "tools name { … }"
        ):
            self.steps.later("`environment`", self.steps.verb(environment))
        group = self.given.get("group")
        size = self.steps.count(group.size, "a group", 2) if isinstance(group, ast.Group) else None
        return plan.Rl("last" if pick == "last" else "first", self._reward(), size, self._format())

    def _reward(self) -> tuple[tuple[str, float], ...]:
        setting = self.given.get("reward")
        if not isinstance(setting, ast.Reward):
            return (("reward", 1.0),)
        terms = self._terms(setting.value, 1.0)
        merged: dict[str, float] = {}
        for name, weight in terms:
            merged[name] = merged.get(name, 0.0) + weight
        return tuple(merged.items())

    def _terms(self, expr: ast.Expr, sign: float) -> list[tuple[str, float]]:
        """A sum of verifiers, each with a number before or behind it."""
        match expr:
            case ast.Binary(operator="+" | "-", left=left, right=right):
                return [*self._terms(left, sign), *self._terms(right, sign if expr.operator == "+" else -sign)]
            case ast.Binary(operator="*", left=left, right=right):
                if (weight := self._weight(left)) is not None:
                    return self._terms(right, sign * weight)
                if (weight := self._weight(right)) is not None:
                    return self._terms(left, sign * weight)
            case ast.Unary(operator="-", operand=term):
                return self._terms(term, -sign)
            case ast.Reference(name=name) if name in VERIFIERS:
                return [(name, sign)]
            case ast.Reference(name=name):
                known = ", ".join(f"`{v}`" for v in VERIFIERS)
                self.steps.error(
                    "C0204",
                    f"no verifier is called `{name}`",
                    expr.span,
                    *(did_you_mean(name, VERIFIERS) or (f"there are {known}",)),
                )
                return []
        self.steps.error(
            "C0304", "a reward is a sum of verifiers", expr.span, "for example `0.8 * state_match + 0.2 * call_format`"
        )
        return []

    def _weight(self, expr: ast.Expr) -> float | None:
        """A number, or a parameter that is one."""
        if isinstance(expr, ast.Number):
            return expr.amount
        params = self.steps.scope.params
        value = params[expr.name].value if isinstance(expr, ast.Reference) and expr.name in params else None
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    # ---- memory ----

    def _memory(self) -> plan.Target | None:
        has_key = self._wants("key", "key task_text")
        has_value = self._wants("value", "value final_answer")
        retrieve = self.given.get("retrieve")
        top = 3
        if isinstance(retrieve, ast.Retrieve):
            if retrieve.method.name != "bm25":
                self.steps.error(
                    "C0215",
                    f"no retrieval is called `{retrieve.method}`",
                    retrieve.method.span,
                    "the only one is `bm25`",
                )
            top = self.steps.count(retrieve.top, "`top`") or top
        if not (has_key and has_value):
            return None
        key, value = self.given["key"], self.given["value"]
        assert isinstance(key, ast.Key)
        assert isinstance(value, ast.Value)
        return plan.Memory(self.steps.expr().text(key.value), self.steps.expr().text(value.value), "bm25", top)

    # ---- preference ----

    def _preference(self) -> plan.Target | None:
        if not self._wants("pair", "pair within task chosen where success rejected where not success"):
            return None
        pair = self.given["pair"]
        assert isinstance(pair, ast.Pair)
        for part, example in (("chosen", "chosen where success"), ("rejected", "rejected where not success")):
            if getattr(pair, part) is None:
                self.steps.error("C0410", f"`pair` needs `{part} where …`", pair.span, f"for example `{example}`")
        if pair.chosen is None or pair.rejected is None:
            return None
        within = tuple(self.steps.expr().key(key) for key in pair.within) or (
            Column(Level.TRAJECTORY, "task", Type.TEXT),
        )
        return plan.Preference(
            within,
            self.steps.expr().condition(pair.chosen),
            self.steps.expr().condition(pair.rejected),
            pair.from_difference,
            self.steps.expr().number(pair.margin) if pair.margin is not None else None,
            float(pair.margin_at_least.amount) if pair.margin_at_least is not None else None,
            self.steps.count(pair.max_pairs, "`max`") if pair.max_pairs is not None else None,
            tuple(self.steps.expr().key(key) for key in pair.max_per),
            self._ratio(pair),
            self._format(),
        )

    def _ratio(self, pair: ast.Pair) -> float | None:
        if pair.length_ratio is None:
            return None
        if pair.length_ratio.value < 1:
            self.steps.error(
                "C0304", "a length ratio is longer over shorter", pair.length_ratio.span, "write 1 or more"
            )
        return float(pair.length_ratio.amount)


def setting_name(setting: ast.Statement) -> str:
    """The word that a setting begins with."""
    return _word(type(setting))


def _word(setting: type[ast.Statement]) -> str:
    return str(setting.model_fields["kind"].default).removesuffix("_setting")
