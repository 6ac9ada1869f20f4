"""A small corpus and a strategy with every step that makes, replaces, redacts, joins or seals rows.

What people are told of such an output (page, card, `show`, `plan`, the summary) is tested against it. Texts are told
apart by their task, so that every number can be counted again by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

NAMES = ("look_up", "change_order", "cancel_order", "send_mail", "track_parcel", "list_items")
TASKS = 12
TRIALS = 4
SEALED = "The sealed question asks which of the nine parcels in the northern warehouse was delivered twice"

SPEC = """curate 1

source desk {
  path "runs/desk-*.jsonl"
  error when content ~ r"^Error"
  license "MIT"
}

source night {
  path "runs/night.jsonl"
  error when content ~ r"^Error"
  license "Apache-2.0"
}

table verdicts {
  path "side/verdicts.csv"
  key task
  columns { resolved: bool  minutes: float }
}

test set bench {
  path "side/bench.jsonl"
  id task_id
  text question
}

test set kept_back {
  path "side/kept_back.json"
  id task_id
}

strategy every_step {
  from desk, night
  known: join verdicts on task because "a second opinion on what was solved"
  split by task { train 75% validation 25% } seed 3
  render "builtin:tiny-qwen3"
  clean: redact pii, secrets in all
  sealed: decontaminate against bench ngram 8 because "the benchmark stays unseen"
  alike: dedup near on text threshold 0.9 over (task)
  shares: mix { desk 80% night 20% }

  stage taught from shared {
    crowded: augment distractors(n: 2, pool: all, copies: 2)
    renamed: augment rebind(entities: ["order_id"], copies: 1)
    put_right: augment recover(max_gap: 2)
  }

  emit sft from taught {
    short_results: turns set content = truncate(content, 400) where role == "tool"
    loss on assistant
    fit 560 tokens else window
  }
  emit rl {
    each_decision: decompose at calls is not empty
    prompt until last assistant
  }
  emit memory {
    lessons: keep where not success
    key task_text
    value concat(final_answer, "")
  }
  emit preference {
    pair within task from first difference chosen where success rejected where not success max 4 per task
  }

  expect rows(sft) >= 10
}
"""


def schema(name: str) -> Json:
    parameters = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def call(id_: str, name: str, **arguments: Any) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def run_of(task: int, trial: int) -> Json:
    """Trial 0 works at once, 1 after an error, 2 fails, 3 says nearly what 0 says. Every third task names no order, so
    that it cannot be renamed, and every fourth shows too many tools for two more."""
    order = f"#W{10_000 + 137 * task + trial}" if task % 3 else None
    given = {"order_id": order} if order else {"city": "Oslo"}
    about = f" in order {order}" if order else ""
    ask = (
        f"I am Jane, jane{task}@example.com. Parcel number {task} of {task * 7 + 3} goes to street {task * 11}"
        f" and not to {task * 13}{about}; please put it right and tell me what you did."
    )
    messages: list[Json] = [
        {"role": "system", "content": "You help customers of a shop. Be brief, be right, change nothing unasked."},
        {"role": "user", "content": ask},
    ]
    if trial == 1:
        messages += [call("c0", "look_up", **{**given, "exact": True}), answer("c0", "Error: no such parcel")]
    found = {
        "parcel": task,
        "street": task * 11,
        "phone": "+49 30 901820",
        "lines": [f"item {k} of {task}" for k in range(12)],
    }
    messages += [call("c1", "look_up", **given), answer("c1", json.dumps(found))]
    if trial == 2:
        messages.append({"role": "assistant", "content": f"I could not find parcel {task}."})
    else:
        messages += [call("c2", "change_order", **given, street=task * 11), answer("c2", "changed")]
        polite = " Good bye!" if trial == 3 else ""
        messages.append({"role": "assistant", "content": f"Parcel {task} now goes to street {task * 11}.{polite}"})
    tools = NAMES[: 2 if task % 4 else 5]
    return {
        "id": f"t{task}.{trial}", "task_id": f"t{task}", "trial": trial, "model": "tiny-1", "messages": messages,
        "reward": float(trial != 2), "success": trial != 2, "tools": [schema(name) for name in tools],
    }  # fmt: skip


def answer(id_: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def leaking(task: int) -> Json:
    """A run whose customer reads the benchmark aloud."""
    run = run_of(task, 0)
    run["messages"][1]["content"] = f"{SEALED}, and <b>also</b> parcel {task}"
    return run | {"id": f"t{task}.leak", "task_id": f"t{task}"}


def files() -> dict[str, list[Json]]:
    return {
        "desk-a": [run_of(task, trial) for task in range(TASKS) for trial in range(TRIALS)],
        "desk-b": [leaking(20), leaking(21)],
        "night": [run_of(task, trial) for task in range(30, 34) for trial in range(TRIALS)],
    }


def records() -> list[Json]:
    """All runs as they are written."""
    return [run for runs in files().values() for run in runs]


def write(folder: Path, spec: str = SPEC) -> Path:
    """The corpus and the spec below a folder; returns the spec's path."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    (folder / "side").mkdir(exist_ok=True)
    for name, runs in files().items():
        (folder / "runs" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in runs), encoding="utf-8")
    verdicts = [f"desk/t{task},{'true' if task % 2 else 'false'},{task / 2}" for task in range(TASKS)]
    (folder / "side" / "verdicts.csv").write_text("\n".join(["task,resolved,minutes", *verdicts, ""]), encoding="utf-8")
    items = [{"task_id": "bench-<1>", "question": SEALED}, {"task_id": "t31", "question": "A short one"}]
    (folder / "side" / "bench.jsonl").write_text("".join(json.dumps(i) + "\n" for i in items), encoding="utf-8")
    (folder / "side" / "kept_back.json").write_text('[{"task_id": "t33"}]', encoding="utf-8")
    path = folder / "every_step.curate"
    path.write_text(spec, encoding="utf-8")
    return path
