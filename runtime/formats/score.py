"""Scoring a sample of records: the share of them that a format's own test accepts."""

from __future__ import annotations

from collections.abc import Callable

from .json_text import Json
from .model import Match, Sample

Score = Callable[[Json], tuple[float, str]]


def share(sample: Sample, score: Score) -> Match:
    """The mean score over the records of the sample; the reason is that of the best record, else of the first one."""
    scored = [score(record) for record in sample.records]
    if not scored:
        return Match(0.0, "no record")
    best = max(scored, key=lambda pair: pair[0])
    return Match(sum(value for value, _ in scored) / len(scored), best[1])


def is_message(value: Json) -> bool:
    """True for a chat message: an object with a text `role` and a content, a call or a result."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and any(key in value for key in ("content", "tool_calls", "function_call", "tool_call_id", "reasoning_content"))
    )


def is_message_list(value: Json) -> bool:
    """True for a list whose entries are all chat messages; an empty list is one."""
    return isinstance(value, list) and all(map(is_message, value))
