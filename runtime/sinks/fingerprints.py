"""Messages as hashes, so that runs can be compared without their texts.

Two messages have one hash where a trainer is shown the same of them, ids of calls apart: those differ between any two
runs. Which call a result answers counts; white space between the tokens of arguments does not where they are objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

from curatec.runtime.conversation import messages as m


def fingerprints(messages: Sequence[m.Message], form: m.Form) -> list[int]:
    """One 64-bit hash a message. The messages must be without fault (`messages.fault_of`)."""
    shown = (m.json_of(message, form) for message in _numbered(messages))
    return [xxh3_64_intdigest(orjson.dumps(orjson.loads(text))) for text in shown]


def _numbered(messages: Sequence[m.Message]) -> Iterator[m.Message]:
    """The messages with their calls numbered instead of named; null content is empty content."""
    numbers: dict[str | None, str] = {}
    for message in messages:
        calls = tuple(call._replace(id=f"{len(numbers) + k}") for k, call in enumerate(message.calls))
        numbers |= {call.id: new.id for call, new in zip(message.calls, calls, strict=True)}
        yield message._replace(content=message.content or "", calls=calls, call_id=numbers.get(message.call_id))


def prompt_digest(messages: Sequence[m.Message], toolset: str | None, form: m.Form) -> str:
    """16 hex digits over the messages of a prompt and the tools shown with it."""
    return xxh3_64_hexdigest(orjson.dumps([toolset, *fingerprints(messages, form)]))
