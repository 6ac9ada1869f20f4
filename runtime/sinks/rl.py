"""`emit rl`: prompts, and what a reward needs to judge a rollout.

The prompt is everything before the first (or last) assistant turn that comes after a user turn and answers a user or a
tool: where several assistant turns stand in a row, it ends before the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.runtime.conversation import messages as m
from curatec.runtime.sinks import trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import Buckets
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.written import Written

COLUMNS = (
    *COMMON,
    Col("prompt", "objects", "the messages that a rollout starts from"),
    Col("tools", "objects", "schemas of the tools shown, null where none are known"),
    Col("task_id", "text", "the task's own id"),
    Col("domain", "text", "domain of the task"),
    Col("gold", "text", "gold calls or reference answer as JSON, null where the source has none"),
    Col("meta", "text", "everything else that the record says, a JSON object"),
    Col("reward", "terms", "verifiers of a rollout and their weights, to be summed"),
)


@dataclass
class _Sink:
    """One sink while it is written."""

    place: Place
    target: plan.Rl
    form: m.Form
    tools: m.Tools
    account: Account = field(default_factory=Account)


def write(place: Place, target: plan.Rl) -> Written:
    """Files, ledger rows and account of an rl sink."""
    form: m.Form = "openai" if target.format == "openai" else "trl"
    sink = _Sink(place, target, form, m.Tools(place.state.toolsets))
    buckets, account = Buckets(place.scratch), sink.account
    for _, frames in place.state.batches():
        for record in _records(sink, frames):
            buckets.add(place.positions[record["example_id"]], record)
    with Files(place.folder, COLUMNS) as files:
        for _, row in buckets:
            files.add(row["split"], row)
    names = (*files.names, trainer.write(place.folder, _settings(place, target, trainer.files(files.names))))
    account.close(place.ledger, place.name)
    rows, dropped, rejected = account.sums
    return Written(
        place.name, place.named(names), rows, place.state.rows.height, dropped, rejected, tokens=account.tokens
    )


def _records(sink: _Sink, frames: Frames) -> Iterator[dict[str, Any]]:
    """The rows of one part."""
    runs = frames.runs.select("id", "origin", "source", "license", "task", "toolset", "task_id", "domain").to_dicts()
    wide = sink.place.executed.loaded.wide(sink.place.state, frames.runs)
    about = {id_: (gold, meta) for id_, gold, meta in wide.select("id", "gold_json", "meta_json").iter_rows()}
    for run, turns in zip(runs, m.by_run(m.turn_rows(frames.turns), len(runs)), strict=True):
        prompt = prompt_of(m.messages_of(turns, sink.form), sink.target.prompt)
        if not prompt:
            sink.account.drop(run["id"], "no_prompt")
            continue
        schemas, fault = sink.tools(run["toolset"])
        fault = m.fault_of(prompt, may_end_on_call=False) or fault
        if fault is not None:
            sink.account.reject(run["id"], fault)
            continue
        gold, meta = about[run["id"]]
        yield {**_record(sink, run, prompt), "tools": schemas, "gold": gold, "meta": meta}


def _record(sink: _Sink, run: dict[str, Any], prompt: list[m.Message]) -> dict[str, Any]:
    """The row without its tools, gold and meta."""
    split, n_tokens = sink.place.splits[run["id"]], sum(message.tokens for message in prompt)
    sink.account.keep(run["id"], split, n_tokens, 0)
    return {
        "example_id": run["id"],
        "parents": [run["origin"]],
        "source": run["source"],
        "license": run["license"],
        "task": run["task"],
        "split": split,
        "n_tokens": n_tokens,
        "n_trained": 0,
        "prompt": [m.json_of(message, sink.form) for message in prompt],
        "task_id": run["task_id"],
        "domain": run["domain"],
        "reward": [{"name": name, "weight": weight} for name, weight in sink.target.reward],
    }


def prompt_of(messages: Sequence[m.Message], pick: str) -> list[m.Message]:
    """The prompt, empty where the run has none. `pick`: first or last."""
    asked = next((i for i, message in enumerate(messages) if message.role == "user"), len(messages))
    starts = [
        i
        for i in range(asked + 1, len(messages))
        if messages[i].role == "assistant" and messages[i - 1].role in ("user", "tool")
    ]
    return list(messages[: starts[0] if pick == "first" else starts[-1]]) if starts else []


_NO_GROUP = "The spec gives no `group`: TRL's own number."


def _settings(place: Place, target: plan.Rl, files: trainer.Setting) -> dict[str, trainer.Setting | Any]:
    ordered = "The spec sorts the rows (`sort by`): no shuffling." if place.sorted else "Prompts may come in any order."
    return {
        "trainer": "trl.GRPOTrainer",
        "format": target.format,
        "files": files,
        "reward": trainer.Setting(
            dict(target.reward),
            "Verifiers and weights; they run in training, where columns reach a reward function by their names.",
        ),
        "tokens": trainer.Setting("estimate", "n_tokens is UTF-8 bytes / 4: no tokenizer is named."),
        "template_digest": None,
        "args": {
            "num_generations": trainer.Setting(target.group or 8, "" if target.group else _NO_GROUP),
            "shuffle_dataset": trainer.Setting(not place.sorted, ordered),
            "remove_unused_columns": trainer.Setting(False, "Reward functions read `gold`, `meta` and `reward`."),
        },
        "tools": trainer.Setting(
            None,
            "TRL shows a rollout the tools that the trainer is given (`tools` or `environment_factory`), not the\n"
            "column `tools`: give it callables with these names and schemas.",
        ),
        "columns": trainer.about(COLUMNS),
    }
