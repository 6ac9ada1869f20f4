"""Verifiers: what judges a rollout in training, by name, and what of a row each of them reads.

A spec only names them (`reward 0.8 * state_match + 0.2 * call_format`). What a verifier reads must be in the row: a row
without it could earn no reward, whatever the model does, and is dropped with the reason given here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Input = Literal["gold_calls", "gold_answers", "state_digest", "tools"]


@dataclass(frozen=True, slots=True)
class Verifier:
    """`inputs` are columns of an rl row, one of which is enough; none: it reads the rollout alone. `lacking` is the
    reason of a row that has none of them."""

    about: str
    inputs: tuple[Input, ...] = ()
    lacking: str = ""


VERIFIERS = {
    "state_match": Verifier(
        "the final state is the one that the gold calls leave", ("state_digest", "gold_calls"), "no_state"
    ),
    "call_match": Verifier("the calls are the gold calls", ("gold_calls",), "no_gold_calls"),
    # Schemas make it stricter where they are known; many corpora have none.
    "call_format": Verifier("every call can be read: a name, and arguments that are an object"),
    "answer_match": Verifier("the gold answers are said", ("gold_answers",), "no_gold_answer"),
    "no_hallucinated_tool": Verifier("no call names a tool that is not shown", ("tools",), "no_tools"),
    "numeric_match": Verifier("the numbers of the gold answers are said", ("gold_answers",), "no_gold_answer"),
    "token_f1": Verifier("words shared with the gold answers", ("gold_answers",), "no_gold_answer"),
    "reward": Verifier("what the environment itself gives"),
}
