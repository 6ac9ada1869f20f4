"""Compiles in this process, each with a cache and a folder of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.compile import Compiled, compile_spec
from curatec.runtime.memo import memo as memos
from curatec.runtime.request import Request, Watch


@dataclass
class Desk:
    """A folder with specs and runs. `ran` are the phases of the last compile: the labels of the steps that ran."""

    root: Path
    ran: tuple[str, ...] = ()

    def compile(self, spec: str, out: str = "out", **asked: Any) -> Compiled:
        phases: list[str] = []
        request = Request(str(self.root / spec), out=self.root / out, **asked)
        compiled = compile_spec(request, Watch(phase=phases.append))
        self.ran = tuple(name for name in phases if name not in ("reading", "writing", "report"))
        return compiled

    def write(self, spec: str, text: str) -> None:
        (self.root / spec).write_text(text, encoding="utf-8")

    def content(self, out: str = "out") -> dict[str, Any]:
        """Every file of an output; of the manifest what is the same on every machine."""
        folder = self.root / out
        found: dict[str, Any] = {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }
        manifest = json.loads(found.pop("manifest.json"))
        del manifest["run"]
        return found | {"manifest.json": manifest}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("CURATEC_CACHE_DIR", str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


@pytest.fixture
def all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every state is kept, however little time it took."""
    monkeypatch.setattr(memos, "_WRITTEN", 0.0)
