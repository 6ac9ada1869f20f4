"""Renderers of all styles, made once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.rendering import Renderer, load
from tests.rendering.styles import STYLES, TINY, Style

BUILTIN = "builtin:tiny-qwen3"
Renderers = Callable[[Style], Renderer]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Style → the folder of its tokenizer."""
    from importlib.resources import files

    root = tmp_path_factory.mktemp("tokenizers")
    made = {style.name: style.write(root / style.name) for style in STYLES if style is not TINY}
    return {TINY.name: Path(str(files("curatec.runtime.rendering") / "tiny_qwen3")), **made}


@pytest.fixture(scope="session")
def renderers(folders: dict[str, Path]) -> Renderers:
    made: dict[str, Renderer] = {}

    def of(style: Style) -> Renderer:
        if style.name not in made:
            folder = folders[style.name]
            name = BUILTIN if style is TINY else str(folder)
            made[style.name] = load(name, None, folder, folder, ())
        return made[style.name]

    return of


@pytest.fixture(scope="session")
def oracle(folders: dict[str, Path]) -> Callable[[Style], Any]:
    """The same tokenizer in transformers."""
    made: dict[str, Any] = {}

    def of(style: Style) -> Any:
        from transformers import AutoTokenizer

        if style.name not in made:
            made[style.name] = AutoTokenizer.from_pretrained(folders[style.name], local_files_only=True)
        return made[style.name]

    return of


@pytest.fixture
def fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers tells templates the day that curatec tells them."""

    class Fixed(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Fixed:
            return cls(2025, 1, 1)

    monkeypatch.setattr("transformers.utils.chat_template_utils.datetime", Fixed)
