"""`emit rl`: prompts, and what a reward and an environment need to judge a rollout.

The prompt is everything before the first (or last) assistant turn that comes after a user turn and answers a user or a
tool: where several assistant turns stand in a row, it ends before the first of them.

A row that lacks what a verifier of the spec's `reward` reads could earn nothing from it: it is dropped, with the reason
that `compiler.verifiers` gives. `group` names what rollouts share: task, tools and prompt. A trainer makes a group of
rollouts for each row, so rows of equal `group` make several groups of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.runtime import targets
from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks import rl_trainer, trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import Buckets
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.fingerprints import prompt_digest
from curatec.runtime.sinks.measure import Measure
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.reward_inputs import reset_of, reward_inputs
from curatec.runtime.sinks.written import Written

INPUTS = (
    Col("group", "text", "task and a hash of tools and prompt: what the rollouts of a group share"),
    Col("task_id", "text", "the task's own id"),
    Col("domain", "text", "domain of the task"),
    Col("attempts", "int", "runs of the task by the run's model that have a verdict"),
    Col("pass_rate", "float", "share of them that succeeded, null below two"),
    Col("reset", "json", "what an environment needs to start the task, as far as the record says it"),
    Col("gold_calls", "objects", "calls of the reference, {name, arguments}; null where they are not known"),
    Col("gold_answers", "texts", "what the reference answers; null where it is not known"),
    Col("state_digest", "text", "digest of the state that the reference ends in, null where it is not known"),
    Col("gold", "text", "the reference as the source has it, JSON; null where it has none"),
    Col("meta", "text", "everything else that the record says, a JSON object"),
    Col("reward", "terms", "verifiers of a rollout and their weights, to be summed"),
)
_RUN = (
    "id", "origin", "source", "license", "task", "toolset", "task_id", "domain", "trial", "format", "attempts",
    "pass_rate",
)  # fmt: skip


def columns(target: plan.Rl) -> tuple[Col, ...]:
    """A format that has places of its own for a reward's inputs gets no columns beside them."""
    own = targets.columns(targets.target(target.format), "rl")
    return (*COMMON, *own, *(INPUTS if target.format in targets.CHATS else ()))


@dataclass
class _Sink:
    """One sink while it is written. `groups` counts the rows of each group."""

    place: Place
    target: plan.Rl
    format: targets.Target
    tools: m.Tools
    measure: Measure
    account: Account = field(default_factory=Account)
    groups: Counter[str] = field(default_factory=Counter)


def write(place: Place, target: plan.Rl) -> Written:
    """Files, ledger rows and account of an rl sink."""
    format_ = targets.target(target.format)
    measure = Measure(place.state.renderer, format_.form)
    sink = _Sink(place, target, format_, m.Tools(place.state.toolsets), measure)
    shape = columns(target)
    buckets, account = Buckets(place.scratch), sink.account
    for _, frames in place.state.batches(m.TURN_COLUMNS):
        for record in _records(sink, frames):
            buckets.add(place.positions[record["example_id"]], record)
    with Files(place.folder, shape) as files:
        files.add_rows(row for _, row in buckets)
    names = (*files.names, trainer.write(place.folder, rl_trainer.settings(place, target, files.names, shape)))
    sums = account.close(place.ledger, place.name)
    return Written(
        place.name,
        place.named(names),
        sums.rows,
        place.state.rows.height,
        sums.dropped,
        sums.rejected,
        tokens=sums.tokens,
        exact=place.state.renderer is not None,
        notes=rl_trainer.notes(sink.groups),
    )


def _records(sink: _Sink, frames: Frames) -> Iterator[dict[str, Any]]:
    """The rows of one part."""
    runs = frames.runs.select(_RUN).to_dicts()
    wide = sink.place.executed.loaded.wide(sink.place.state, frames.runs)
    gold_and_meta = {id_: (gold, meta) for id_, gold, meta in wide.select("id", "gold_json", "meta_json").iter_rows()}
    for run, turns in zip(runs, m.by_run(m.turn_rows(frames.turns), len(runs)), strict=True):
        prompt = prompt_of(m.messages_of(turns, sink.format.form), sink.target.prompt)
        if not prompt:
            sink.account.drop(run["id"], "no_prompt")
            continue
        gold, meta = gold_and_meta[run["id"]]
        inputs, reset = reward_inputs(gold, meta), reset_of(run, meta)
        schemas, fault = sink.tools(run["toolset"])
        fault = m.fault_of(prompt, may_end_on_call=False) or fault or _unreadable((reset, *(inputs.gold_calls or ())))
        if fault is not None:
            sink.account.reject(run["id"], fault)
            continue
        lacking = inputs.lacking((name for name, _ in sink.target.reward), tools=bool(schemas))
        if lacking is not None:
            sink.account.drop(run["id"], lacking)
            continue
        n_tokens = sink.measure.prompt(prompt, schemas)
        if isinstance(n_tokens, str):
            sink.account.reject(run["id"], n_tokens)
            continue
        known = {
            "reset": reset,
            "gold_calls": inputs.gold_calls,
            "gold_answers": inputs.gold_answers,
            "state_digest": inputs.state_digest,
            "gold": gold,
            "meta": meta,
            "reward": [{"name": name, "weight": weight} for name, weight in sink.target.reward],
        }
        about = {**run, **known, "split": sink.place.splits[run["id"]]}
        said = targets.row(sink.format, "rl", prompt, schemas, [0.0] * len(prompt), about)
        if isinstance(said, str):
            sink.account.reject(run["id"], said)
            continue
        yield {**_record(sink, run, prompt, n_tokens), **known, **said}


def _unreadable(texts: Iterable[str]) -> str | None:
    return next((fault for text in texts if (fault := m.unreadable(text))), None)


def _record(sink: _Sink, run: dict[str, Any], prompt: list[m.Message], n_tokens: int) -> dict[str, Any]:
    """What the row says of its run and prompt."""
    split = sink.place.splits[run["id"]]
    sink.account.keep(run["id"], split, n_tokens, 0)
    group = f"{run['task']}#{prompt_digest(prompt, run['toolset'], sink.format.form)}"
    sink.groups[group] += 1
    return {
        "example_id": run["id"],
        "parents": [run["origin"]],
        "source": run["source"],
        "license": run["license"],
        "task": run["task"],
        "split": split,
        "n_tokens": n_tokens,
        "n_trained": 0,
        "group": group,
        "task_id": run["task_id"],
        "domain": run["domain"],
        "attempts": run["attempts"],
        "pass_rate": run["pass_rate"],
    }


def prompt_of(messages: Sequence[m.Message], pick: str) -> list[m.Message]:
    """The prompt, which ends with a user's or a tool's message; empty where the run has none. `pick`: first or last."""
    asked = next((i for i, message in enumerate(messages) if message.role == "user"), len(messages))
    starts = [
        i
        for i in range(asked + 1, len(messages))
        if messages[i].role == "assistant" and messages[i - 1].role in ("user", "tool")
    ]
    return list(messages[: starts[0] if pick == "first" else starts[-1]]) if starts else []
