"""Turns → the messages that a trainer reads, and what a target refuses.

What is changed on the way, and nothing else:
- event turns are left out; so are calls of the user simulator (requestor `user`), their results, and a turn that held
  nothing but such calls;
- a call's id is kept unless it is missing or stood before in the run; it is then `call_{turn}_{k}`. A result gets the
  id of the call that it is linked to;
- arguments keep the source's text: as an object (`trl`) or as a string (`openai`). Line breaks between its tokens
  become spaces where the text is an object of a line of JSON. A call without arguments has `{}`;
- content that is null or absent is `""`, except in the openai form beside calls, where it is null;
- texts of a content list are joined with a blank line.

Nothing is repaired. What a target cannot say makes a `problem`, and the row that needs such a message is rejected:
`parts_not_text` (an image, a file), `call_without_name`, `arguments_not_an_object`, `number_too_large` and
`nested_too_deeply` (loaders of the target cannot read it), `call_outside_assistant`; and by `fault_of` for their order:
`system_not_first`, `result_without_call`, `unanswered_call`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import orjson
import polars as pl

from curatec.compiler.text import estimate_tokens_py
from curatec.runtime.conversation import thinking

Form = Literal["trl", "openai"]
_PLAIN = ("turn", "role", "content", "content_kind", "reasoning", "call_turn", "call_index", "tool_name")
TURN_COLUMNS = frozenset({*_PLAIN, "calls", "parts"})  # what messages are made of
_DIGITS = re.compile(r"[0-9]{19}")
DEPTH = 900  # the loaders' limit is 1024, the message around it takes some
MEDIA = (pl.col("content_kind").cast(pl.String) == "parts") & pl.col("parts").list.eval(
    pl.element().struct.field("kind") != "text"
).list.any().fill_null(False)
"""Whether a part of a turn is not text."""


# One is made for every message that is shown: a named tuple costs a third of a frozen dataclass.


class Call(NamedTuple):
    """One call as shown. `function` is the JSON text of its `function` object, the text that spans of calls are in."""

    id: str
    function: str
    tokens: int  # estimated, of name and arguments


class Message(NamedTuple):
    """One message. `at` is the position of its turn in the batch's `Frames.turns`, `turn` its number in the source."""

    at: int
    turn: int
    role: str
    content: str | None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
    name: str | None = None
    problem: str | None = None

    @property
    def tokens(self) -> int:
        """Estimated: content, reasoning, calls."""
        spoken = estimate_tokens_py(self.content or "") + estimate_tokens_py(self.reasoning or "")
        return spoken + sum(call.tokens for call in self.calls)

    @property
    def length(self) -> int:
        """Code points of content, reasoning and calls."""
        return len(self.content or "") + len(self.reasoning or "") + sum(len(call.function) for call in self.calls)


def turn_rows(turns: pl.DataFrame) -> list[dict[str, Any]]:
    """The turns of a batch as rows, each with `at` (its position) and `media` (whether a part is not text)."""
    shown = turns.select("run", *_PLAIN, "calls", media=MEDIA, at=pl.int_range(pl.len()))
    rows = _dicts(shown.drop("calls"))
    flat = shown.select("at", "calls").explode("calls", empty_as_null=False, keep_nulls=False).unnest("calls")
    for row in rows:
        row["calls"] = []
    for call in _dicts(flat):
        rows[call["at"]]["calls"].append(call)
    return rows


def _dicts(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame without nesting: column by column, which is several times faster than row by row."""
    names = frame.columns
    return [dict(zip(names, row, strict=True)) for row in zip(*(frame[name].to_list() for name in names), strict=True)]


def by_run(rows: Sequence[dict[str, Any]], runs: int) -> list[list[dict[str, Any]]]:
    """Turn rows of each run of a batch; an empty list for a run without turns."""
    grouped: list[list[dict[str, Any]]] = [[] for _ in range(runs)]
    for row in rows:
        grouped[row["run"]].append(row)
    return grouped


def messages_of(turns: Sequence[dict[str, Any]], form: Form) -> list[Message]:
    """The messages of one run, in order. Total: what cannot be said is a message with a `problem`."""
    ids = _call_ids(turns)
    hidden = {(t["turn"], k) for t in turns for k, call in enumerate(t["calls"]) if call["requestor"] == "user"}
    return [m for t in turns if (m := _message(t, ids, hidden, form)) is not None]


def _message(
    turn: dict[str, Any], ids: dict[tuple[int, int], str], hidden: set[tuple[int, int]], form: Form
) -> Message | None:
    role, number = turn["role"], turn["turn"]
    if role == "event":
        return None
    if role == "tool":
        return _result(turn, ids, hidden)
    shown = [(k, call) for k, call in enumerate(turn["calls"]) if (number, k) not in hidden]
    if len(shown) < len(turn["calls"]) and not shown and not (turn["content"] or turn["reasoning"]):
        return None
    calls, problem = _calls([(ids[number, k], call) for k, call in shown], form)
    if turn["media"]:
        problem = "parts_not_text"
    elif calls and role != "assistant":
        problem = "call_outside_assistant"
    reasoning = turn["reasoning"] if role == "assistant" else None
    return Message(turn["at"], number, role, turn["content"], reasoning or None, calls, problem=problem)


def _result(turn: dict[str, Any], ids: dict[tuple[int, int], str], hidden: set[tuple[int, int]]) -> Message | None:
    made_by = (turn["call_turn"], turn["call_index"])
    if made_by in hidden:
        return None
    problem = "parts_not_text" if turn["media"] else None
    return Message(
        turn["at"],
        turn["turn"],
        "tool",
        turn["content"],
        call_id=ids.get(made_by),
        name=turn["tool_name"],
        problem=problem,
    )


def _call_ids(turns: Sequence[dict[str, Any]]) -> dict[tuple[int, int], str]:
    """(turn, k) → an id that no other call of the run has."""
    calls = [(t["turn"], k, call) for t in turns for k, call in enumerate(t["calls"]) if call["requestor"] != "user"]
    taken = {call["id"] for _, _, call in calls}
    seen: set[str] = set()
    found: dict[tuple[int, int], str] = {}
    for turn, k, call in calls:
        id_ = call["id"]
        if not id_ or id_ in seen:
            id_ = f"call_{turn}_{k}"
            while id_ in taken:
                id_ += "_"
            taken.add(id_)
        seen.add(id_)
        found[turn, k] = id_
    return found


# ---- calls ----


def _calls(calls: Iterable[tuple[str, dict[str, Any]]], form: Form) -> tuple[tuple[Call, ...], str | None]:
    made: list[Call] = []
    problem: str | None = None
    for id_, call in calls:
        arguments, fault = _arguments(call, form)
        problem = problem or fault or (None if call["name"] else "call_without_name")
        function = orjson.dumps({"name": call["name"] or "", "arguments": arguments}).decode()
        said = call["args_json"] if call["args_json"] is not None else call["args_raw"] or ""
        made.append(Call(id_, function, estimate_tokens_py(call["name"] or "") + estimate_tokens_py(said)))
    return tuple(made), problem


def _arguments(call: dict[str, Any], form: Form) -> tuple[Any, str | None]:
    """What stands under `arguments`, and why the target cannot take it."""
    state, text, raw = call["args_state"], call["args_json"], call["args_raw"]
    if state == "none":
        return ("{}" if form == "openai" else {}), None
    if form == "openai":
        # A repaired text was no JSON; all other raw texts say more than the value that was read from them.
        return (text if raw is None or state == "repaired" else raw), None
    if text is None:
        return {}, "arguments_not_an_object"
    return orjson.Fragment(_one_line(text)), unreadable(text)


def _one_line(text: str) -> str:
    """Inside valid JSON a line break can only stand between tokens, where a space means the same."""
    return text.replace("\r", " ").replace("\n", " ")


def unreadable(text: str) -> str | None:
    """Why the JSON reader of `datasets` cannot read a valid JSON text: integers beyond 64 bits, nesting; else null."""
    if text.count("[") + text.count("{") > DEPTH and _depth(text) > DEPTH:
        return "nested_too_deeply"
    if _DIGITS.search(text):
        wide: list[int] = []
        json.loads(text, parse_int=lambda digits: wide.append(int(digits[:40])))
        if any(not -(2**63) <= number < 2**64 for number in wide):
            return "number_too_large"
    return None


def _depth(text: str) -> int:
    """How deep brackets nest outside strings."""
    depth = deepest = 0
    for bracket in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif bracket in "]}":
            depth -= 1
    return deepest


# ---- as JSON ----


def without_reasoning(message: Message) -> Message:
    """What `reasoning strip` shows of a message."""
    if message.role != "assistant":
        return message
    content = thinking.without(message.content) if message.content else message.content
    return message._replace(reasoning=None, content=content)


def as_objects(message: Message) -> Message:
    """A message of the openai form with arguments as objects, as chat templates want them."""
    return message._replace(calls=tuple(call._replace(function=_as_object(call.function)) for call in message.calls))


def _as_object(function: str) -> str:
    said = orjson.loads(function)
    try:
        read = orjson.loads(said["arguments"])
    except orjson.JSONDecodeError:
        return function  # the template is shown the text
    shown = orjson.Fragment(said["arguments"]) if isinstance(read, dict) else said["arguments"]
    return orjson.dumps({"name": said["name"], "arguments": shown}).decode()


def json_of(message: Message, form: Form, *, masked: bool = False) -> str:
    """The message as JSON text. `masked` gives an assistant message `"weight": 0`, which says that it is context."""
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.content is None and not (form == "openai" and message.calls):
        shown["content"] = ""
    if message.reasoning is not None:
        shown["reasoning_content"] = message.reasoning
    if message.calls:
        shown["tool_calls"] = [
            {"id": c.id, "type": "function", "function": orjson.Fragment(c.function)} for c in message.calls
        ]
    if message.role == "tool":
        shown["tool_call_id"] = message.call_id
        if form == "trl" and message.name:
            shown["name"] = message.name
    if masked:
        shown["weight"] = 0
    return orjson.dumps(shown).decode()


# ---- what a target refuses ----


def fault_of(messages: Sequence[Message], *, may_end_on_call: bool) -> str | None:
    """Why a target refuses these messages, or null. `may_end_on_call`: calls of the last message may be unanswered, as
    where the row ends with what is trained; a prompt or a context may not."""
    problem = next((m.problem for m in messages if m.problem), None)
    if problem is not None:
        return problem
    started = False
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.call_id is None or message.call_id not in waiting:
                return "result_without_call"
            waiting.discard(message.call_id)
            continue
        if waiting:
            return "unanswered_call"
        if message.role == "system":
            if started:
                return "system_not_first"
            continue
        started = True
        waiting = {call.id for call in message.calls}
    ends_on_call = bool(messages) and messages[-1].role == "assistant"
    return "unanswered_call" if waiting and not (may_end_on_call and ends_on_call) else None


# ---- tools ----


class Tools:
    """Lists of tool schemas, each parsed once: key → JSON texts of the schemas."""

    def __init__(self, toolsets: dict[str, str]) -> None:
        self._toolsets = toolsets
        self._known: dict[str, tuple[list[str] | None, str | None]] = {}

    def __call__(self, key: str | None) -> tuple[list[str] | None, str | None]:
        """The schemas, null where there is none, and why they cannot be read by a loader."""
        if key is None:
            return None, None
        if key not in self._known:
            self._known[key] = _schemas(self._toolsets[key])
        return self._known[key]


def _schemas(text: str) -> tuple[list[str] | None, str | None]:
    # Raw keeps the source's text of each schema: key order and numbers.
    raws = msgspec.json.decode(text, type=list[msgspec.Raw])
    texts = [_one_line(bytes(raw).decode()) for raw in raws]
    return texts or None, next((fault for t in texts if (fault := unreadable(t))), None)
