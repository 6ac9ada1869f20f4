"""What the hand-written variants of the fixed job share: its numbers, and the rule that splits tasks.

`fixed_job.curate` says the same to the compiler. Each variant is a script that takes CORPUS and OUT, a folder, and
writes OUT/{train,validation}.{jsonl,parquet}: id, task, split, messages, tools.
"""

from __future__ import annotations

import sys
from pathlib import Path

from xxhash import xxh3_64_intdigest

REWARD = 0.5
TURNS = (4, 40)  # without the system prompt, both ends in
CUT = 2_000  # code points of a result: its first and its last thousand
CAP = 50  # runs of a task
TRAIN = 0.95
SPLITS = ("train", "validation")
WHITE = b" \t\n\r\f"  # what `\s` is

_HEAD = b"s5:spliti7;"  # the verb and the seed


def split(task: str) -> str:
    """The part of a task: the compiler's draw for `split by task … seed 7`, 63 bits of a hash."""
    name = task.encode()
    return SPLITS[xxh3_64_intdigest(_HEAD + b"s%d:%b" % (len(name), name)) >> 1 >= int(TRAIN * 2**63)]


def paths() -> tuple[Path, Path]:
    """The corpus, and the folder to write, which is made."""
    corpus, out = map(Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    return corpus, out
