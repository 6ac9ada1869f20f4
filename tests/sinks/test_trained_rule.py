"""Which text an sft row trains, at random: `loss`, `reasoning`, edits, decisions and contexts against a plain reading
of the records."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import Record, conversed, trained_texts

TEXTS = st.sampled_from(
    ["", "ok", "long answer", "<think>hm</think>\n\nyes", "<think>cut", "so</think> no", "é\U0001f600 x"]
)
REASONING = st.sampled_from([None, None, "", "why"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Record]:
    """Calls are answered at once; ids are missing or repeated now and then."""
    shown: list[Record] = [{"role": "system", "content": "S"}] if draw(st.booleans()) else []
    if draw(st.integers(0, 3)) == 0:
        shown.append({"role": "assistant", "content": "hello"})
    for _ in range(draw(st.integers(1, 3))):
        shown.append({"role": "user", "content": draw(st.sampled_from(["do", "", "again"]))})
        for _ in range(draw(st.integers(0, 3))):
            shown += draw(turns(len(shown)))
    return shown


@st.composite
def turns(draw: st.DrawFn, at: int) -> list[Record]:
    """What the assistant says, with the results of its calls."""
    said: Record = {"role": "assistant", "content": draw(TEXTS)}
    if (reasoning := draw(REASONING)) is not None:
        said["reasoning_content"] = reasoning
    if draw(st.integers(0, 4)) == 0:
        said["weight"] = 0
    ids = [draw(st.sampled_from([f"c{at}_{k}", f"c{at}_{k}", "same"])) for k in range(draw(st.integers(0, 2)))]
    ids = list(dict.fromkeys(ids))
    if ids:
        arguments = draw(st.sampled_from(['{"q": 1}', "{}", '{"q":\n"a b"}']))
        said["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": f"f{k}", "arguments": arguments}}
            for k, id_ in enumerate(ids)
        ]
    results = [{"role": "tool", "tool_call_id": id_, "content": draw(st.sampled_from(["r", "", "bad"]))} for id_ in ids]
    return [said, *results]


RULES = st.fixed_dictionaries(
    {
        "thought": st.booleans(),
        "last": st.booleans(),
        "where": st.sampled_from(["", 'content ~ r"o"', "calls is not empty", "weight if index > 2 then 1 else 0"]),
        "edited": st.sampled_from(["", "set", "including"]),
        "shown": st.sampled_from(["keep", "last", "strip"]),
        "each": st.sampled_from(["", "all", "calls"]),
        "context": st.sampled_from([None, None, (0, None), (1, None), (1, "…")]),
        "home": st.sampled_from(["decompose", "sink"]),
    }
)


def spec(rule: Record) -> str:
    """The rule as a strategy says it."""
    where = rule["where"] if rule["where"].startswith("weight") or not rule["where"] else f"where {rule['where']}"
    thought, last = "except reasoning" if rule["thought"] else "", "only last" if rule["last"] else ""
    loss = f"loss on assistant {thought} {last} {where} {'including edited' if rule['edited'] == 'including' else ''}"
    edit = 'e: turns set content = truncate(content, 3) where role == "assistant"' if rule["edited"] else ""
    context = ""
    if rule["context"] is not None:
        results, elide = rule["context"]
        said = (["system", "task"], ["system", "task", f"last {results} results"])[results > 0]
        context = "context { " + ", ".join([*said, *([f'elide "{elide}"'] if elide else [])]) + " }"
    inside = context if rule["home"] == "decompose" and rule["each"] else ""
    at = {"all": "true", "calls": "calls is not empty"}.get(rule["each"])
    each = f"d: decompose at {at} {inside}" if at else ""
    return f"{edit} emit sft {{ {each} {loss} reasoning {rule['shown']} {context if not inside else ''} }}"


# ---- a plain reading ----


def without_thoughts(text: str) -> str:
    if "</think>" in text.split("<think>", maxsplit=1)[0]:
        text = re.sub(r"^.*?</think>\s*", "", text, count=1, flags=re.S)
    return re.sub(r"<think>.*?(</think>\s*|\Z)", "", text, flags=re.S)


def expected(record: list[Record], rule: Record) -> list[list[tuple[int, str, str]]]:
    """For each row the trained texts, as (turn of the source, part, text); rows without any are left out."""
    run = [
        {**m, "turn": i, "index": i, "said": len(m.get("tool_calls", ())), "odd": False} for i, m in enumerate(record)
    ]
    if rule["edited"]:
        for m in run:
            if m["role"] == "assistant" and len(m["content"]) > 3:
                m["content"], m["odd"] = m["content"][:3], True
    rows = [run]
    if rule["each"]:
        picked = [m["turn"] for m in run if m["role"] == "assistant" and (rule["each"] == "all" or m.get("tool_calls"))]
        rows = [
            [{**m, "weight": m.get("weight", 1) if m["turn"] == end else 0} for m in run[: end + 1]] for end in picked
        ]
        if rule["home"] == "decompose" and rule["context"] is not None:
            rows = [in_context(row, rule["context"]) for row in rows]
    return [trained for row in rows if (trained := trained_of(row, rule))]


def in_context(row: list[Record], context: tuple[int, str | None]) -> list[Record]:
    results, elide = context
    told = [m["turn"] for m in row if m["role"] == "tool"]
    old = set(told[: max(0, len(told) - results)])
    if elide is not None:
        return row
    kept = []
    for m in row:
        if m["turn"] in old:
            continue
        asked = m.get("tool_calls", [])
        left = [call for k, call in enumerate(asked) if m["turn"] + 1 + k not in old]
        if asked and not left and not m["content"]:
            continue
        kept.append({**m, "tool_calls": left} if asked else m)
    return kept


def trained_of(row: list[Record], rule: Record) -> list[tuple[int, str, str]]:
    def weighs(m: Record, index: int) -> bool:
        if m["role"] != "assistant" or m.get("weight", 1) == 0 or (m["odd"] and rule["edited"] != "including"):
            return False
        match rule["where"]:
            case "":
                return True
            case "calls is not empty":
                return bool(m.get("tool_calls"))
            case 'content ~ r"o"':
                return "o" in m["content"]
        return index > 2

    marked = [(m, weighs(m, i)) for i, m in enumerate(row)]
    inside = rule["home"] == "decompose" and rule["each"]
    if rule["context"] is not None and not inside:
        end = max((i for i, (_, w) in enumerate(marked) if w), default=len(marked))
        weights = {m["turn"]: w for m, w in marked}
        shown = in_context([m for m, _ in marked[: end + 1]], rule["context"])
        whole = rule["edited"] == "including"
        marked = [(m, weights[m["turn"]] and (whole or len(m.get("tool_calls", ())) == m["said"])) for m in shown]
    if rule["shown"] == "strip":
        marked = [(bare(m), w) for m, w in marked]
    texts = [texts_of(m, rule) if w else [] for m, w in marked]
    last = max((i for i, found in enumerate(texts) if found), default=-1)
    if rule["shown"] == "last":
        texts = [
            texts_of(bare(m), rule) if w and i < last else found
            for i, ((m, w), found) in enumerate(zip(marked, texts, strict=True))
        ]
    if rule["last"]:
        texts = texts[last:][:1] if last >= 0 else []
    return [text for found in texts for text in found]


def bare(m: Record) -> Record:
    if m["role"] != "assistant":
        return m
    return {**m, "reasoning_content": None, "content": without_thoughts(m["content"])}


def texts_of(m: Record, rule: Record) -> list[tuple[int, str, str]]:
    found = []
    if m.get("reasoning_content") and not rule["thought"]:
        found.append((m["turn"], "reasoning", m["reasoning_content"]))
    content = without_thoughts(m["content"]) if rule["thought"] else m["content"]
    if content.strip() if rule["thought"] else content:
        found.append((m["turn"], "content", content))
    for call in m.get("tool_calls", ()):
        arguments = call["function"]["arguments"].replace("\n", " ")
        found.append((m["turn"], "call", f'{{"name":"{call["function"]["name"]}","arguments":{arguments}}}'))
    return found


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(conversations(), min_size=1, max_size=4), RULES)
def test_what_is_trained_is_what_the_rule_says(records: list[list[Record]], rule: dict[str, Any]) -> None:
    lines: list[Record] = [{"task_id": str(i), "messages": own, "success": True} for i, own in enumerate(records)]
    with tempfile.TemporaryDirectory() as folder:
        got = conversed(Path(folder) / "a", lines, spec(rule), source="format openai")
        got.conserved("sft")
        rows = got.texts("sft")
    refused = [why for why in got.reasons("sft").values() if why not in ("no_trained_text", "no_turns")]
    assert not refused, spec(rule)
    found: dict[str, list[Any]] = {}
    for row in rows:
        told = [(row["turns"][message], part, text) for message, part, text in trained_texts(row)]
        found.setdefault(row["task"].split("/")[-1], []).append(joined(told))
    for i, own in enumerate(records):
        assert sorted(found.get(str(i), [])) == sorted(map(joined, expected(own, rule))), (spec(rule), json.dumps(own))


def joined(told: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Content that is trained in pieces, as one text."""
    whole: list[tuple[int, str, str]] = []
    for turn, part, text in told:
        if whole and part == "content" and whole[-1][:2] == (turn, "content"):
            whole[-1] = (turn, part, whole[-1][2] + text)
        else:
            whole.append((turn, part, text))
    return whole
