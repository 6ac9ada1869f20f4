"""Readers that take regular lines by columns and leave the others to the adapter.

Each gives exactly the rows that the adapter would give; what makes a line regular is told in `chat`.
"""

from __future__ import annotations

from ..model import Adapter
from ..openai import OPENAI
from ..trl import HOLDERS, TRL
from .chat import ChatReader

_TRL = frozenset(HOLDERS) | {"functions", "weights", "example_id", "task", "meta", "gold"}


def reader_of(adapter: Adapter) -> ChatReader | None:
    """A fast reader for one file of that format, null where there is none."""
    if adapter is OPENAI:
        return ChatReader(adapter.name, frozenset({"functions"}))
    return ChatReader(adapter.name, _TRL - {"messages"}) if adapter is TRL else None
