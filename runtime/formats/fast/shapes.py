"""What a regular line looks like: records of chat messages as msgspec decodes them.

A member that is absent stays UNSET, which null is not. A line with a value of another type is no regular line. Members
that are not named here are passed over; `strings` finds out that they were there.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

Text = str | None | UnsetType


class Function(Struct, gc=False):
    """`arguments` is JSON text."""

    name: str
    arguments: str


class Call(Struct, gc=False):
    """A tool call; `type` and `index` say nothing that is kept."""

    id: str
    function: Function
    type: Text = UNSET
    index: int | UnsetType | None = UNSET


class Message(Struct, gc=False):
    """One message whose content is a text or null."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text = UNSET
    tool_calls: list[Call] | UnsetType | None = UNSET
    tool_call_id: Text = UNSET
    name: Text = UNSET
    reasoning_content: Text = UNSET
    reasoning: Text = UNSET
    is_error: bool | UnsetType | None = UNSET


class Record(Struct, gc=False):
    """One trajectory with the facts that have a column."""

    messages: list[Message]
    tools: Raw | UnsetType = UNSET
    gold: Raw | UnsetType = UNSET
    id: str | int | UnsetType | None = UNSET
    task_id: str | int | UnsetType | None = UNSET
    domain: Text = UNSET
    session_id: Text = UNSET
    parent_id: Text = UNSET
    model: Text = UNSET
    license: Text = UNSET
    agent: Text = UNSET
    error: Text = UNSET
    started_at: Text = UNSET
    outcome: str | UnsetType = UNSET
    trial: int | UnsetType | None = UNSET
    depth: int | UnsetType | None = UNSET
    reward: float | UnsetType | None = UNSET
    duration: float | UnsetType | None = UNSET
    cost: float | UnsetType | None = UNSET
    success: bool | UnsetType | None = UNSET


RECORD_FIELDS = frozenset(Record.__struct_fields__)
MESSAGE_FIELDS = frozenset(Message.__struct_fields__)
