"""Lines of chat records as files have them and as nobody should write them: the same values in many spellings."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st


class Text(str):
    """JSON text that stands for itself."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object whose keys may come twice."""


NUMBERS = ("0", "1", "-1", "7", "0.5", "1.0", "1e2", "-0", "-0.0", "1e400", "-1E+400", "NaN", "Infinity", "2.50")
NUMBERS += ("0.1", "1e-7", "9007199254740993", "123456789012345678901234567890", "2147483648", "1735689600", "3.14159")
STRINGS = ("", "a", "ok", "é", "日本", "😀", ":", '"', "\\", 'say "hi"', "C:\\new", "a\nb", "\t", "\u2028", "\x00")
STRINGS += ("<tool_call>", 'x": "y', "\\\\", 'end\\"', "null", "{}", "crash", "2025-01-01T00:00:00Z", "\ufeff")
RAW_STRINGS = (r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\ud800A"', r'"\u0022\u005c"', r'"\/"', r'"\x"', '"\t"')
ARGUMENTS = (
    *("{}", '{"a":1}', '{"a": 1.50, "b": "x"}', '{"a":1,"a":2}', '{"a" : 1}', '{"a":{"b":[1,{"c":null}]}}', " {} "),
    *("[1]", "", "null", '"{}"', "{'a': 1}", "{", "{}x", '{"a":NaN}', '{"a":1e400}', '{"a":"\\ud800"}', '{"a":"\x01"}'),
    *('{"a":":"}', '{"a":"\\\\"}', '{"":1,"":2}', '{"a":"\\u00e9"}', '{"a":[{},{}]}', "\ufeff{}"),
    *('{"n":12345678901234567890123}', '{"a":' + "[" * 101 + "]" * 101 + "}", '{"a":' + "[" * 300 + "]" * 300 + "}"),
)
DEEP = tuple(Text("[" * depth + "]" * depth) for depth in (100, 127, 129, 240, 260, 400, 2000))

texts = st.sampled_from(STRINGS) | st.text(st.characters(codec="utf-8"), max_size=4)
numbers = st.sampled_from(NUMBERS).map(Text)
plain = st.sampled_from(("0", "1", "0.5", "1.0", "1e2", "0.1", "9007199254740993", "-0.0", "2.50")).map(Text)
whole = st.sampled_from(("0", "1", "-1", "7", "-0")).map(Text)
oddities = st.sampled_from(RAW_STRINGS).map(Text) | numbers | st.booleans() | st.none() | st.just([]) | st.just(Pairs())
names = st.sampled_from(
    ("x", "meta", "metadata", "role", "id", "content", "functions", "weight", "refusal", "k\\", 'q"')
)
anything = st.recursive(
    texts | oddities | st.sampled_from(DEEP),
    lambda inner: st.lists(inner, max_size=2) | st.lists(st.tuples(names, inner), max_size=3).map(Pairs),
    max_leaves=5,
)


def mostly(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any] = anything) -> st.SearchStrategy[Any]:
    """All draws but one of eighty are the usual."""
    return st.integers(0, 79).flatmap(lambda n: other if n == 13 else usual)


@st.composite
def objects(
    draw: st.DrawFn, needed: dict[str, st.SearchStrategy[Any]], more: dict[str, st.SearchStrategy[Any]]
) -> Pairs:
    """An object with the members needed, some of the others, and seldom one too many or too few."""
    optional = draw(st.lists(st.sampled_from(sorted(more)), unique=True, max_size=4)) if more else []
    chosen = [*needed, *optional]
    if draw(st.integers(0, 79)) == 17:
        chosen.append(draw(st.sampled_from(chosen)))
    if draw(st.integers(0, 79)) == 17:
        chosen.pop(draw(st.integers(0, len(chosen) - 1)))
    known = needed | more
    pairs = [(name, draw(known[name])) for name in chosen]
    if draw(st.integers(0, 39)) == 13:
        pairs.append((draw(names), draw(anything)))
    return Pairs(draw(st.permutations(pairs)))


ids = mostly(st.sampled_from(("c1", "c2", "c3")), texts | anything)
functions = objects(
    {
        "name": mostly(st.sampled_from(("f", "g")), texts),
        "arguments": mostly(st.sampled_from(ARGUMENTS[:3]), st.sampled_from(ARGUMENTS)),
    },
    {},
)
calls = objects(
    {"id": texts, "function": mostly(functions)}, {"type": mostly(texts), "index": mostly(st.integers(0, 3))}
)
content = mostly(texts | st.none())
_OF_ALL: dict[str, st.SearchStrategy[Any]] = {
    "name": mostly(texts),
    "reasoning": mostly(texts),
    "reasoning_content": mostly(st.none() | texts),
    "is_error": mostly(st.booleans() | st.none()),
    "weight": mostly(st.none(), numbers),
    "refusal": st.none() | texts,
}
MESSAGES = {
    "assistant": objects(
        {"role": mostly(st.just("assistant"))},
        _OF_ALL | {"content": content, "tool_calls": mostly(st.lists(mostly(calls), max_size=3) | st.none())},
    ),
    "tool": objects({"role": mostly(st.just("tool")), "tool_call_id": ids, "content": content}, _OF_ALL),
    "other": objects(
        {
            "role": mostly(st.sampled_from(("system", "user", "developer")), st.sampled_from(("event", "robot"))),
            "content": content,
        },
        _OF_ALL,
    ),
}
tools = st.sampled_from(
    ([], [{"type": "function", "function": {"name": "f", "parameters": {}}}], [{"name": "g"}], "[]", '[{"name":"h"}]')
)
extras = st.lists(st.tuples(names, mostly(texts | plain)), max_size=2, unique_by=lambda pair: pair[0]).map(Pairs)
_FACTS: dict[str, st.SearchStrategy[Any]] = {
    **{name: mostly(texts) for name in ("id", "task_id", "domain", "session_id", "parent_id", "model", "license")},
    **{name: mostly(plain | st.none(), numbers) for name in ("reward", "duration", "cost")},
    **{name: mostly(whole | st.none(), numbers) for name in ("trial", "depth")},
    "agent": mostly(texts),
    "error": mostly(texts | st.none()),
    "gold": mostly(st.none() | texts),
    "tools": mostly(tools),
    "success": mostly(st.booleans() | st.none()),
    "started_at": mostly(st.just("2025-01-01T00:00:00.25+01:00")),
    "outcome": mostly(
        st.sampled_from(("success", "failure", "unknown", "truncated")), st.sampled_from(("crash", "odd"))
    ),
    "note": mostly(texts | plain | st.lists(texts)),
    "meta": extras,
    "functions": tools,
    # what TRL's rows hold
    "weights": st.just([1, 0]),
    "task": texts,
    "example_id": texts,
    "prompt": texts,
}


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Messages in the order that agents have, answered calls most of the time."""
    found: list[Any] = []
    for kind in draw(
        st.lists(mostly(st.sampled_from(("other", "assistant", "pair", "pair")), st.just("tool")), max_size=6)
    ):
        if kind != "pair":
            found.append(draw(mostly(MESSAGES[kind])))
            continue
        made = [f"n{len(found)}.{k}" for k in range(draw(st.integers(1, 2)))]
        asked = [
            Pairs([("id", name), ("type", "function"), ("function", Pairs([("name", "f"), ("arguments", text)]))])
            for name, text in zip(made, draw(st.lists(st.sampled_from(ARGUMENTS[:3]), min_size=2)), strict=False)
        ]
        found.append(Pairs([("role", "assistant"), ("content", draw(content)), ("tool_calls", asked)]))
        answered = draw(st.permutations(made))
        found += [Pairs([("role", "tool"), ("tool_call_id", name), ("content", draw(texts))]) for name in answered]
    return found


records = objects({"messages": mostly(conversations())}, _FACTS)


@st.composite
def spelled(draw: st.DrawFn, value: Any, ascii: bool, space: str) -> str:
    """One of the texts of a value."""
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs):
        members = [f"{json.dumps(k, ensure_ascii=ascii)}{space}:{draw(spelled(v, ascii, space))}" for k, v in value]
        return "{" + f",{space}".join(members) + "}"
    if isinstance(value, list):
        return f"[{space}" + ",".join(draw(spelled(item, ascii, space)) for item in value) + "]"
    return json.dumps(value, ensure_ascii=ascii)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """One line without its end."""
    record = draw(mostly(records))
    text = draw(spelled(record, draw(st.booleans()), draw(st.sampled_from(("", "", " ", "\t", "  ")))))
    data = text.encode("utf-8", "surrogatepass")
    damage = draw(st.integers(0, 79))
    if damage == 7 and data:
        at = draw(st.integers(0, len(data) - 1))
        return (
            data[:at]
            + draw(st.sampled_from((b"\xff", b"\xed\xa0\x80", b"", b'"', b"\\", b"}", b"\x01")))
            + data[at + 1 :]
        )
    if damage == 8:
        return data[: draw(st.integers(0, len(data)))]
    if damage == 9:
        return draw(st.sampled_from((b"", b" ", b"5", b"null", b"\xef\xbb\xbf" + data, data + b" x", b"not json")))
    return data
