"""What becomes of a row that is longer than `fit` allows.

A row is its head (everything up to the first user message) and blocks: an assistant message with what follows it until
the next one, so that a call and its results are in one block. `cut oldest exchange` leaves out the oldest blocks;
`window` makes rows that have the head and neighbouring blocks, each block trained in one of them. A row ends with the
assistant message of its last block: what follows that is not shown, and does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from curatec.runtime.conversation.messages import Message

# Whether the messages at these positions fit into one row.
Fits = Callable[[Sequence[int]], bool]


def head_and_blocks(messages: Sequence[Message]) -> tuple[list[int], list[list[int]]]:
    """Positions of the head, and of each block."""
    asked = next((i for i, message in enumerate(messages) if message.role == "user"), len(messages))
    start = next((i for i in range(asked, len(messages)) if messages[i].role == "assistant"), len(messages))
    if start == len(messages):  # nobody asked: only the system prompt stands before
        start = next((i for i, message in enumerate(messages) if message.role == "assistant"), len(messages))
    blocks: list[list[int]] = []
    for i in range(start, len(messages)):
        if messages[i].role == "assistant":
            blocks.append([])
        blocks[-1].append(i)
    return list(range(start)), blocks


def cut_oldest(messages: Sequence[Message], fits: Fits) -> list[int] | None:
    """Positions of what stays, with as few of the oldest blocks left out as possible; null where nothing fits."""
    head, blocks = head_and_blocks(messages)

    def rest(k: int) -> list[int]:
        return head + [i for block in blocks[k:] for i in block]

    k = _first(len(blocks), lambda k: fits(rest(k)))
    return rest(k) if k is not None else None


def windows(messages: Sequence[Message], trained: Sequence[bool], fits: Fits) -> list[tuple[list[int], int]]:
    """Rows as positions, each with the position from which on it trains; what is before it is context.

    A row repeats as many of the blocks before it as leave room for as many more. A block that fits into no row is left
    out; so is one that has nothing trained behind it. What the head trains, the first row does.
    """
    head, blocks = head_and_blocks(messages)

    def row(first: int, end: int) -> list[int]:
        return head + [i for block in blocks[first : end - 1] for i in block] + blocks[end - 1][:1]

    def reach(first: int, least: int) -> int:
        """The end of the longest row that begins with a block and holds those before `least`; `least` if none does."""
        return _last(least, len(blocks), lambda end: fits(row(first, end)))

    made: list[tuple[list[int], int]] = []
    done = 0
    while done < len(blocks):
        end = reach(done, done)
        if end == done:
            done += 1
            continue
        earliest = max(0, done - (end - done) // 2)
        before = _first(done - earliest, lambda k: fits(row(earliest + k, done + 1)))  # noqa: B023 (asked at once)
        first = done if before is None else earliest + before
        end = reach(first, done)
        start = blocks[done][0] if made else 0
        last = max((i for i in row(done, end) if i >= start and trained[i]), default=None)
        if last is not None:
            made.append(([i for i in row(first, end) if i <= last], start))
        done = end
    return made


def _first(n: int, holds: Callable[[int], bool]) -> int | None:
    """The first of 0..n-1 where a condition holds that once true stays true."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low if low < n else None


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last of low..high where a condition holds that once false stays false; it holds at `low`, and is asked first
    near there: what it asks about grows with the number."""
    step = 1
    while low < high and holds(min(low + step, high)):
        low = min(low + step, high)
        step *= 2
    high = min(high, low + step - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
