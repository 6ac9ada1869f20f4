"""What an adapter is given and what it returns: the canonical record, before it becomes rows.

The dataclasses mirror `RUNS` and `TURNS` of `curatec.runtime.tables`; times are microseconds since the epoch, UTC.
An adapter fills in what its format says and nothing else; linking results to calls, counting defects and the digest
are done once for all formats (`link`, `rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .json_text import Json

Role = Literal["system", "user", "assistant", "tool", "event"]
ContentKind = Literal["text", "parts", "null", "absent"]
ArgsState = Literal["json", "repaired", "invalid", "none"]
Container = Literal["lines", "array", "object", "rows"]
ANYWHERE: frozenset[Container] = frozenset({"lines", "array", "object", "rows"})


@dataclass(slots=True)
class Call:
    """One tool call. `args_json` is a JSON object as text; `args_raw` is kept where that is not the source's text."""

    id: str | None
    name: str | None
    args_json: str | None
    args_raw: str | None = None
    args_state: ArgsState = "json"
    requestor: Literal["agent", "user"] = "agent"
    result_turn: int | None = None


@dataclass(slots=True)
class Part:
    """One part of a content list. `kind` is text, image, audio, file or other; `ref` is a path or an URL."""

    kind: str
    text: str | None = None
    media_type: str | None = None
    ref: str | None = None


@dataclass(slots=True)
class Turn:
    """One turn. `call_turn` and `call_index` are filled in by `link`."""

    role: Role
    content: str | None = None
    content_kind: ContentKind = "absent"
    actor: str | None = None
    parts: list[Part] | None = None
    reasoning: str | None = None
    calls: list[Call] = field(default_factory=list)
    tool_call_id: str | None = None
    tool_name: str | None = None
    call_turn: int | None = None
    call_index: int | None = None
    is_error: bool | None = None
    ts: int | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reward: float | None = None
    loss_weight: float = 1.0
    copied_context: bool = False
    extra_json: str | None = None


@dataclass(slots=True)
class RewardPart:
    """One named component of a reward."""

    name: str
    value: float | None


@dataclass(slots=True)
class Run:
    """One trajectory. Every field but `turns` is the column of the same name."""

    format: str
    turns: list[Turn]
    record_id: str | None = None
    task_id: str | None = None
    domain: str | None = None
    trial: int | None = None
    session_id: str | None = None
    parent_id: str | None = None
    depth: int = 0
    agent: str | None = None
    model: str | None = None
    license: str | None = None
    tools_json: str | None = None
    reward: float | None = None
    reward_parts: list[RewardPart] = field(default_factory=list)
    success: bool | None = None
    outcome: str = "unknown"
    error: str | None = None
    gold_json: str | None = None
    started_at: int | None = None
    duration: float | None = None
    cost: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    defects: list[str] = field(default_factory=list)
    meta_json: str = "{}"


class Unreadable(ValueError):
    """Raised by `read` for a record that is not of the format; the message is the reason in `rejects.jsonl`."""


@dataclass(frozen=True, slots=True)
class Match:
    """How well a sample fits a format: 0 (not at all) to 1. `why` names the evidence, or what is missing.

    `whole` means that the file's array is one record (a bare list of messages), not a list of records.
    """

    score: float
    why: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of a file, never its name. `document` is the object around the records, if there is one."""

    records: tuple[Json, ...]
    container: Container
    document: dict[str, Json] | None = None


@dataclass(slots=True)
class Context:
    """Where a record stands. `notes` are the reader's defects; an adapter adds its own.

    `shared` is scratch space that all records of one file see, for what is worth working out once.
    """

    container: Container = "lines"
    document: dict[str, Json] | None = None
    notes: set[str] = field(default_factory=set)
    shared: dict[str, Any] = field(default_factory=dict)


class Adapter(Protocol):
    """One raw format. `version` changes whenever the output for some input changes: it is part of the cache key.

    `elements` names the member of an object document whose list holds the records (null when an object is a record).
    `call_ids` says that every call of the format has an id, so that a missing one is a defect.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def containers(self) -> frozenset[Container]: ...
    @property
    def elements(self) -> str | None: ...
    @property
    def call_ids(self) -> bool: ...

    def recognise(self, sample: Sample) -> Match:
        """Scores a sample by its content."""

    def read(self, record: Json, context: Context) -> list[Run]:
        """The trajectories that one record holds. Raises Unreadable."""
