"""The names that a spec can use at each level, with type and meaning. The reference page is made from these tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from curatec.compiler.types import Level, Type

# fact: frozen at `from`; content: of the turns as they are now; later: set by a step
Kind = Literal["fact", "content", "later"]


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type
    doc: str
    kind: Kind = "fact"


def _table(*fields: Field) -> dict[str, Field]:
    return {field.name: field for field in fields}


OUTCOMES = ("success", "failure", "crash", "truncated", "unknown")
ROLES = ("system", "user", "assistant", "tool", "event")

TRAJECTORY = _table(
    Field("id", Type.TEXT, "hash of the canonical record; `~n` is added for identical ones"),
    Field("source", Type.TEXT, "name of the source that it came from"),
    Field("task", Type.TEXT, "`domain/task_id`"),
    Field("task_id", Type.TEXT, "the record's task id; without one, a hash of the first user text and the tools"),
    Field("domain", Type.TEXT, "from the record, else from the source, else the source's name"),
    Field("model", Type.TEXT, "the model that acted, null where nothing says it"),
    Field("reward", Type.FLOAT, "the record's reward; null for a crash"),
    Field("success", Type.BOOL, "the format's own verdict, or the source's `success when`"),
    Field("outcome", Type.TEXT, f"one of {', '.join(OUTCOMES)}"),
    Field("trial", Type.INT, "number of the attempt, as the record says"),
    Field("attempts", Type.INT, "runs with a verdict in its (task, model)"),
    Field("pass_rate", Type.FLOAT, "successes among `attempts`; null below 2"),
    Field("spread", Type.FLOAT, "largest minus smallest reward in its (task, model); null below 2"),
    Field("meta", Type.JSON, "what else the record holds: `meta.user_id`, `meta.labels[0]`"),
    Field("defects", Type.TEXTS, "what was odd about the record"),
    Field("license", Type.TEXT, "the source's licence"),
    Field("started_at", Type.TIME, "start, UTC"),
    Field("duration", Type.FLOAT, "seconds"),
    Field("cost", Type.FLOAT, "US dollars"),
    Field("agent", Type.TEXT, "name of the agent or sub-agent"),
    Field("session_id", Type.TEXT, "session that the record names"),
    Field("parent_id", Type.TEXT, "the run that started this one"),
    Field("depth", Type.INT, "0 for a top-level run, 1 for its sub-agents"),
    Field("turn_count", Type.INT, "turns, `system` and `event` left out", "content"),
    Field("assistant_turns", Type.INT, "turns of the assistant", "content"),
    Field("call_count", Type.INT, "tool calls", "content"),
    Field("error_count", Type.INT, "tool turns with `is_error`", "content"),
    Field("tokens", Type.INT, "an estimate without `render`: UTF-8 bytes / 4, each turn rounded up", "content"),
    Field(
        "trained_tokens", Type.INT, "tokens of assistant turns that carry loss; an estimate as `tokens` is", "content"
    ),
    Field("text", Type.TEXT, "content of all turns but `system` and `event`, joined by a line end", "content"),
    Field("task_text", Type.TEXT, "content of the first user turn", "content"),
    Field("final_answer", Type.TEXT, "content of the last assistant turn that has any", "content"),
    Field(
        "calls_text",
        Type.TEXT,
        "all calls in order, one a line, arguments in canonical form; null without any",
        "content",
    ),
    Field("tool_names", Type.TEXTS, "names of the tools called, sorted, distinct", "content"),
    Field("failure", Type.TEXT, "name of the first failure family that holds; set by `tag failure`", "later"),
)

TURN = _table(
    Field("index", Type.INT, "position among all turns, from 0"),
    Field("role", Type.TEXT, f"one of {', '.join(ROLES)}"),
    Field("actor", Type.TEXT, "`agent`, `user`, `environment`, or the name of a sub-agent"),
    Field("content", Type.TEXT, "text; null where there is none"),
    Field("reasoning", Type.TEXT, "the assistant's reasoning, kept apart from its content"),
    Field("calls", Type.COLLECTION, "the turn's tool calls, for quantifiers and `is empty`"),
    Field("calls_text", Type.TEXT, "its calls, one a line; null without any"),
    Field("tool_name", Type.TEXT, "of a tool turn: the tool that answered"),
    Field("is_error", Type.BOOL, "of a tool turn: whether it reports an error; null where nothing says so"),
    Field("tokens", Type.INT, "an estimate without `render`: UTF-8 bytes / 4, rounded up"),
)

CALL = _table(
    Field("name", Type.TEXT, "the tool's name"),
    Field("args", Type.JSON, 'arguments: `args.x.y`, `args["x-y"]`, `args.x[0]`'),
    Field("result", Type.TEXT, "content of the tool turn that answers; null where none does"),
    Field("is_error", Type.BOOL, "of the tool turn that answers"),
)

TOOL = _table(
    Field("name", Type.TEXT, "the tool's name"),
    Field("description", Type.TEXT, "what the schema says of it"),
    Field("used", Type.BOOL, "whether any call of the trajectory names it"),
)

FIELDS: dict[Level, dict[str, Field]] = {
    Level.TRAJECTORY: TRAJECTORY,
    Level.TURN: TURN,
    Level.CALL: CALL,
    Level.TOOL: TOOL,
}

# Columns beside the fields that a row has while a strategy runs; a derived column of the same name would replace one.
INNER = frozenset(
    {"digest", "format", "home_part", "home_row", "line", "ordinal", "origin", "parent", "part", "path", "record_id"}
    | {"row", "split", "suffix", "toolset"}
)
# Neighbours of a turn: the previous and next one, the assistant turn that made this call, the next assistant turn.
NEIGHBOURS = ("prev", "next", "caller", "reply")
SIGNALS = {"forgetting": Type.BOOL, "boundary": Type.BOOL, "rare": Type.FLOAT}
# What one row of each level holds.
COLLECTIONS: dict[str, Level] = {"turns": Level.TURN, "calls": Level.CALL, "tools": Level.TOOL}
# Fields that `turns set` may write.
SETTABLE = ("content", "reasoning")
