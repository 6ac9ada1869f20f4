"""The report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curatec.runtime.execute import Executed
from curatec.runtime.sinks.written import Written


def render(executed: Executed, written: Mapping[str, Written], summary: dict[str, Any]) -> str:
    return "<!doctype html>\n"
