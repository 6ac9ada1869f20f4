"""ShareGPT conversations: `{"conversations": [{"from", "value"}], "system", "tools"}`, tools as JSON text or a list.

A `function_call` value is a call, or a list of parallel calls, as JSON; an `observation` is its result, or a JSON list
with one result for each of several calls (texts as they are, other values as JSON). Hermes' spelling is read too:
`<tool_call>{...}</tool_call>` in an assistant's text, `<tool_response>` in a result, `<tools>` in the system text (it
stays as it is). A leading `<think>...</think>` of an assistant is its reasoning. Other members of a record are taken as
for `openai`, the rest goes to meta.

The format has no call ids (results are linked by position), no verdict, and cannot put text and a `function_call` into
one turn.
"""

from __future__ import annotations

from dataclasses import replace

from .content import calls_of_text
from .json_text import Json, encode
from .model import ANYWHERE, Call, Context, Match, Role, Run, Sample, Turn, Unreadable
from .openai import take_facts
from .score import share
from .values import MISSING, call_of, decode_text, literal_of, number_of, object_json, text_of, tools_of

_ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "tool_call": "assistant",
    "observation": "tool",
    "tool": "tool",
    "function": "tool",
    "function_response": "tool",
    "tool_response": "tool",
}
_ACTOR = {"user": "user", "assistant": "agent", "tool": "environment"}
_CALLS = frozenset({"function_call", "tool_call"})


class ShareGpt:
    """The adapter; it has no state."""

    name = "sharegpt"
    version = 2
    containers = ANYWHERE
    elements: str | None = None
    call_ids = False

    def recognise(self, sample: Sample) -> Match:
        if sample.container == "array" and sample.records and all(map(_is_entry, sample.records)):
            return Match(0.7, "the file is one list of `from`/`value` entries", whole=True)
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        if isinstance(record, list):
            record = {"conversations": record}
        if not isinstance(record, dict) or not isinstance(record.get("conversations"), list):
            raise Unreadable("no `conversations` list")
        notes = context.notes
        turns: list[Turn] = []
        for index, entry in enumerate(record["conversations"]):
            if not _is_entry(entry):
                raise Unreadable(f"entry {index + 1} is not an object with `from` and `value`")
            calls = len(turns[-1].calls) if turns else 0
            turns.extend(one for turn in _turns(entry, notes) for one in _unpacked(turn, calls))
        taken = {"conversations"}
        if isinstance(record.get("system"), str):
            taken.add("system")
            if record["system"]:
                turns.insert(0, Turn("system", record["system"], "text"))
        run = Run(self.name, turns)
        take_facts(run, record, notes, frozenset(taken))
        if run.tools_json is None:
            run.tools_json = _tools_in_text(turns)
        return [run]


def _turns(entry: dict[str, Json], notes: set[str]) -> list[Turn]:
    said, value = entry["from"], entry["value"]
    role = _ROLES.get(said)
    if role is None:
        notes.add("unknown_role")
        role = "event"
    turn = Turn(role, value, "text", _ACTOR.get(role, said if role == "event" else None))
    if "weight" in entry:
        weight = number_of(entry["weight"], notes)
        turn.loss_weight = 1.0 if weight is None else weight
    left = {key: item for key, item in entry.items() if key not in ("from", "value", "weight", "name")}
    turn.extra_json = object_json(left)
    if role == "tool":
        turn.tool_name = text_of(entry.get("name"))
        return _results(turn)
    if role == "assistant":
        _take_thought(turn)
        if said in _CALLS:
            _take_call(turn, notes)
        else:
            _take_tagged_calls(turn, notes)
    return [turn]


def _tagged(text: str, tag: str) -> tuple[list[str], list[str]]:
    """What stands inside `<tag>...</tag>`, and what stands around; linear whatever the text holds."""
    inside: list[str] = []
    around: list[str] = []
    at = 0
    while (start := text.find(f"<{tag}>", at)) >= 0:
        first = start + len(tag) + 2
        end = text.find(f"</{tag}>", first)
        if end < 0:
            break
        inside.append(text[first:end])
        around.append(text[at:start])
        at = end + len(tag) + 3
    return inside, [*around, text[at:]]


def _take_thought(turn: Turn) -> None:
    inside, around = _tagged(turn.content or "", "think")
    if inside and not around[0].strip():
        turn.reasoning = inside[0].strip("\n")
        turn.content = (turn.content or "").partition("</think>")[2].lstrip()


def _take_call(turn: Turn, notes: set[str]) -> None:
    calls = calls_of_text(turn.content or "", notes)
    if calls:
        turn.calls, turn.content, turn.content_kind = calls, None, "absent"


def _take_tagged_calls(turn: Turn, notes: set[str]) -> None:
    """Moves `<tool_call>` texts to calls; if any of them cannot be read, the text stays whole."""
    text = turn.content or ""
    found, around = _tagged(text, "tool_call")
    if not found:
        return
    calls: list[Call] = []
    heard: set[str] = set()
    for inner in found:
        read = _tagged_call(inner.strip(), heard)
        if read is None:
            notes.add("unparsed_call")
            return
        calls.append(read)
    notes |= heard
    turn.calls = calls
    rest = "".join(around).strip()
    turn.content, turn.content_kind = (rest, "text") if rest else (None, "absent")


def _tagged_call(text: str, notes: set[str]) -> Call | None:
    value, found = decode_text(text)
    if value is MISSING:
        value, found = literal_of(text), {"repr_args"}
    if not isinstance(value, dict) or "name" not in value:
        return None
    call = call_of(value["name"], value.get("arguments"), value.get("id"), notes)
    if found:
        notes |= found
        call.args_raw = text
        if "repr_args" in found and call.args_state == "json":
            call.args_state = "repaired"
    return call


def _results(turn: Turn) -> list[Turn]:
    """One turn for each `<tool_response>` of a result; the turn as it is where there is none."""
    found, _ = _tagged(turn.content or "", "tool_response")
    if not found:
        return [turn]
    turns = []
    for inner in map(str.strip, found):
        value = decode_text(inner)[0]
        named = value if isinstance(value, dict) else {}
        one = Turn("tool", inner, "text", turn.actor, tool_name=text_of(named.get("name")) or turn.tool_name)
        one.tool_call_id = text_of(named.get("tool_call_id"))
        one.loss_weight, one.extra_json = turn.loss_weight, turn.extra_json
        turns.append(one)
    return turns


def _unpacked(turn: Turn, calls: int) -> list[Turn]:
    """One turn for each entry of a result that is a list with one for each call before it."""
    if turn.role != "tool" or calls < 2:
        return [turn]
    value = decode_text(turn.content or "")[0]
    if not isinstance(value, list) or len(value) != calls:
        return [turn]
    texts = [entry if isinstance(entry, str) else encode(entry) for entry in value]
    return [replace(turn, content=text) for text in texts]


def _tools_in_text(turns: list[Turn]) -> str | None:
    """Hermes' `<tools>` in the first system text: a JSON list, or one object a line; null when it is neither."""
    if not turns or turns[0].role != "system":
        return None
    found, _ = _tagged(turns[0].content or "", "tools")
    if not found:
        return None
    value = decode_text(found[0])[0]
    if value is MISSING:
        lines = [decode_text(line)[0] for line in found[0].split("\n") if line.strip()]
        value = None if MISSING in lines else lines
    return tools_of(value, set())


def _is_entry(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and isinstance(value.get("value"), str)


def _score(record: Json) -> tuple[float, str]:
    held = record if isinstance(record, list) else record.get("conversations") if isinstance(record, dict) else None
    if not isinstance(held, list):
        return 0.0, "no `conversations` list"
    if not held or not all(map(_is_entry, held)):
        return (0.3, "`conversations` is empty") if not held else (0.2, "entries without `from` and `value`")
    return 0.9, "has `conversations` of `from` and `value`"


SHAREGPT = ShareGpt()
