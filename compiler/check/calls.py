"""Calls: functions of the registry, window aggregates, and what `expect` may ask of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curatec.compiler.check.coerce import UNKNOWN, as_condition_help, as_number_help, as_text_help, read_json
from curatec.compiler.check.patterns import check_pattern
from curatec.compiler.core import Apply, Const, Core, Window
from curatec.compiler.functions import CALLABLE, WINDOWS
from curatec.compiler.regex import check_replacement, parse
from curatec.compiler.registry import Entry, Parameter, WindowEntry
from curatec.compiler.types import Level, Type, article, kinds
from curatec.dsl import ast
from curatec.dsl.diagnostics import did_you_mean, nearest

if TYPE_CHECKING:
    from curatec.compiler.check.expr import ExprChecker

QUANTIFIERS = ("any", "all", "none", "first", "last")
# What other languages call these.
OTHER_NAMES = {
    "avg": "mean",
    "average": "mean",
    "stddev": "std",
    "stdev": "std",
    "len": "length",
    "size": "length",
    "substr": "slice",
    "substring": "slice",
    "strip": "trim",
    "lowercase": "lower",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "log": "ln",
    "includes": "contains",
    "startswith": "starts_with",
    "endswith": "ends_with",
    "exists": "any",
}


class CallChecker:
    """Checks one call for an expression checker."""

    def __init__(self, checker: ExprChecker) -> None:
        self.checker = checker

    def call(self, expr: ast.Call) -> Core:
        name = expr.function.name
        if expr.over is not None or name in WINDOWS:
            return self._window(expr)
        if name in CALLABLE:
            return self._function(CALLABLE[name], expr)
        if name in QUANTIFIERS:
            return self._error("C0304", f"`{name}` asks about a collection", expr, f"write `{name}(turns where …)`")
        if name == "rows":
            return self._error("C0304", "`rows(…)` counts a sink's rows in `expect`", expr, "write `count() over (…)`")
        words = [*CALLABLE, *WINDOWS, *QUANTIFIERS]
        usual = (f"write `{OTHER_NAMES[name]}(…)`",) if name in OTHER_NAMES else ()
        help_ = usual or did_you_mean(name, words) or (f"there are {', '.join(sorted(words))}",)
        return self.checker.error("C0204", f"unknown function `{name}`", expr.function.span, "", *help_)

    def _error(self, code: str, message: str, expr: ast.Call | ast.Argument, *help: str) -> Const:
        return self.checker.error(code, message, expr.span, "", *help)

    # ---- functions ----

    def _function(self, entry: Entry, expr: ast.Call) -> Core:
        bound = self._bind(entry, expr)
        if bound is None:
            return UNKNOWN
        args: list[Core] = []
        options: list[tuple[str, str | int | float | bool]] = []
        for parameter, argument in bound:
            if parameter.literal:
                value = self._literal(parameter, argument)
                if value is None:
                    return UNKNOWN
                options.append((parameter.name, value))
            else:
                args.append(self._argument(parameter, argument))
        if any(a.type is Type.UNKNOWN for a in args) or not self._alike(entry, args, expr):
            return UNKNOWN
        if not self._group_exists(entry, dict(options), bound):
            return UNKNOWN
        return Apply(entry.name, tuple(args), entry.result([a.type for a in args]), tuple(options))

    def _bind(self, entry: Entry, expr: ast.Call) -> list[tuple[Parameter, ast.Argument]] | None:
        """Positional arguments in order, then named ones; the last parameter may repeat."""
        parameters = list(entry.parameters)
        bound: list[tuple[Parameter, ast.Argument]] = []
        for i, argument in enumerate(expr.arguments):
            parameter = self._parameter(entry, parameters, i, argument)
            if parameter is None:
                return None
            if not parameter.repeated and any(p is parameter for p, _ in bound):
                self._error("C0304", f"`{parameter.name}` is given twice", argument, f"write `{signature(entry)}`")
                return None
            if argument.descending:
                self._error("C0304", f"`{entry.name}` has no direction", argument, "leave `desc` out")
                return None
            bound.append((parameter, argument))
        given = {p.name for p, _ in bound}
        missing = [p.name for p in parameters if not p.optional and p.name not in given]
        if missing:
            self._error("C0304", f"`{entry.name}` also wants `{missing[0]}`", expr, f"write `{signature(entry)}`")
            return None
        return sorted(bound, key=lambda pair: parameters.index(pair[0]))

    def _parameter(
        self, entry: Entry, parameters: list[Parameter], position: int, argument: ast.Argument
    ) -> Parameter | None:
        if argument.name is not None:
            found = next((p for p in parameters if p.name == argument.name), None)
            if found is None:
                names = [p.name for p in parameters]
                help_ = did_you_mean(argument.name, names) or (f"write `{signature(entry)}`",)
                self.checker.error(
                    "C0304", f"`{entry.name}` has no argument `{argument.name}`", argument.span, "", *help_
                )
            return found
        if position < len(parameters):
            return parameters[position]
        if parameters and parameters[-1].repeated:
            return parameters[-1]
        self._error(
            "C0304", f"`{entry.name}` takes no more than {len(parameters)}", argument, f"write `{signature(entry)}`"
        )
        return None

    def _literal(self, parameter: Parameter, argument: ast.Argument) -> str | int | float | bool | None:
        value = argument.value
        if parameter.words:
            word = (
                value.name if isinstance(value, ast.Reference) else value.value if isinstance(value, ast.Text) else ""
            )
            if isinstance(value, ast.Reference) and word in parameter.words:
                return word
            known = " or ".join(f"`{w}`" for w in parameter.words)
            meant = nearest(word, parameter.words) or parameter.words[-1]
            self._error("C0304", f"`{parameter.name}` is {known}", argument, f"write `{parameter.name}: {meant}`")
            return None
        if parameter.pattern and isinstance(value, ast.Text):
            return None if check_pattern(self.checker.report, value) else value.value
        written = isinstance(value, (ast.Text, ast.Number)) or (
            isinstance(value, ast.Reference) and value.name in self.checker.scope.params
        )
        core = self.checker.check(value) if written else UNKNOWN
        if not isinstance(core, Const) or core.type not in parameter.types or core.value is None:
            help_ = "a literal or a parameter, the same for every row"
            self._error("C0304", f"`{parameter.name}` must be {kinds(parameter.types)} written out", argument, help_)
            return None
        assert not isinstance(core.value, tuple)
        return core.value

    def _argument(self, parameter: Parameter, argument: ast.Argument) -> Core:
        core = self.checker.check(argument.value)
        if core.type is Type.JSON and parameter.types != (Type.TEXTS,):
            # As text where that will do, else as any number, so that 0.5 stays 0.5.
            core = read_json(
                core, next((t for t in (Type.TEXT, Type.FLOAT) if t in parameter.types), parameter.types[0])
            )
        if core.type is Type.NULL and Type.BOOL not in parameter.types:
            return Const(None, parameter.types[0])
        if core.type in (*parameter.types, Type.UNKNOWN, Type.NULL):
            return core
        if core.type is Type.COLLECTION:
            return self._error(
                "C0309", "a collection is no value", argument, "ask `count(calls)`, or take `calls_text`"
            )
        help_ = as_number_help(core) if Type.FLOAT in parameter.types else as_text_help(core)
        return self._error(
            "C0304",
            f"`{parameter.name}` is {kinds(parameter.types)}, and this is {article(core.type)}",
            argument,
            *help_,
        )

    def _alike(self, entry: Entry, args: list[Core], expr: ast.Call) -> bool:
        """`coalesce` and its like give one type."""
        if entry.name != "coalesce":
            return True
        given = {(Type.FLOAT if a.type.is_number else a.type) for a in args if a.type is not Type.NULL}
        if len(given) > 1:
            mixed = " and ".join(sorted(map(article, given)))
            self._error("C0313", f"`{entry.name}` mixes {mixed}", expr, "all its values are of one type")
        return len(given) <= 1

    def _group_exists(
        self,
        entry: Entry,
        options: dict[str, str | int | float | bool],
        bound: list[tuple[Parameter, ast.Argument]],
    ) -> bool:
        if "pattern" not in options:
            return True
        parsed = parse(str(options["pattern"]))
        assert not isinstance(parsed, tuple)
        if entry.name == "replace":
            for problem in check_replacement(str(options["with"]), parsed.group_count):
                place = next(argument for parameter, argument in bound if parameter.name == "with")
                self._error("C0306", problem.message, place, *((problem.help,) if problem.help else ()))
                return False
        if isinstance(group := options.get("group"), int) and not 0 <= group <= parsed.group_count:
            place = next(argument for parameter, argument in bound if parameter.name == "group")
            help_ = f"its last group is {parsed.group_count}; 0 is all that it matches"
            self._error("C0306", f"the pattern has no group {group}", place, help_)
            return False
        return True

    # ---- windows ----

    def _window(self, expr: ast.Call) -> Core:
        name = expr.function.name
        entry = WINDOWS.get(name)
        if entry is None:
            usual = (f"write `{OTHER_NAMES[name]}(…)`",) if OTHER_NAMES.get(name) in WINDOWS else ()
            there = "leave `over (…)` out" if name in CALLABLE else f"there are {', '.join(WINDOWS)}"
            help_ = usual or did_you_mean(name, WINDOWS) or (there,)
            return self.checker.error("C0204", f"`{name}` is no window aggregate", expr.function.span, "", *help_)
        if self.checker.scope.level is not Level.TRAJECTORY or len(self.checker.scope.levels) > 1:
            message = f"`{name}` compares trajectories, and cannot stand inside `turns` or `calls`"
            counted = "count turns or calls with `count(turns where …)`"
            derived = "`derive` a column with it, and ask `trajectory.…` for that"
            return self._error("C0305", message, expr, counted if name == "count" else derived)
        if not self.checker.scope.windows:
            return self._error("C0305", "a window cannot stand here", expr, "`derive` a column with it first")
        if expr.over is None:
            return self._error("C0305", f"`{name}(…)` needs its group", expr, f"write `{entry.example}`")
        keys = tuple(self.checker.key(key) for key in expr.over)
        argument = self._window_argument(entry, expr)
        if argument is UNKNOWN or any(k.type is Type.UNKNOWN for k in keys):
            return UNKNOWN
        type_ = entry.returns or (argument.type if argument is not None else Type.INT)
        descending = bool(expr.arguments) and expr.arguments[0].descending
        if descending and name != "rank":
            return self._error("C0304", f"`{name}` has no direction", expr, "leave `desc` out")
        return Window(name, argument, keys, type_, descending)

    def _window_argument(self, entry: WindowEntry, expr: ast.Call) -> Core | None:
        if entry.argument is None:
            if expr.arguments:
                return self._error(
                    "C0304",
                    f"`{entry.name}()` takes nothing",
                    expr,
                    f"count some with `share(…)`: `{WINDOWS['share'].example}`",
                )
            return None
        if len(expr.arguments) != 1 or expr.arguments[0].name is not None:
            return self._error("C0304", f"`{entry.name}` takes one value", expr, f"write `{entry.example}`")
        return self.window_value(entry, expr.arguments[0])

    def window_value(self, entry: WindowEntry, argument: ast.Argument) -> Core:
        assert entry.argument is not None
        core = self.checker.check(argument.value)
        if core.type is Type.JSON:
            core = read_json(core, entry.argument[-1])
        if core.type in (*entry.argument, Type.UNKNOWN):
            return core
        help_ = as_condition_help(core) if Type.BOOL in entry.argument else as_number_help(core)
        return self._error(
            "C0304", f"`{entry.name}` takes {kinds(entry.argument)}, and this is {article(core.type)}", argument, *help_
        )


def signature(entry: Entry) -> str:
    """`truncate(text, n, keep: start | end | ends)`."""
    parts = []
    for p in entry.parameters:
        shown = f"{p.name}: {' | '.join(p.words)}" if p.words else p.name
        shown += ", …" if p.repeated else ""
        parts.append(f"[{shown}]" if p.optional else shown)
    return f"{entry.name}({', '.join(parts)})"
