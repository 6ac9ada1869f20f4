"""Conversations for the tests: by hand, by hypothesis, and all tau-bench and tau2 runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from hypothesis import strategies as st

from curatec.compiler import plan
from curatec.runtime.arrow_file import read as read_part
from curatec.runtime.conversation.messages import Call, Message, by_run, messages_of, turn_rows
from curatec.runtime.conversation.spans import Trained, trained
from curatec.runtime.ingest import ingest
from tests.rendering.styles import LLAMA3, Style


def system(text: str) -> Message:
    return Message(0, 0, "system", text)


def user(text: str) -> Message:
    return Message(0, 0, "user", text)


def call(name: str = "look", arguments: Any = None, id: str = "call00001") -> Call:
    function = {"name": name, "arguments": {} if arguments is None else arguments}
    return Call(id, orjson.dumps(function).decode(), 1)


def assistant(text: str | None, *calls: Call, reasoning: str | None = None) -> Message:
    return Message(0, 0, "assistant", text, reasoning, calls)


def tool(text: str, id: str = "call00001", name: str = "look") -> Message:
    return Message(0, 0, "tool", text, call_id=id, name=name)


def schema(name: str = "look", description: str = "Look around.") -> str:
    place = {"place": {"type": "string"}}
    parameters = {"type": "object", "properties": place, "required": ["place"]}
    return json.dumps(
        {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
    )


def loss(*, except_reasoning: bool = False) -> plan.Loss:
    return plan.Loss(except_reasoning=except_reasoning)


def marks(
    messages: Sequence[Message], weights: Sequence[float] | None = None, *, except_reasoning: bool = False
) -> list[Trained]:
    """What the spec's rule trains; without weights every assistant message."""
    given = weights or [float(message.role == "assistant") for message in messages]
    rule = loss(except_reasoning=except_reasoning)
    return [trained(message, weight, rule) for message, weight in zip(messages, given, strict=True)]


# ---- by hypothesis ----

# Fragments of what templates write, quotes, wide characters, line ends; never a whole special token.
_WORDS = st.sampled_from(
    ["yes", "the order", "42", "é", "日本", "🙂", '"', "\\", "{", "}", "\n", "\n\n", "</tool_call>", "<tool_call>",
     "assistant\n", "<|im_end", "[INST", "/INST]", "<s", "</", "user:", "\t", "'", "\u2028", "null", "</tools>", ", "]
)  # fmt: skip
_TEXTS = st.lists(_WORDS, min_size=1, max_size=6).map(" ".join).filter(lambda text: bool(text.strip()))
TIGHT = _TEXTS.map(str.strip)
RAGGED = _TEXTS  # with white space at its ends
_ARGUMENTS = st.dictionaries(
    st.sampled_from(["place", "n", "ü", "deep"]),
    st.recursive(
        st.one_of(_TEXTS, st.integers(-5, 5), st.booleans(), st.none(), st.just("")),
        lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.just("k"), inner, max_size=1)),
        max_leaves=4,
    ),
    max_size=3,
)


@st.composite
def conversations(draw: st.DrawFn, style: Style, said: st.SearchStrategy[str] = TIGHT) -> list[Message]:
    """Ends on an assistant message; what the style cannot say is left out. `said` are the texts of answers."""
    alone = style is LLAMA3
    thoughts = st.one_of(st.none(), TIGHT) if style.shows_reasoning else st.none()
    made: list[Message] = [system(draw(_TEXTS))] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        made.append(user(draw(_TEXTS)))
        for _ in range(draw(st.integers(0, 2))):
            calls = []
            for _ in range(1 if alone else draw(st.integers(1, 2))):
                number += 1
                calls.append(call("look", draw(_ARGUMENTS), f"call{number:05}"))
            beside = "" if alone else draw(st.one_of(st.just(""), said))
            made.append(assistant(beside, *calls, reasoning=draw(thoughts)))
            made += [tool(draw(_TEXTS), one.id) for one in calls]
        made.append(assistant(draw(said), reasoning=draw(thoughts)))
    return made


# ---- the collected runs ----


def tau_runs(data: Path) -> Iterator[list[Message]]:
    """Every run of tau-bench and tau2, up to its last assistant message."""
    for folder, pattern, format in (
        ("tau_bench", "**/*.json", "tau_bench"),
        ("tau2_bench", "**/trajectories/*.json", "tau2"),
    ):
        paths = sorted((data / folder).glob(pattern))
        for part in ingest(paths, base=data, format=format).parts:
            turns, runs = read_part(part.turns), read_part(part.runs)["row"].sort()
            numbered = turns.with_columns(run=runs.search_sorted(turns["row"]))
            for rows in by_run(turn_rows(numbered), len(runs)):
                messages = messages_of(rows, "trl")
                last = max((i for i, m in enumerate(messages) if m.role == "assistant"), default=-1)
                yield messages[: last + 1]
