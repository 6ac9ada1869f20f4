"""Parameters: their declared values, their legal ranges, and what `-D name=value` makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from curatec.compiler.check.scope import RESERVED
from curatec.compiler.core import Const
from curatec.compiler.fields import FIELDS
from curatec.compiler.load import Program
from curatec.compiler.types import Level, Type, article
from curatec.dsl import ast
from curatec.dsl.diagnostics import CuratecError, Diagnostic, did_you_mean
from curatec.dsl.source import Span


def params_of(program: Program, given: dict[str, str], problems: list[Diagnostic]) -> dict[str, Const]:
    """Every parameter's value. Raises CuratecError (C0418) for each `-D` that names none or does not fit."""
    params: dict[str, Const] = {}
    wrong: list[Diagnostic] = []
    for module in program.modules:
        for declaration in module.parsed.file.declarations:
            if not isinstance(declaration, ast.Param):
                continue
            name = declaration.name.name
            found = [*_name_problems(declaration), *_value_problems(declaration)]
            problems.extend(problem.at(module.parsed.source) for problem in found)
            params[name] = _declared(declaration)
            if name in given:
                value = _override(declaration, given[name])
                if isinstance(value, Const):
                    params[name] = value
                else:
                    wrong.append(value)
    for name in sorted(given.keys() - params.keys()):
        help_ = did_you_mean(name, params) or (f"parameters: {', '.join(params) or 'none is declared'}",)
        wrong.append(Diagnostic("C0418", f"`-D {name}=…`: there is no such parameter", help=help_))
    if wrong:
        raise CuratecError(wrong)
    return params


def _name_problems(param: ast.Param) -> Iterator[Diagnostic]:
    name = param.name
    level = next((level for level in Level if name.name in FIELDS[level]), None)
    if level is not None:
        yield Diagnostic("C0208", f"`{name}` is a field of a {level}", name.span, "", ("choose another name",))
    elif name.name in RESERVED:
        yield Diagnostic("C0208", f"`{name}` has a meaning of its own", name.span, "", ("choose another name",))


def _value_problems(param: ast.Param) -> Iterator[Diagnostic]:
    def problem(message: str, span: Span, help_: str) -> Diagnostic:
        return Diagnostic("C0310", message, span, "", (help_,))

    if param.range is not None and param.range.low.amount > param.range.high.amount:
        yield problem(
            f"the range {_shown_range(param)} holds nothing", param.range.span, "the smaller number stands first"
        )
        return
    if param.choices is not None and len({_kind(choice) for choice in param.choices.values}) > 1:
        yield problem("these choices are of several types", param.choices.span, "all numbers, or all texts")
        return
    wrong = _fits(param, _literal(param.value))
    if wrong:
        inside = "choose a value inside, or widen the range"
        yield problem(
            wrong, param.value.span, inside if param.range else "choose one of them, or add it to the choices"
        )


def _literal(value: ast.Literal_) -> Const:
    match value:
        case ast.Number():
            amount = value.amount
            return Const(amount, Type.FLOAT if isinstance(amount, float) else Type.INT)
        case ast.Flag():
            return Const(value.value, Type.BOOL)
        case ast.Text() | ast.Word():
            return Const(value.value, Type.TEXT)


def _kind(value: ast.Literal_) -> str:
    type_ = _literal(value).type
    return "number" if type_.is_number else str(type_)


def _whole(param: ast.Param) -> bool:
    """Whether the parameter takes whole numbers only."""
    bounds = (param.range.low, param.range.high) if param.range is not None else ()
    choices = param.choices.values if param.choices is not None else ()
    return all(isinstance(_literal(n).value, int) for n in (param.value, *bounds, *choices))


def _declared(param: ast.Param) -> Const:
    """The declared value: a float where the range or a choice is one, so that `-D` never changes the type."""
    value = _literal(param.value)
    if value.type is Type.INT and not _whole(param):
        assert isinstance(value.value, int)
        return Const(float(value.value), Type.FLOAT)
    return value


def _fits(param: ast.Param, value: Const) -> str | None:
    """What is wrong with a value, or None."""
    if param.range is not None:
        if not value.type.is_number:
            return f"a parameter with a range is a number, and this is {article(value.type)}"
        assert isinstance(value.value, (int, float))
        fits = param.range.low.amount <= value.value <= param.range.high.amount
        return None if fits else f"{value.value:g} is outside {_shown_range(param)}"
    assert param.choices is not None
    choices = [_literal(choice) for choice in param.choices.values]
    same = any(c.value == value.value and (c.type is Type.BOOL) == (value.type is Type.BOOL) for c in choices)
    return None if same else f"`{_shown(value)}` is none of {', '.join(map(_shown, choices))}"


def _shown(value: Const) -> str:
    return str(value.value).lower() if value.type is Type.BOOL else str(value.value)


def _override(param: ast.Param, text: str) -> Const | Diagnostic:
    """`-D n=v`: read as the declared value's type is."""
    declared = _declared(param)
    value = _read_as(declared.type, text)
    want = {Type.INT: "whole number", Type.FLOAT: "number", Type.BOOL: "flag"}.get(declared.type, "text")
    wrong = f"this is no {want}" if value is None else _fits(param, value)
    if wrong or value is None:
        help_ = f"`{param.name}` is a {want} in {_shown_range(param)}"
        return Diagnostic("C0418", f"`-D {param.name}={text}`: {wrong}", help=(help_,))
    return value


def _read_as(type_: Type, text: str) -> Const | None:
    if type_ is Type.BOOL:
        return Const(text == "true", Type.BOOL) if text in ("true", "false") else None
    if type_ is Type.TEXT:
        return Const(text, Type.TEXT)
    try:
        number = float(text.removesuffix("%").replace("_", ""))
    except ValueError:
        return None
    if text.endswith("%"):
        number /= 100
    if not math.isfinite(number):
        return None
    if type_ is Type.INT:
        return Const(int(number), Type.INT) if number == int(number) else None
    return Const(number, Type.FLOAT)


def _shown_range(param: ast.Param) -> str:
    if param.range is not None:
        return f"{param.range.low.amount:g} .. {param.range.high.amount:g}"
    assert param.choices is not None
    return "{" + ", ".join(_shown(_literal(c)) for c in param.choices.values) + "}"
