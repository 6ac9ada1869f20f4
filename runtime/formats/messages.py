"""Chat messages in OpenAI's form, which several formats share: from a list of messages to turns.

Roles: `developer` is a system turn, `function` a tool turn; an unknown role becomes an event turn with a defect. The
legacy `function_call` counts as one call without an id. A `tool_result` part of a user message is a turn of its own.
Members that have no column go to `extra_json`; those that are null are dropped there.
"""

from __future__ import annotations

from .content import content_of
from .json_text import Json
from .model import Call, Role, Turn, Unreadable
from .values import call_of, flag_of, integer_of, number_of, object_json, text_of, time_of

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
    "event": "event",
}
_ACTOR = {"user": "user", "assistant": "agent", "tool": "environment"}
TAKEN = frozenset({"role", "name", "content", "tool_calls", "function_call", "tool_call_id", "is_error"}) | frozenset(
    {"reasoning_content", "reasoning", "loss_weight", "weight", "trainable", "timestamp", "model", "usage", "reward"}
)


def turns_of(messages: list[Json], notes: set[str]) -> list[Turn]:
    """One turn for each message, in order. Raises Unreadable at the first entry that is not an object with a role."""
    turns = []
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Unreadable(f"message {index + 1} is not an object with a `role`")
        turns.extend(_results(message, notes))
        rest = _without_results(message)
        if rest is not None:
            turns.append(turn_of(rest, notes))
    return turns


def _is_result(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_result"


def _results(message: dict[str, Json], notes: set[str]) -> list[Turn]:
    """The `tool_result` parts that some providers put into a user message, each as a tool turn."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    held = ({**part, "role": "tool", "tool_call_id": part.get("tool_use_id")} for part in parts if _is_result(part))
    return [
        turn_of({key: item for key, item in part.items() if key not in ("type", "tool_use_id")}, notes) for part in held
    ]


def _without_results(message: dict[str, Json]) -> dict[str, Json] | None:
    """The message without those parts; null when nothing else was in it."""
    content = message.get("content")
    if not isinstance(content, list) or not any(map(_is_result, content)):
        return message
    left = [part for part in content if not _is_result(part)]
    return {**message, "content": left} if left else None


def turn_of(message: dict[str, Json], notes: set[str]) -> Turn:
    """The turn of one message."""
    said = message["role"]
    role = _ROLES.get(said)
    if role is None:
        notes.add("unknown_role")
        role = "event"
    content = content_of(message, "content", notes)
    turn = Turn(role, content.text, content.kind, _ACTOR.get(role), content.parts)
    if said not in _ROLES:
        turn.actor = said
    name = text_of(message.get("name"))
    if role == "tool":
        turn.tool_name = name
        turn.tool_call_id = text_of(message.get("tool_call_id"))
        turn.is_error = flag_of(message.get("is_error"))
    elif name:
        turn.actor = name
    turn.reasoning = _reasoning(message, content.reasoning)
    turn.calls = [*content.calls, *_calls(message, notes)]
    turn.loss_weight = _weight(message, notes)
    turn.ts = time_of(message.get("timestamp"), notes)
    turn.model = text_of(message.get("model"))
    turn.reward = number_of(message.get("reward"), notes)
    left = {key: item for key, item in message.items() if key not in TAKEN}
    _take_usage(turn, message, left)
    if role != "tool" and "tool_call_id" in message:
        left["tool_call_id"] = message["tool_call_id"]
    if left:
        turn.extra_json = object_json(left)
    return turn


def _reasoning(message: dict[str, Json], among_parts: list[str]) -> str | None:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str):
            return str(message[key])
    return "\n\n".join(among_parts) if among_parts else None


def _calls(message: dict[str, Json], notes: set[str]) -> list[Call]:
    calls = []
    listed = message.get("tool_calls")
    if isinstance(listed, list):
        for entry in listed:
            if not isinstance(entry, dict):
                raise Unreadable("a tool call is not an object")
            calls.append(_call(entry, notes))
    elif listed is not None:
        raise Unreadable("`tool_calls` is not a list")
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and not calls:  # some servers repeat the call in both places
        calls.append(call_of(legacy.get("name"), legacy.get("arguments"), None, notes))
    return calls


def _call(entry: dict[str, Json], notes: set[str]) -> Call:
    held = entry.get("function")
    if isinstance(held, dict):
        return call_of(held.get("name"), held.get("arguments"), entry.get("id"), notes)
    custom = entry.get("custom")
    if isinstance(custom, dict):  # a custom tool takes free text, which is no JSON
        return call_of(custom.get("name"), custom.get("input"), entry.get("id"), notes)
    return call_of(entry.get("name"), entry.get("arguments"), entry.get("id"), notes)


def _weight(message: dict[str, Json], notes: set[str]) -> float:
    for key in ("loss_weight", "weight"):
        if key in message:
            weight = number_of(message[key], notes)
            return 1.0 if weight is None else weight
    return 0.0 if message.get("trainable") is False else 1.0  # verl's mask


def _take_usage(turn: Turn, message: dict[str, Json], left: dict[str, Json]) -> None:
    usage = message.get("usage")
    if isinstance(usage, dict):
        turn.prompt_tokens = integer_of(usage.get("prompt_tokens", usage.get("input_tokens")))
        turn.completion_tokens = integer_of(usage.get("completion_tokens", usage.get("output_tokens")))
        left["usage"] = usage
