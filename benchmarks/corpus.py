"""Writes the benchmarks' corpus: agent runs in OpenAI's chat form, one a line.

Usage: corpus.py --runs N --out FILE [--seed S]

A run has 18.5 messages and 10.8 KB on average. The same seed gives the same bytes, and the first N runs of a larger
corpus are those of the smaller: every run is drawn by its own number, and its task and what it copies come from the
4,096 runs of its block. What curation meets in real corpora is in it: tasks of very uneven size whose ids mean nothing
without their domain, rewards in steps, calls with JSON text as arguments, several calls a turn, failing and overlong
results, runs without calls, runs that end on a result, text in several scripts, and runs told twice that differ in case
and white space alone.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

BLOCK = 4_096  # runs
TASKS = 40  # a block
COPIES = 0.08  # runs that tell another one again
LONG = 2_000  # code points: the white space of a longer result stays as it is, so that cutting it gives the same
DOMAINS = ("airline", "retail", "telecom")
MODELS = ("small-7b", "medium-32b", "large-235b")
REWARDS = (0.0, 0.25, 0.5, 0.75, 1.0)
REWARD_WEIGHTS = (0.40, 0.15, 0.15, 0.10, 0.20)
ERRORS = ("not found", "is locked by another agent", "has no such field", "timed out after 30 s")
# Each has one capital and comes back from it, so that a run told again in capitals says the same ("ß" does not).
FOREIGN = (
    *("réservé", "número", "zurück", "grösse", "später", "pšenice", "заказ", "возврат", "квитанция", "адрес"),
    *("注文", "返金", "確認", "配送", "订单", "退款", "客服", "예약", "환불", "✈️", "📦", "naïve", "señor", "crème"),
)

Run = dict[str, Any]
Message = dict[str, Any]


class Words:
    """What all runs of a corpus draw from: sentences, system prompts and tools, the same for every size."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"words {seed}")
        syllables = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "er", "an", "ing", "al", "est")]
        words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(3_000)]
        self.sentences = [self._sentence(chance, words) for _ in range(12_000)]
        self.prompts = {
            d: f"You serve {d} customers.\n\n" + "\n".join(chance.sample(self.sentences, 4)) for d in DOMAINS
        }
        self.tools = {domain: self._tools(chance, domain) for domain in DOMAINS}

    @staticmethod
    def _sentence(chance: random.Random, words: list[str]) -> str:
        said = chance.choices(words, k=chance.randint(6, 16))
        if chance.random() < 0.15:
            said[chance.randrange(len(said))] = chance.choice(FOREIGN)
        return " ".join(said).capitalize() + chance.choice((".", ".", ".", "?", "!"))

    def _tools(self, chance: random.Random, domain: str) -> list[dict[str, Any]]:
        return [
            {
                "type": "function",
                "function": {
                    "name": f"{verb}_{domain}_order",
                    "description": chance.choice(self.sentences),
                    "parameters": {
                        "type": "object",
                        "properties": {"order_id": {"type": "string"}, "note": {"type": "string"}},
                        "required": ["order_id"],
                    },
                },
            }
            for verb in ("find", "read", "change", "cancel", "refund")
        ]


def runs(count: int, seed: int) -> Iterator[bytes]:
    """The first `count` runs, each as a line with its line end."""
    words = Words(seed)
    return (orjson.dumps(_run(words, seed, i), option=orjson.OPT_APPEND_NEWLINE) for i in range(count))


def _run(words: Words, seed: int, number: int) -> Run:
    chance, told = _chances(seed, number)
    block, at = divmod(number, BLOCK)
    # The square makes the first tasks of a block many times larger than the last.
    task = block * TASKS + int(told.random() ** 2 * TASKS)
    domain = DOMAINS[task % len(DOMAINS)]
    reward = None if chance.random() < 0.01 else chance.choices(REWARDS, REWARD_WEIGHTS)[0]
    minute = block * BLOCK + at * 1_597 % BLOCK  # each once, out of order
    run: Run = {
        "id": f"run-{number:08d}",
        "task_id": str(task // len(DOMAINS)),
        "domain": domain,
        "model": chance.choice(MODELS),
        "started_at": f"{datetime(2020, 1, 1) + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ}",
        "reward": reward,
    }
    if reward is not None and chance.random() < 0.7:
        run["success"] = reward >= 1.0
    run["tools"] = words.tools[domain]
    messages = list(_messages(words, told, domain))
    run["messages"] = messages if told.number == number else [_told_again(m, chance) for m in messages]
    return run


class _Telling(random.Random):
    """What a run says is drawn from the number of the run that says it first."""

    def __init__(self, seed: int, number: int) -> None:
        super().__init__(f"telling {seed} {number}")
        self.number = number


def _chances(seed: int, number: int) -> tuple[random.Random, _Telling]:
    """Draws of the run's own facts, and those of what it says, which a copy shares with an earlier run of its block."""
    own = chance = random.Random(f"run {seed} {number}")
    first = number - number % BLOCK
    while number > first and chance.random() < COPIES:
        number = chance.randrange(first, number)
        chance = random.Random(f"run {seed} {number}")
    return own, _Telling(seed, number)


def _messages(words: Words, chance: random.Random, domain: str) -> Iterator[Message]:
    """3 to 60 turns behind the system prompt."""
    turns = min(58, max(3, round(chance.lognormvariate(2.65, 0.6))))
    order = f"W{chance.randrange(10**9):09d}"
    talks_only = chance.random() < 0.04
    ends_on_result = chance.random() < 0.05
    yield {"role": "system", "content": words.prompts[domain]}
    yield {"role": "user", "content": f"Order {order}: {_text(words, chance, 1, 6)}"}
    said = 1
    while said < turns - 1:
        if talks_only or chance.random() < 0.12:
            yield {"role": "assistant", "content": _text(words, chance, 1, 5)}
            yield {"role": "user", "content": _text(words, chance, 1, 4)}
            said += 2
            continue
        calls = [_call(words, chance, domain, order) for _ in range(2 if chance.random() < 0.1 else 1)]
        spoken = _text(words, chance, 1, 3) if chance.random() < 0.5 else None
        yield {"role": "assistant", "content": spoken, "tool_calls": calls}
        for call in calls:
            yield {"role": "tool", "tool_call_id": call["id"], "content": _result(words, chance, order)}
        said += 1 + len(calls)
    if talks_only or not ends_on_result:
        yield {"role": "assistant", "content": _text(words, chance, 1, 6)}


def _text(words: Words, chance: random.Random, least: int, most: int) -> str:
    return " ".join(chance.choices(words.sentences, k=chance.randint(least, most)))


def _call(words: Words, chance: random.Random, domain: str, order: str) -> dict[str, Any]:
    name = chance.choice(words.tools[domain])["function"]["name"]
    arguments = {"order_id": order, "note": chance.choice(words.sentences), "priority": chance.randint(1, 5)}
    text = json.dumps(arguments, ensure_ascii=False)
    return {
        "id": f"call_{chance.getrandbits(64):016x}",
        "type": "function",
        "function": {"name": name, "arguments": text},
    }


def _result(words: Words, chance: random.Random, order: str) -> str:
    kind = chance.random()
    if kind < 0.10:
        return f"Error: order {order} {chance.choice(ERRORS)}"
    rows = chance.randint(30, 70) if kind < 0.16 else chance.randint(1, 5)
    lines = [f'{{"order": "{order}", "line": {i}, "note": "{_text(words, chance, 1, 1)}"}}' for i in range(rows)]
    return "\n".join(lines)


def _told_again(message: Message, chance: random.Random) -> Message:
    """The same in capitals, or with more white space, or both: nothing else of the message changes."""
    content = message["content"]
    if message["role"] == "system" or content is None or content.startswith("Error:"):
        return message
    if chance.random() < 0.5:
        content = content.upper()
    if len(content) <= LONG // 2 and chance.random() < 0.5:
        content = content.replace(" ", "  ").replace(". ", ".\n") + "\t"
    return message | {"content": content}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, required=True)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with given.out.open("wb") as file:
        file.writelines(runs(given.runs, given.seed))


if __name__ == "__main__":
    main()
