"""Reasoning that stands inside content, as `<think>…</think>`.

A block runs from `<think>` to the end of the white space behind `</think>`, which belongs to how reasoning is laid out
and not to the answer. Without `</think>` it runs to the end of the text (a reply that was cut). A text that has a
`</think>` and no `<think>` before it began inside its reasoning, as where a template opens the block: the block then
starts at 0.
"""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


def blocks(text: str) -> list[tuple[int, int]]:
    """Where reasoning stands, as (start, end) in code points, in order and apart from each other."""
    found: list[tuple[int, int]] = []
    at = 0
    first_close = text.find(CLOSE)
    if first_close >= 0 and not 0 <= text.find(OPEN) < first_close:
        at = _behind(text, first_close)
        found.append((0, at))
    while (start := text.find(OPEN, at)) >= 0:
        close = text.find(CLOSE, start)
        at = len(text) if close < 0 else _behind(text, close)
        found.append((start, at))
    return found


def _behind(text: str, close: int) -> int:
    end = close + len(CLOSE)
    while end < len(text) and text[end].isspace():
        end += 1
    return end


def outside(text: str) -> list[tuple[int, int]]:
    """What is left of a text between its blocks, pieces of mere white space left out."""
    pieces: list[tuple[int, int]] = []
    at = 0
    for start, end in [*blocks(text), (len(text), len(text))]:
        if text[at:start].strip():
            pieces.append((at, start))
        at = end
    return pieces


def without(text: str) -> str:
    """The text with its blocks removed."""
    found = blocks(text)
    if not found:
        return text
    starts = [0, *(end for _, end in found)]
    ends = [*(start for start, _ in found), len(text)]
    return "".join(text[a:b] for a, b in zip(starts, ends, strict=True))
