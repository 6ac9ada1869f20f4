"""What is in a key and what is not: plan nodes, code, files."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest

from curatec.compiler import operations, plan, targets
from curatec.compiler.core import NODES, Column, Const, Order
from curatec.compiler.core import Path as JsonAt
from curatec.compiler.types import Level, Type
from curatec.runtime.memo import code
from curatec.runtime.state import State

META = Column(Level.TRAJECTORY, "meta", Type.JSON)
ARGS = Column(Level.CALL, "args", Type.JSON)
SAMPLES: dict[Any, tuple[Any, Any]] = {
    str: ("a", "b"),
    int: (1, 2),
    bool: (True, False),
    float: (0.25, 0.5),
    Type: (Type.TEXT, Type.INT),
    Level: (Level.TURN, Level.CALL),
    type(None): (None, None),
}


def values(hint: Any) -> tuple[Any, Any]:
    """Two values of a type that are not the same."""
    if hint in SAMPLES:
        return SAMPLES[hint]
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is typing.Literal:
        return (arguments[0], arguments[-1]) if len(arguments) > 1 else (arguments[0], arguments[0])
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            one, two = values(arguments[0])
            return (one,), (one, two)
        pairs = [values(argument) for argument in arguments]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if origin in (typing.Union, types.UnionType):
        if set(arguments) >= set(NODES):
            return Const("a", Type.TEXT), Const("b", Type.TEXT)
        found = [value for argument in arguments for value in values(argument)]
        return next((a, b) for a in found for b in found if a != b)
    if hint is Column:
        return META, ARGS
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return node(hint, 0), node(hint, 1)
    raise AssertionError(hint)


def hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))


def node(kind: type, which: int) -> Any:
    given = {f.name: values(hints(kind)[f.name])[which] for f in dataclasses.fields(kind) if f.compare}
    return kind(**given)


KINDS = [
    kind
    for module in (operations, targets)
    for kind in vars(module).values()
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind.__module__ == module.__name__
]


@pytest.mark.parametrize("kind", [*KINDS, Order], ids=lambda kind: kind.__name__)
def test_every_field_of_an_operation_is_in_its_digest(kind: type) -> None:
    first = node(kind, 0)
    for field in dataclasses.fields(kind):
        if field.compare:
            one, two = values(hints(kind)[field.name])
            if one != two:
                other = dataclasses.replace(first, **{field.name: two})
                assert plan.digest(other) != plan.digest(first), field.name


def test_a_path_below_meta_is_not_one_below_args() -> None:
    assert plan.digest(JsonAt(META, ("x",))) != plan.digest(JsonAt(ARGS, ("x",)))
    assert plan.digest(Const(1, Type.INT)) != plan.digest(Const(True, Type.BOOL))
    assert plan.digest(Const(0.0, Type.FLOAT)) != plan.digest(Const(-0.0, Type.FLOAT))


def test_a_state_is_kept_whole() -> None:
    """A new member of a state must be kept as well, or be given anew: `checkpoint` has one place for each."""
    kept = {"rows", "turns", "toolsets", "known", "order", "descending", "rewritten", "renderer"}
    given = {"arg_paths", "side", "engine"}
    assert {field.name for field in dataclasses.fields(State)} == kept | given


def test_code_reaches_what_it_imports_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "runtime/a.py": "from curatec.runtime.b import x\n",
        "runtime/b.py": "def f():\n    from .deep import (\n        c,\n        d,\n    )\n",
        "runtime/deep/__init__.py": "",
        "runtime/deep/c.py": "x = 1\n",
        "runtime/deep/d.py": "import curatec.compiler.e\n",
        "compiler/e.py": "import polars as pl\n",
        "compiler/f.py": "x = 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(code, "ROOT", tmp_path)

    def forget() -> None:
        for remembered in (code.code_of, code.own_code, code._read, code._file):
            remembered.cache_clear()

    forget()
    try:
        before = code.code_of("curatec.runtime.a")
        own = code.own_code("curatec.runtime.a")
        for name in (
            "runtime/b.py",
            "runtime/deep/__init__.py",
            "runtime/deep/c.py",
            "runtime/deep/d.py",
            "compiler/e.py",
        ):
            (tmp_path / name).write_text((tmp_path / name).read_text() + "# more\n")
            forget()
            after = code.code_of("curatec.runtime.a")
            assert after != before, name
            before = after
        (tmp_path / "compiler" / "f.py").write_text("x = 2\n")
        forget()
        assert code.code_of("curatec.runtime.a") == before
        assert code.own_code("curatec.runtime.a") == own
        monkeypatch.setattr(code, "_version", lambda name: "0")
        forget()
        assert code.code_of("curatec.runtime.a") != before
    finally:
        monkeypatch.undo()
        forget()


def test_libraries_are_those_that_are_installed() -> None:
    assert any(line.startswith("polars ") and line[7:] for line in code.libraries())
