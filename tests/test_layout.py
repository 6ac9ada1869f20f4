"""The folder tree is the architecture: packages are mapped, and imports only go downwards."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = ("dsl", "compiler", "runtime")


def _packages_on_disk() -> set[str]:
    return {
        ".".join(("curatec", *init.parent.relative_to(ROOT).parts))
        for floor in FLOORS
        for init in (ROOT / floor).rglob("__init__.py")
    }


def test_every_package_folder_is_mapped() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(setuptools["packages"]) == _packages_on_disk()
    mapped = {name: folder.replace("/", ".") for name, folder in setuptools["package-dir"].items()}
    assert mapped == {name: name.removeprefix("curatec.") for name in _packages_on_disk()}


def _imports(path: Path) -> set[str]:
    """Modules of this project that a file imports, relative ones spelled out."""
    here = ("curatec", *path.parent.relative_to(ROOT).parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("curatec.")}


@pytest.mark.parametrize(("floor", "forbidden"), [("dsl", ("compiler", "runtime")), ("compiler", ("runtime",))])
def test_no_floor_imports_one_above(floor: str, forbidden: tuple[str, ...]) -> None:
    for path in (ROOT / floor).rglob("*.py"):
        for name in _imports(path):
            assert not any(name.startswith(f"curatec.{above}") for above in forbidden), f"{path} imports {name}"


def test_nothing_imports_the_command_line() -> None:
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*.py"):
            if "cli" not in path.relative_to(ROOT).parts:
                assert not any(name.startswith("curatec.runtime.cli") for name in _imports(path)), path


def test_the_core_never_imports_the_training_stack() -> None:
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*.py"):
            tree = ast.parse(path.read_text())
            names = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
            absolute = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level)
            names |= {(n.module or "").split(".")[0] for n in absolute}
            assert not names & {"torch", "transformers", "trl", "peft", "datasets"}, path
