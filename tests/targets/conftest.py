"""Conversations as plain values, and the way into a target's file and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from curatec.runtime.cache import Cache
from curatec.runtime.convert import Converted, convert
from curatec.runtime.ingest import Corpus, ingest
from curatec.runtime.targets import target
from tests.formats.conftest import rows_of


class Said(NamedTuple):
    """One turn, without what no target keeps. `calls` are (name, arguments as JSON text); `weight` of an assistant."""

    role: str
    content: str
    reasoning: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    weight: float | None = None
    answers: tuple[int, int] | None = None


def read(path: Path, cache: Cache, format: str | None = None) -> Corpus:
    return ingest([path], base=path.parent, cache=cache, format=format)


def said(run: dict[str, Any]) -> list[Said]:
    """The turns of a run as read."""
    return [
        Said(
            turn["role"],
            turn["content"] or "",
            turn["reasoning"] or None,
            tuple((call["name"], spelled(json.loads(call["args_json"]))) for call in turn["calls"]),
            turn["loss_weight"] if turn["role"] == "assistant" else None,
            (turn["call_turn"], turn["call_index"]) if turn["call_turn"] is not None else None,
        )
        for turn in run["turns"]
    ]


def spelled(arguments: Any) -> str:
    """Arguments so that 1, 1.0 and true differ."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def tools(run: dict[str, Any]) -> Any:
    return json.loads(run["tools_json"]) if run["tools_json"] else None


def record(turns: list[Said], schemas: list[Any] | None) -> dict[str, Any]:
    """The turns as OpenAI chat messages."""
    messages: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        message: dict[str, Any] = {"role": turn.role, "content": turn.content}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [
                {"id": f"c{number}.{k}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for k, (name, arguments) in enumerate(turn.calls)
            ]
        if turn.answers:
            message["tool_call_id"] = f"c{turn.answers[0]}.{turn.answers[1]}"
        if turn.weight == 0:
            message["weight"] = 0
        messages.append(message)
    return {"messages": messages, "tools": schemas}


def into(corpus: Corpus, name: str, out: Path) -> Converted:
    return convert(corpus, target(name), out)


def back(corpus: Corpus, name: str, out: Path, cache: Cache) -> tuple[Converted, list[dict[str, Any]]]:
    """The runs after they were written in a target's form and read again."""
    found = into(corpus, name, out)
    return found, rows_of(read(out, cache))


# ---- generated conversations ----

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=30)
THOUGHTS = TEXTS.map(str.strip).filter(bool)
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS, _VALUES, max_size=3).map(spelled)
SCHEMAS = st.lists(
    st.builds(
        lambda name, about: {"type": "function", "function": {"name": name, "description": about, "parameters": {}}},
        NAMES,
        TEXTS,
    ),
    max_size=2,
).map(lambda found: found or None)


@st.composite
def conversations(draw: st.DrawFn, *, strict: bool) -> list[Said]:
    """Turns in an order that every chat takes; `strict` is what ShareGPT can say: sides alternate, no text beside
    calls, all is trained."""
    turns = [Said("system", draw(TEXTS.filter(bool)))] if draw(st.booleans()) else []
    weights = st.just(1.0) if strict else st.sampled_from([0.0, 1.0])
    for _ in range(draw(st.integers(1, 3))):
        turns += [Said("user", draw(TEXTS)) for _ in range(1 if strict else draw(st.integers(1, 2)))]
        for _ in range(draw(st.integers(0, 2))):
            calls = tuple(draw(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=3)))
            content = "" if strict else draw(TEXTS)
            at = len(turns)
            turns.append(Said("assistant", content, draw(st.none() | THOUGHTS), calls, draw(weights)))
            turns += [Said("tool", draw(TEXTS), answers=(at, k)) for k in range(len(calls))]
        turns.append(Said("assistant", draw(TEXTS).strip(), draw(st.none() | THOUGHTS), (), draw(weights)))
    return turns
