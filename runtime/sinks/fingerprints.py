"""Messages as hashes, so that runs can be compared without their texts.

Two messages have one hash where a trainer is shown the same of them, ids of calls apart: those differ between any two
runs. Which call a result answers counts; white space between the tokens of arguments does not where they are objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

from curatec.runtime.conversation import messages as m


def fingerprints(messages: Sequence[m.Message], form: m.Form) -> list[int]:
    """One 64-bit hash a message. The messages must be without fault (`messages.fault_of`)."""
    numbers: dict[str | None, int] = {}
    found: list[int] = []
    for message in messages:
        for call in message.calls:
            numbers[call.id] = len(numbers)
        found.append(xxh3_64_intdigest(orjson.dumps(_shown(message, numbers.get(message.call_id), form))))
    return found


def _shown(message: m.Message, answers: int | None, form: m.Form) -> list[Any]:
    """What a trainer is shown of a message; null content is empty content. `answers` is the number of a call."""
    functions = [orjson.loads(call.function) for call in message.calls]
    name = message.name if form == "trl" and message.role == "tool" else None
    return [message.role, message.content or "", message.reasoning, functions, answers, name or None]


def prompt_digest(messages: Sequence[m.Message], toolset: str | None, form: m.Form) -> str:
    """16 hex digits over the messages of a prompt and the tools shown with it."""
    return xxh3_64_hexdigest(orjson.dumps([toolset, *fingerprints(messages, form)]))
