"""The dataset card."""

from __future__ import annotations

from typing import Any


def render(summary: dict[str, Any]) -> str:
    return f"# {summary['strategy']}\n"
