"""Write the quickstart corpus: runs of a shop's service agents as OpenAI chat messages, one JSON record a line.

    python specs/quickstart/make_corpus.py [--out DIR] [--seed N] [--runs N]

Three files, one for each weekly round of trials: week-1.jsonl, week-2.jsonl.gz, week-3.jsonl.gz. Every task is tried
once a week by each of two models. Equal arguments give equal bytes. Only the standard library is used.

The corpus holds the noise that logs of real agents hold. What the agents do wrong is in `corpus_agent.py`, as rates;
what the harness and the disk do is in NOISE below, as shares of the runs, no run having more than one of them.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from corpus_agent import PROFILES
from corpus_policy import play
from corpus_shop import TOOLS, Json
from corpus_tasks import Task, make_task

SEED = 20
RUNS = 360
TRIALS = 3
FILES = ("week-1.jsonl", "week-2.jsonl.gz", "week-3.jsonl.gz")

# Shares of all runs, rounded to whole runs.
NOISE = {
    "crash": 0.04,  # the harness fell over: no messages, reward 0, an error text
    "duplicate": 0.02,  # a cached transcript logged again as a later trial
    "no_call_ids": 0.04,  # an older client that wrote neither call ids nor `tool_call_id`
    "no_reward": 0.02,  # the grader did not report: neither `reward` nor `success`
    "ends_on_tool": 0.025,  # cut by the turn limit right after a tool result
    "long_result": 0.014,  # a tool result with a log of more than LONG characters in it
}
LONG = 6_000
TORN = 2  # lines that are no JSON: one overwritten in the middle of week 1, one cut off at the end of week 3
CRASHES = (
    "ServiceUnavailable: model endpoint answered 503 four times",
    "ReadTimeout: no bytes from the model for 120 s",
    "RuntimeError: sandbox exited with code 137",
)
DEPOTS = ("Port Ellery", "Hazelmere", "Brackwater", "Nether Sallow", "Coldharbour", "Grey Mule hub 7", "Otter yard")


def record_of(task: Task, model: str, trial: int, messages: list[Json], reward: float) -> Json:
    return {
        "id": f"{task.task_id}.{model}.{trial}",
        "task_id": task.task_id,
        "trial": trial,
        "model": model,
        "messages": messages,
        "tools": TOOLS,
        "reward": reward,
        "success": reward == 1.0,
        "outcome": "success" if reward == 1.0 else "failure",
        "metadata": {
            "topic": task.kind,
            "customer_id": task.customer_id,
            "order_ids": list(task.order_ids),
            "gold": [{"name": name, "arguments": arguments} for name, arguments in task.gold],
            "must_say": list(task.must_say),
        },
    }


def clean_runs(seed: int, runs: int) -> list[Json]:
    """All runs before any noise, task by task. No two runs of a task have equal messages."""
    per_task = TRIALS * len(PROFILES)
    records: list[Json] = []
    for index in range(-(-runs // per_task)):
        task = make_task(index, seed)
        seen: set[str] = set()
        for trial in range(TRIALS):
            for profile in PROFILES:
                for salt in range(1_000):
                    run = play(task, profile, random.Random(f"{seed}:run:{index}:{trial}:{profile.name}:{salt}"))
                    text = json.dumps(run.messages)
                    if text not in seen:
                        break
                seen.add(text)
                records.append(record_of(task, profile.name, trial, run.messages, run.reward))
    return records[:runs]


# ---- noise: each function changes one record ----
def crash(record: Json, rng: random.Random) -> None:
    record.update(messages=[], reward=0.0, success=False, outcome="crash", error=rng.choice(CRASHES))


def no_call_ids(record: Json, _: random.Random) -> None:
    for message in record["messages"]:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            del call["id"]


def no_reward(record: Json, _: random.Random) -> None:
    for key in ("reward", "success", "outcome"):
        del record[key]


def ends_on_tool(record: Json, _: random.Random) -> None:
    """Cut after the last result. The state is as it was; what was to be said after it is missing."""
    messages = record["messages"]
    while messages[-1]["role"] != "tool":
        messages.pop()
    if record["metadata"]["must_say"]:
        record.update(reward=0.0, success=False)
    record["outcome"] = "truncated"


def long_result(record: Json, rng: random.Random) -> None:
    """Put the carrier's whole log into the last result that describes an order or a parcel."""
    message = next(m for m in reversed(record["messages"]) if _holds_order(m))
    result = json.loads(message["content"])
    log: list[Json] = []
    while len(json.dumps(log)) <= LONG:
        stamp = f"2026-03-{rng.randrange(1, 16):02d}T{rng.randrange(24):02d}:{rng.randrange(60):02d}:00Z"
        log.append({"at": stamp, "depot": rng.choice(DEPOTS), "belt": rng.randrange(1, 40), "ok": True})
    result["carrier_log"] = sorted(log, key=lambda scan: str(scan["at"]))
    message["content"] = json.dumps(result, ensure_ascii=False)


def _holds_order(message: Json) -> bool:
    return (
        message["role"] == "tool"
        and message["name"] in {"get_order", "track_shipment"}
        and message["content"][0] == "{"
    )


def _has_calls(record: Json) -> bool:
    return any(message.get("tool_calls") for message in record["messages"])


Edit = Callable[[Json, random.Random], None]
EDITS: dict[str, tuple[Edit, Callable[[Json], bool]]] = {  # what changes, and which runs it may befall
    "crash": (crash, lambda _: True),
    "no_call_ids": (no_call_ids, _has_calls),
    "no_reward": (no_reward, lambda _: True),
    "ends_on_tool": (ends_on_tool, _has_calls),
    "long_result": (long_result, lambda record: any(map(_holds_order, record["messages"]))),
}


@dataclass
class Corpus:
    lines: dict[str, list[str]]
    counts: Counter[str] = field(default_factory=Counter)  # runs by kind of noise


def build(seed: int = SEED, runs: int = RUNS) -> Corpus:
    records = clean_runs(seed, runs)
    rng = random.Random(f"{seed}:noise")
    counts: Counter[str] = Counter()
    free = list(range(len(records)))  # runs without any noise so far
    rng.shuffle(free)

    for kind, share in NOISE.items():
        wanted = round(share * runs)
        if kind == "duplicate":
            counts[kind] = _duplicate(records, free, wanted)
            continue
        edit, may = EDITS[kind]
        chosen = [i for i in free if may(records[i])][:wanted]
        for i in chosen:
            records[i] = json.loads(json.dumps(records[i]))  # runs share tools and duplicates share messages
            edit(records[i], rng)
            free.remove(i)
        counts[kind] = len(chosen)

    weeks: list[list[str]] = [[] for _ in FILES]
    torn = _torn(records, free) if runs >= 24 else {}
    rng.shuffle(order := [i for i in range(len(records)) if i not in torn])
    for i in order:
        weeks[records[i]["trial"]].append(_line(records[i]))
    for i, week in torn.items():
        line = _line(records[i])
        if week == 0:  # two writers at once: the record starts again before it has ended
            weeks[week].insert(len(weeks[week]) // 2, line[: len(line) // 2] + line[: len(line) // 3])
        else:
            weeks[week].append(line[: len(line) * 3 // 5])
    counts["torn"] = len(torn)
    return Corpus(dict(zip(FILES, weeks, strict=True)), counts)


def _line(record: Json) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _duplicate(records: list[Json], free: list[int], wanted: int) -> int:
    """Replace a run by a copy of the same model's first trial of the task, under its own id."""
    done = 0
    for i in list(free):
        first = i - records[i]["trial"] * len(PROFILES)
        if done < wanted and i != first and i in free and first in free:
            own = {key: records[i][key] for key in ("id", "trial")}
            records[i] = {**records[first], **own}
            free.remove(i)
            free.remove(first)  # later noise would make the two differ again
            done += 1
    return done


def _torn(records: list[Json], free: list[int]) -> dict[int, int]:
    """The runs whose lines break, with their week."""
    return {next(i for i in free if records[i]["trial"] == week): week for week in (0, TRIALS - 1)}


def write(corpus: Corpus, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, lines in corpus.lines.items():
        text = "\n".join(lines)
        # The torn last line has no line end either: the writer died in the middle of it.
        data = (text if name == FILES[-1] and corpus.counts["torn"] else text + "\n").encode()
        if name.endswith(".gz"):
            packed = io.BytesIO()
            with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
                stream.write(data)
            data = packed.getvalue()
        (out / name).write_bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the quickstart corpus.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    corpus = build(options.seed, options.runs)
    write(corpus, options.out)
    for name in corpus.lines:
        print(f"{options.out / name}: {len(corpus.lines[name])} lines, {(options.out / name).stat().st_size:,} bytes")
    print(", ".join(f"{kind} {count}" for kind, count in corpus.counts.items()))


if __name__ == "__main__":
    main()
