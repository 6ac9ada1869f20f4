"""Small corpora: canonical runs with everything that real files have, written as parts by the real row builder."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from curatec.compiler import plan
from curatec.runtime import ingest
from curatec.runtime.formats.model import Call, Run, Turn
from curatec.runtime.formats.part import write as write_part
from curatec.runtime.formats.rows import Gathered
from curatec.runtime.inputs import Input
from tests.reference.digest import finished

Finished = list[tuple[Run, str]]  # runs with their digests

PLAIN = ("", "a", "A b", "ok", "Error: no", " \tx\n", "order W12", "x" * 30, "12", "-1.5")
STRANGE = ("naïve", "e\u0301", "東京 5", "😀👩‍💻", "ΣΑΣ", "İ")
NAMES = ("search", "book", "größe", "Search")
ARGS = (
    "{}",
    '{"x":1}',
    '{"x": 1.0}',
    '{"x":0.5,"y":{"z":[1,"b",null]}}',
    '{"x":"5"}',
    '{"x":""}',
    '{"x":true}',
    '{"x":null,"x-y":-0.0}',
    '{"x":[],"y":{}}',
    '{"x":12345678901234567890}',
    '{"x":1e17,"y":"1e17"}',
    '{"b":1,"a":2,"x":"é😀"}',
    '{"x":1,"x":2}',
    '{"x":"\\ud800\\u0041"}',
    "[1]",
    '"s"',
    '{"x":1e400}',
    '{"x":NaN}',
    "{broken",
)
META = (
    "{}",
    '{"user_id":"u1","n":1,"flag":true}',
    '{"user_id":null,"n":2.5,"flag":false}',
    '{"n":"3","flag":"true"}',
    '{"n":9007199254740993,"tags":["a",{"k":0.1}]}',
    '{"n":-7,"user_id":"é","tags":[]}',
)
TOOLS = (
    None,
    "[]",
    '[{"type":"function","function":{"name":"search","description":"x"}},{"type":"function","function":{"name":"book"}}]',
    '[{"type":"function","function":{"name":"größe","description":"misst 😀"}}]',
)


def texts() -> st.SearchStrategy[str]:
    return st.sampled_from(PLAIN + STRANGE)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, st.none())


@st.composite
def calls(draw: st.DrawFn) -> Call:
    args = draw(maybe(st.sampled_from(ARGS)))
    raw = None if args is not None else draw(maybe(st.just("(x=1)")))
    state = "json" if args is not None else "none" if raw is None else "invalid"
    name = draw(maybe(st.sampled_from(NAMES)))
    return Call(draw(st.sampled_from(["1", "2", None])), name, args, raw, state)  # type: ignore[arg-type]


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    roles = ["user", "user", "assistant", "assistant", "assistant", "tool", "tool", "system", "event"]
    role = draw(st.sampled_from(roles))
    content = draw(maybe(texts()))
    turn = Turn(role, content, "null" if content is None else "text")  # type: ignore[arg-type]
    turn.actor = {"user": "user", "assistant": "agent", "tool": "environment"}.get(role)
    if role == "assistant":
        turn.reasoning = draw(maybe(texts()))
        turn.calls = draw(st.lists(calls(), max_size=2))
        turn.loss_weight = draw(st.sampled_from([1.0, 1.0, 0.0, 0.5]))
        turn.copied_context = draw(st.sampled_from([False, False, False, True]))
    if role == "tool":
        turn.tool_call_id = draw(st.sampled_from(["1", "2", "9", None]))
        turn.tool_name = draw(maybe(st.sampled_from(NAMES)))
        turn.is_error = draw(st.sampled_from([True, False, None]))
    return turn


@st.composite
def runs(draw: st.DrawFn) -> Run:
    number = st.sampled_from([0.0, 1.0, 0.1, 0.3, -1.5, 2.5, 1e-9, 123456.789, 1e12, None])
    run = Run("openai", draw(st.lists(turns(), max_size=6)))
    run.task_id = draw(st.sampled_from(["a", "b", "a", "b", "ä", None]))
    run.domain = draw(st.sampled_from([None, None, "d"]))
    run.model = draw(st.sampled_from([None, "m", "n"]))
    run.trial = draw(st.sampled_from([None, 0, 1, 3]))
    run.agent = draw(maybe(st.just("main")))
    run.session_id = draw(maybe(st.sampled_from(["s1", "s2"])))
    run.reward = draw(number)
    run.success = draw(st.sampled_from([True, False, None]))
    run.outcome = draw(st.sampled_from(["success", "failure", "crash", "truncated", "unknown"]))
    run.started_at = draw(st.sampled_from([None, 0, 1_767_225_600_000_000, 1_767_225_600_000_001, -5_000_000]))
    run.duration = draw(number)
    run.cost = draw(st.sampled_from([None, 0.0, 0.25, 1e300, 3.0, 0.1]))
    run.meta_json = draw(st.sampled_from(META))
    run.tools_json = draw(st.sampled_from(TOOLS))
    return run


@st.composite
def corpora(draw: st.DrawFn, most: int = 7) -> dict[str, Finished]:
    """Runs of two sources; some records come twice."""
    found: dict[str, Finished] = {"first": [], "second": []}
    drawn = draw(st.lists(runs(), max_size=most))
    copies = draw(st.lists(st.integers(0, 6), max_size=2)) if drawn else []
    for run in [*drawn, *(copy.deepcopy(drawn[i % len(drawn)]) for i in copies)]:
        notes = set(draw(st.sampled_from([(), (), ("torn_line",)])))
        source = draw(st.sampled_from(["first", "first", "second"]))
        found[source].append(finished(run, notes))
    return found


def write(sources: dict[str, Finished], folder: Path, per_part: int = 100) -> tuple[Input, ...]:
    """The parts of each source, at most `per_part` runs in one, as the cache would hold them."""
    made = []
    for name, settled in sources.items():
        parts = []
        for at in range(0, len(settled), per_part):
            rows = Gathered()
            for line, (run, _) in enumerate(settled[at : at + per_part], at + 1):
                rows.add(run, 0, line)
            paths = folder / f"{name}-{at}-{per_part}.runs.parquet", folder / f"{name}-{at}-{per_part}.turns.parquet"
            write_part(rows.rows(), *paths)
            parts.append(ingest.Part(*paths, (f"{name}.jsonl",), rows.n_runs, rows.n_turns))
        parsed = ingest.Corpus(tuple(parts), (), {"openai": len(settled)}, (f"{name}.jsonl",), ())
        made.append(Input(plan.Corpus(name, (f"{name}.jsonl",)), parsed, {}, None, ""))
    return tuple(made)


def listed(sources: dict[str, Finished]) -> list[tuple[str, Sequence[tuple[Run, str]]]]:
    return list(sources.items())
