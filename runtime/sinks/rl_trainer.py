"""The settings beside an rl sink, and what a reader of its rows must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curatec.compiler import plan
from curatec.compiler.verifiers import VERIFIERS
from curatec.runtime.sinks import trainer
from curatec.runtime.sinks.columns import Col
from curatec.runtime.sinks.place import Place

_NO_GROUP = "The spec gives no `group`: TRL's own number."
_REWARD = """\
Verifiers and weights, to be summed; they run in training. TRL 1.16 calls a reward function with one list for each
column, one entry a rollout: `def state_match(completions, gold_calls, state_digest, **rest) -> list[float]`.
`gold_calls` are objects; `gold` and `meta` are JSON texts. What each verifier reads is under `inputs`: a row that has
none of it was dropped, with the reason `no_state`, `no_gold_calls`, `no_gold_answer` or `no_tools`."""
_RESET = """\
How a rollout's environment learns its task: TRL calls `reset(**row)` of each object that `environment_factory` makes,
with all columns by name: `def reset(self, reset, gold_calls, **row)`. A text that it returns is put behind the prompt.
TRL shows a rollout the tools that the trainer is given (`tools`, or methods of the environment), not the column
`tools`: give it callables with these names and schemas."""
_ESTIMATE = "n_tokens is UTF-8 bytes / 4: no tokenizer is named."
_EXACT = "n_tokens counts the prompt as the template writes it, with tools and with what asks for the model's turn."


def settings(
    place: Place, target: plan.Rl, files: tuple[str, ...], columns: tuple[Col, ...]
) -> dict[str, trainer.Setting | Any]:
    """The entries of trainer.yaml."""
    ordered = "The spec sorts the rows (`sort by`): no shuffling." if place.sorted else "Prompts may come in any order."
    inputs = {name: list(VERIFIERS[name].inputs) for name, _ in target.reward}
    return {
        "trainer": "verl.trainer.main_ppo" if target.format == "verl" else "trl.GRPOTrainer",
        "format": trainer.about_format(target.format),
        "files": trainer.files(files),
        "reward": trainer.Setting(dict(target.reward), _REWARD),
        "inputs": trainer.Setting(inputs, "Columns of which a verifier reads those that are there, the first first."),
        "environment": trainer.Setting({"reset": "reset"}, _RESET),
        **trainer.tokens(place.state.renderer, _ESTIMATE, _EXACT),
        "args": _verl(target, place)
        if target.format == "verl"
        else {
            "num_generations": trainer.Setting(target.group or 8, "" if target.group else _NO_GROUP),
            "shuffle_dataset": trainer.Setting(not place.sorted, ordered),
            "remove_unused_columns": trainer.Setting(False, "Rewards and environments read the other columns."),
        },
        "columns": trainer.about(columns),
    }


def _verl(target: plan.Rl, place: Place) -> dict[str, Any]:
    """verl's own names."""
    return {
        "data.shuffle": not place.sorted,
        "actor_rollout_ref.rollout.n": trainer.Setting(target.group or 8, "" if target.group else _NO_GROUP),
    }


def notes(groups: Mapping[str, int]) -> tuple[str, ...]:
    """For the card. `groups`: group → rows."""
    again = sum(n - 1 for n in groups.values())
    if not again:
        return ()
    rows = "row starts" if again == 1 else "rows start"
    return (
        f"{again} {rows} from a prompt that another row of the task has: a trainer makes a group of each "
        "(`limit 1 per task` keeps one a task).",
    )
