"""Good specs with something broken: the checker answers with diagnostics and nothing else, all inside their files."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatec.compiler.check.program import Checked, check
from curatec.compiler.load import load_text
from curatec.compiler.plan import digest
from curatec.compiler.types import Type
from curatec.dsl.diagnostics import render_text, to_json
from curatec.dsl.parse import parse

ROOT = Path(__file__).parent.parent
GALLERY = Path(__file__).parent / "errors" / "semantic"
GOOD = """curate 1

source trials {
  path "runs/*.jsonl", "more/*.jsonl"
  format tau_bench
  domain from path r"(airline|retail)"
  error when content ~ r"^Error"
  success when reward >= 1
}

param min_reward = 0.5 in 0.0 .. 1.0
param word = small in {small, medium}

failure blind_retry {
  when any(turns where is_error and reply.calls_text == caller.calls_text)
}

strategy service {
  from trials
  derive usual = mean(turn_count) over (task)
  split by task { train 90% validation 10% } seed 7

  crash: drop where outcome == "crash" or turn_count == 0 because "harness noise"
  sane: keep where turn_count between 4 and 60 and task in {"a/1", "a/2"}
  quiet: turns drop where role == "assistant" and calls is empty and content is null repair
  short: turns set content = truncate(content, 4_000, keep: ends) where role == "tool"
  shown: tools keep where used
  families: tag failure
  once: dedup exact on task, calls_text best by reward desc
  some: sample 90% per task seed 3
  booked: keep where any(calls where args.user_id != trajectory.meta.user_id and name !~ r"^get_[a-z]+$")

  stage hard from shared { rare: keep where pass_rate < 0.5 }

  emit sft from hard {
    winners: keep where reward >= min_reward and length(tool_names) > 1
    four: limit 4 per task order by reward desc, rank(turn_count) over (task)
    loss on assistant except reasoning where none(calls where is_error) weight if tokens > 500 then 0.5 else 1
    fit 8_192 tokens else drop
  }
  emit rl { reward 0.8 * state_match + 0.2 * call_format group 8 }
  emit memory { key task_text value concat(failure, ": ", last(turns where is_error).content) retrieve bm25 top 3 }
  emit preference {
    pair within task from first difference chosen where success rejected where not success
      margin reward - usual >= 0.5 max 4 per task length ratio <= 2
  }

  expect share(failure is not null, memory) over (source) >= 0.8
}
"""
LIBRARY = 'curate 1\nimport "lib/families.curate"\n' + GOOD.removeprefix("curate 1\n")
TOKENS = [
    *["task", "reward", "success", "turns", "calls", "content", "meta", "prev", "trajectory", "turn", "failure"],
    *[
        "signal",
        "null",
        "true",
        "any",
        "count",
        "first",
        "mean",
        "over",
        "where",
        "keep",
        "trials",
        "sft",
        "args.x",
        "x",
    ],
    *["5", "0.5", "10%", '"x"', 'r"("', 'r"[a-z]+"', "==", "and", "not", "is", "empty", "in", "as", "int", "if"],
    *"(){},.<-",
]


def sound(checked: Checked) -> None:
    """What holds of every answer."""
    for problem in checked.diagnostics:
        assert problem.source is not None
        assert problem.span is not None
        assert 0 <= problem.span.start <= problem.span.end <= len(problem.source.text) + 1, problem
        assert render_text(problem)
        assert to_json(problem)["at"]
    # What has no type is told, and a plan that is told right has types everywhere.
    for made in checked.plans.values() if checked.ok else ():
        assert Type.UNKNOWN not in list(types(made))
        assert digest(made)


def types(node: Any) -> Any:
    """All types in a plan."""
    if isinstance(node, Type):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from types(item)
    elif is_dataclass(node) and not isinstance(node, type):
        for part in fields(node):
            if part.name not in ("span", "source"):
                yield from types(getattr(node, part.name))


def spans(text: str) -> list[tuple[int, int]]:
    return [(token.start_pos or 0, token.end_pos or 0) for token in parse(text).tokens]


PLACES = spans(GOOD)
IDENTIFIERS = [(a, b) for a, b in PLACES if GOOD[a:b].isidentifier()]
LITERALS = [(a, b) for a, b in PLACES if GOOD[a:b][0] in '0123456789"r' and not GOOD[a:b].isidentifier()]


def check_text(text: str) -> Checked:
    return check(load_text(text, "mutant.curate", GALLERY))


def changed(edits: list[tuple[tuple[int, int], str]]) -> str:
    """The good spec with some of its tokens replaced."""
    text = GOOD
    for (start, end), new in sorted(dict(edits).items(), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def test_the_good_spec_is_good() -> None:
    for text in (GOOD, LIBRARY):
        found = check_text(text)
        assert found.diagnostics == ()
        sound(found)


BRIEF = settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.sampled_from([GOOD[a:b] for a, b in IDENTIFIERS]) | st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
values = st.sampled_from(sorted({GOOD[a:b] for a, b in LITERALS})) | st.sampled_from(TOKENS)


@BRIEF
@given(st.lists(st.tuples(st.sampled_from(IDENTIFIERS), names), min_size=1, max_size=4))
def test_other_names(edits: list[tuple[tuple[int, int], str]]) -> None:
    sound(check_text(changed(edits)))


@BRIEF
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.just("")), min_size=1, max_size=3))
def test_missing_tokens(edits: list[tuple[tuple[int, int], str]]) -> None:
    sound(check_text(changed(edits)))


@BRIEF
@given(st.lists(st.tuples(st.sampled_from(LITERALS), values), min_size=1, max_size=4))
def test_other_literals(edits: list[tuple[tuple[int, int], str]]) -> None:
    sound(check_text(changed(edits)))


@BRIEF
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(TOKENS)), min_size=1, max_size=4))
def test_other_tokens(edits: list[tuple[tuple[int, int], str]]) -> None:
    sound(check_text(changed(edits)))


# Expressions that mostly hold together: by type, at a level, with a wrong one now and then.
FIELDS = {
    "run": {
        "number": ["reward", "turn_count", "pass_rate", "meta.n", "3", "10%", "least(reward, 2)", "task_id as int"],
        "text": ["task", "domain", "outcome", "meta.s", '"x"', "last(turns where is_error).content", "calls_text"],
        "truth": ["success", "true", "outcome in {crash, failure}", "meta.x is null", "tool_names is empty"],
    },
    "turn": {
        "number": ["index", "tokens", "prev.tokens", "trajectory.reward", "count(calls)", "5"],
        "text": ["content", "role", "tool_name", "reply.calls_text", "trajectory.task", '"x"'],
        "truth": ["is_error", "caller.is_error", "calls is empty", "role in {user, tool}", "prev.content == content"],
    },
    "call": {
        "number": ["args.n", "args.list[0]", "turn.index", "trajectory.meta.n", "1"],
        "text": ["name", "result", 'args["a b"]', "turn.content", '"x"'],
        "truth": ["is_error", "args is empty", "turn.is_error", "result is null"],
    },
}
BELOW = {"run": {"turns": "turn", "calls": "call"}, "turn": {"calls": "call"}, "call": {}}


@st.composite
def expressions(draw: st.DrawFn, kind: str = "truth", level: str = "run", depth: int = 3) -> str:
    def one(kind: str, level: str = level) -> str:
        return draw(expressions(kind, level, depth - 1))

    if draw(st.integers(0, 60)) == 0:
        return draw(st.sampled_from(TOKENS[:14]))
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(FIELDS[level][kind]))
    forms = ["if"] + ["window"] * (level == "run") + ["below"] * bool(BELOW[level])
    match draw(st.sampled_from([*forms, "own", "own"])):
        case "if":
            return f"(if {one('truth')} then {one(kind)} else {one(kind)})"
        case "window":
            group = draw(st.sampled_from(["task", "model, domain", "meta.s"]))
            of = {"truth": f"share({one('truth')})", "number": f"mean({one('number')})", "text": "count()"}[kind]
            return f"({of} over ({group}){' as text' * (kind == 'text')}{' > 0.5' * (kind == 'truth')})"
        case "below":
            rows = draw(st.sampled_from(sorted(BELOW[level])))
            inner = one("truth", BELOW[level][rows])
            number, text = ("args.n", "name") if rows == "calls" else ("tokens", "content")
            picked = number if kind == "number" else text
            if kind == "truth":
                return f"{draw(st.sampled_from(['any', 'all', 'none']))}({rows} where {inner})"
            return f"{draw(st.sampled_from(['first', 'last']))}({rows} where {inner}).{picked}"
    if kind == "number":
        return f"({one('number')} {draw(st.sampled_from(['+', '-', '*', '/', '**']))} {one('number')})"
    if kind == "text":
        return draw(
            st.sampled_from([f"concat({one('text')}, {one('text')})", f"truncate({one('text')}, 5, keep: ends)"])
        )
    operator = draw(st.sampled_from(["==", "!=", "<", ">="]))
    side = draw(st.sampled_from(["number", "text"]))
    return draw(
        st.sampled_from(
            [
                f"({one('truth')} {draw(st.sampled_from(['and', 'or']))} {one('truth')})",
                f"({one(side)} {operator} {one(side)})",
                f"({one('number')} between {one('number')} and {one('number')})",
                f'({one("text")} ~ r"[a-z]+\\d")',
                f"not {one('truth')}",
                f"({one(side)} is not null)",
            ]
        )
    )


PLACES_OF_VALUES = (
    ("a: keep where @", "truth", "run"),
    ("a: turns drop where @ repair", "truth", "turn"),
    ("a: turns set content = @", "text", "turn"),
    ("derive c = @", "number", "run"),
    ("a: limit 3 per @ order by reward", "text", "run"),
    ("a: sort by @ desc", "number", "run"),
    ("emit memory { key @ value task_text }", "text", "run"),
    ("emit sft { loss on assistant where @ }", "truth", "turn"),
    ("emit rl { } expect share(@, rl) over (task) > 0.5", "truth", "run"),
    ("emit preference { pair chosen where @ rejected where not success margin reward >= 1 }", "truth", "run"),
)


@pytest.mark.parametrize(("place", "kind", "level"), PLACES_OF_VALUES, ids=[place for place, _, _ in PLACES_OF_VALUES])
@settings(BRIEF, max_examples=60)
@given(st.data())
def test_any_expression(place: str, kind: str, level: str, data: st.DataObject) -> None:
    value = data.draw(expressions(kind, level))
    sink = "" if "emit" in place else "emit sft { loss on assistant }"
    steps = place.replace("@", value)
    sound(check_text(f'curate 1\nsource trials {{ path "x" }}\nstrategy s {{ from trials {steps} {sink} }}'))


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.curate")), ids=lambda path: path.stem)
def test_cut_off_anywhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for end in range(0, len(text), max(1, len(text) // 7)):
        sound(check(load_text(text[:end], "cut.curate", GALLERY)))
