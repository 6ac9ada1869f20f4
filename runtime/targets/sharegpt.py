"""`sharegpt`: conversations of `from` and `value`, as LLaMA-Factory reads them with `formatting: sharegpt`.

Its rules: after the system text, entries of the user's side (`human`, `observation`) and of the assistant's (`gpt`,
`function_call`) take turns, the user's first, the assistant's last; a row that breaks this is skipped in training. A
`function_call` is one call or a list of calls as JSON, with its reasoning before it. There is no mask: every entry of
the assistant is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
import orjson

from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks.columns import Col
from curatec.runtime.targets.target import Conversation, Pair, Sink, Target, Values, as_texts, fault

ABOUT = (
    "User messages that follow each other are one, joined with a blank line. Calls of one message are one "
    "`function_call`, a JSON list where there are several; their results are then one `observation`, a JSON list of "
    "texts. Blank text beside calls is left out. Reasoning stands before the text or call as `<think>…</think>`, "
    "without the line breaks around it. What comes behind the last assistant message is left out. Ids of calls are "
    "lost: results follow in the order of the calls. Tools are bare function schemas, as JSON text. Refused: text "
    "beside calls, roles that do not alternate, an assistant message that is not trained. An entry of LLaMA-Factory's "
    "`dataset_info.json` says `formatting: sharegpt` and `columns: {messages: conversations, system: system, tools: "
    "tools}`."
)
_SYSTEM = Col("system", "text", "the system text, null where there is none")
_TOOLS = Col("tools", "text", "schemas of the tools shown, a JSON list as text; null where none are known")
COLUMNS: dict[Sink, tuple[Col, ...]] = {
    "sft": (Col("conversations", "entries", "the conversation, as `from` and `value`"), _SYSTEM, _TOOLS),
    "preference": (
        Col("conversations", "entries", "what both sides share, as `from` and `value`"),
        Col("chosen", "entry", "the better answer"),
        Col("rejected", "entry", "the worse answer"),
        _SYSTEM,
        _TOOLS,
    ),
}
_Entry = dict[str, str]


class _Refused(Exception):
    """Carries a reason out of the middle of a row."""


def write(sink: Sink, row: Conversation) -> Values | str:
    last = max((i for i, message in enumerate(row.messages) if message.role == "assistant"), default=-1)
    used = row.trained[: last + 1]
    refused = fault(sink, row.messages) or ("no_assistant" if last < 0 else None)
    if refused is not None:
        return refused
    if any(weight != 1 for message, weight in used if message.role == "assistant"):
        return "mask_not_expressible"
    try:
        system, entries = _laid_out([message for message, _ in used])
    except _Refused as error:
        return str(error)
    if not _alternate(entries):
        return "role_order"
    return {"conversations": entries, "system": system, "tools": bare_tools(row.tools)}


def pair(row: Pair) -> Values | str:
    for side in (row.chosen, row.rejected):
        refused = fault("preference", [*row.prompt, *side])
        if refused is not None:
            return refused
    if any(len(side) != 1 or side[0].role != "assistant" for side in (row.chosen, row.rejected)):
        return "long_continuation"
    try:
        system, entries = _laid_out(row.prompt)
        chosen, rejected = _said(row.chosen[0]), _said(row.rejected[0])
    except _Refused as error:
        return str(error)
    if not _alternate([*entries, chosen]):
        return "role_order"
    held = {"conversations": entries, "chosen": chosen, "rejected": rejected}
    return {**held, "system": system, "tools": bare_tools(row.tools)}


def _laid_out(messages: Sequence[m.Message]) -> tuple[str | None, list[_Entry]]:
    """The system text and the entries."""
    system = [message.content or "" for message in messages if message.role == "system"]
    return "\n\n".join(system) if system else None, list(_entries(messages))


def _entries(messages: Sequence[m.Message]) -> Iterator[_Entry]:
    for role, group in groupby(messages, key=lambda message: message.role):
        if role == "user":
            yield {"from": "human", "value": "\n\n".join(message.content or "" for message in group)}
        elif role == "tool":
            texts = [message.content or "" for message in group]
            yield {"from": "observation", "value": texts[0] if len(texts) == 1 else orjson.dumps(texts).decode()}
        elif role == "assistant":
            yield from map(_said, group)


def _said(message: m.Message) -> _Entry:
    if message.calls and message.content and not message.content.isspace():
        raise _Refused("text_beside_calls")
    thought = ""
    if message.reasoning:
        if "</think>" in message.reasoning:
            raise _Refused("reasoning_holds_tag")
        thought = f"<think>\n{message.reasoning.strip(chr(10))}\n</think>\n\n"
    if not message.calls:
        return {"from": "gpt", "value": thought + (message.content or "")}
    calls = [call.function for call in message.calls]
    return {"from": "function_call", "value": thought + (calls[0] if len(calls) == 1 else f"[{','.join(calls)}]")}


def _alternate(entries: Sequence[_Entry]) -> bool:
    sides = [entry["from"] in ("gpt", "function_call") for entry in entries]
    return len(sides) % 2 == 0 and sides == [False, True] * (len(sides) // 2)


class _Tool(msgspec.Struct):
    """A schema in OpenAI's wrapping; the source's text of the function is kept."""

    function: msgspec.Raw = msgspec.Raw(b"null")
    type: str = ""


def bare_tools(tools: Sequence[str] | None) -> str | None:
    """Schemas without OpenAI's wrapping, as one JSON text: all versions of the loader take these."""
    return as_texts([_bare(tool) for tool in tools]) if tools else None


def _bare(tool: str) -> str:
    held = msgspec.json.decode(tool, type=_Tool)
    return bytes(held.function).decode() if held.type == "function" and bytes(held.function)[:1] == b"{" else tool


SHAREGPT = Target("sharegpt", "trl", ABOUT, COLUMNS, write, pair)
