"""A first spec: fitted to a folder of runs, or together with a few invented runs that it compiles."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curatec.compiler.load import inside, project_of
from curatec.dsl.diagnostics import CuratecError
from curatec.dsl.fmt import format_text
from curatec.runtime.answers.inspect import Profile, error_pattern, judged, profile, read

SPEC = "curation.curate"
SAMPLE = "runs/sample.jsonl"


@dataclass(frozen=True)
class Started:
    """What was written. `outside`: the runs lie outside the spec's project, and compiling needs `--allow-path`."""

    spec: Path
    files: tuple[Path, ...]
    outside: Path | None = None


def start(folder: Path, runs: str | None) -> Started:
    """Write a spec into a folder; nothing that exists is overwritten. Raises CuratecError (C0626, C06…)."""
    spec = folder / SPEC
    if runs is None:
        sample = folder / SAMPLE
        _write({spec: _formatted(_first_spec()), sample: "".join(json.dumps(run) + "\n" for run in sample_runs())})
        return Started(spec, (spec, sample))
    found = profile(read([runs], Path.cwd()))
    named = _named(Path(runs), folder)
    _write({spec: _formatted("\n".join(fitted(found, named)) + "\n")})
    outside = None if inside(Path(runs), project_of(folder)) else Path(runs)
    return Started(spec, (spec,), outside)


def _named(runs: Path, folder: Path) -> str:
    """The runs as seen from the spec; absolute where no short way leads there."""
    relative = os.path.relpath(runs.resolve(), folder.resolve())
    return str(runs.resolve()) if relative.count("..") > 3 else Path(relative).as_posix()


def _write(files: dict[Path, str]) -> None:
    taken = next((path for path in files if path.exists() or path.is_symlink()), None)
    if taken is not None:
        raise CuratecError.of(
            "C0626", f"`{taken}` is there already", help="name another folder: `curatec init DIR`", place=str(taken)
        )
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise CuratecError.of("C0602", f"`{path}` cannot be written: {error.strerror}", place=str(path)) from None


def _formatted(text: str) -> str:
    made = format_text(text, SPEC)
    if made.diagnostics:
        raise CuratecError(made.diagnostics)
    return made.text


# ---- a spec for runs that exist ----


def fitted(p: Profile, runs: str) -> Iterator[str]:
    """Lines of a spec for a corpus, each setting and filter with its reason."""
    yield "curate 1"
    yield ""
    yield f"# {p.runs:,} runs, {p.turns:,} turns ({', '.join(p.formats)})."
    yield from _source(p, runs)
    yield ""
    yield "strategy first {"
    yield "  from runs"
    if p.tasks >= 20 or p.without_task >= 20:
        yield "  split by task { train 90% validation 10% } seed 7  # once, for every sink"
    yield ""
    yield from _shared(p)
    yield ""
    yield "  emit sft {"
    yield from _sft(p)
    yield "  }"
    if judged(p) and p.attempts >= 2:
        yield "  emit rl {"
        yield '    learnable: keep where pass_rate between 0.1 and 0.9 because "the group must disagree to teach"'
        yield "    one_each: limit 1 per task order by turn_count"
        yield "    reward state_match  # the verifier that your training provides"
        yield "  }"
    yield "}"


def _source(p: Profile, runs: str) -> Iterator[str]:
    yield "source runs {"
    yield f"  path {json.dumps(runs, ensure_ascii=False)}"
    if len(p.formats) == 1:
        yield f"  format {next(iter(p.formats))}"
    if p.judged_results < p.results and p.error_beginnings:
        seen = sum(p.error_beginnings.values())
        yield f"  error when content ~ {error_pattern(p)}  # {seen:,} results begin so, and the records do not say it"
    if not p.models:
        yield '  # model "…"  # no record says which model acted'
    if not p.schemas and p.calls:
        yield '  # tools from "tools.json"  # no record has the schemas: a trainer would show the model no tools'
    if not p.licenses:
        yield '  # license "…"'
    yield "}"


def _shared(p: Profile) -> Iterator[str]:
    if p.outcomes.get("crash"):
        reason = "harness noise, not behaviour"
        yield f'  crash: drop where outcome == "crash" because "{reason}"  # {p.outcomes["crash"]:,} runs'
    yield "  some_work: keep where assistant_turns >= 1"
    if p.longest > 8_000:
        yield '  short_tools: turns set content = truncate(content, 4000, keep: ends) where role == "tool"'
    best = " best by reward desc" if p.rewards else ""
    yield f"  once: dedup exact on task_text, text{best}"


def _sft(p: Profile) -> Iterator[str]:
    if p.outcomes.get("success"):
        yield "    winners: keep where success"
    elif p.rewards and p.rewards["min"] < p.rewards["max"]:
        yield f"    winners: keep where reward >= {p.rewards['median']:g}  # the median"
    else:
        yield "    # no record says how it ended: keep what is worth learning, such as `keep where error_count == 0`"
    if p.attempts >= 2:
        order = "reward desc, turn_count" if p.rewards else "turn_count"
        yield f"    best_two: limit 2 per task order by {order}"
    errors = bool(p.failed_results or p.error_beginnings)
    yield "    loss on assistant" + (" where none(calls where is_error)" if errors else "")


# ---- a spec with its own runs ----


def _first_spec() -> str:
    return """curate 1

# A dozen invented runs, so that this compiles as it is: put your own files in their place.
source runs {
  path "runs/*.jsonl"
  error when content ~ r"^Error"  # the records do not say which results are errors
  license "CC0-1.0"
}

strategy first {
  from runs
  split by task { train 75% validation 25% } seed 2  # once, for every sink

  crash: drop where outcome == "crash" because "harness noise, not behaviour"
  once: dedup exact on task, calls_text best by reward desc

  emit sft {
    winners: keep where success
    loss on assistant where none(calls where is_error)  # a call that failed is context, and not trained
  }
  emit rl {
    learnable: keep where pass_rate between 0.1 and 0.9 because "the group must disagree to teach"
    one_each: limit 1 per task order by turn_count
    reward state_match
  }

  expect rows(sft) >= 1
}
"""


_CITIES = ("Oslo", "Lima", "Cairo", "Quito")
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def sample_runs() -> Iterator[dict[str, Any]]:
    """Three attempts at each of four tasks: one that works, one that recovers from an error, one that gives up."""
    for number, city in enumerate(_CITIES):
        for trial, style in enumerate(("straight", "recovers", "gives_up")):
            yield {
                "id": f"weather-{number}.{trial}",
                "task_id": f"weather-{number}",
                "trial": trial,
                "model": "sample-1",
                "messages": list(_messages(city, style, number)),
                "tools": [_TOOL],
                "reward": 0.0 if style == "gives_up" else 1.0,
                "success": style != "gives_up",
            }


def _messages(city: str, style: str, number: int) -> Iterator[dict[str, Any]]:
    yield {"role": "system", "content": "Answer with what the tools say."}
    yield {"role": "user", "content": f"What is the weather in {city}?"}
    if style != "straight":
        yield _call("c1", city.lower()[:3])
        yield {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "Error: no such city"}
    if style == "gives_up":
        yield {"role": "assistant", "content": "I cannot tell."}
        return
    yield _call("c2", city)
    yield {"role": "tool", "tool_call_id": "c2", "name": "weather", "content": json.dumps({"celsius": 11 + 4 * number})}
    yield {"role": "assistant", "content": f"It is {11 + 4 * number} °C in {city}."}


def _call(id_: str, city: str) -> dict[str, Any]:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}
