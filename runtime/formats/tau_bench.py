"""tau-bench results: a JSON array of `{task_id, trial, reward, info, traj}`, `traj` being OpenAI messages.

A row whose `traj` is empty, or whose `info` holds an `error`, is a crash: the harness writes reward 0.0 for it, which
says nothing about the agent, so reward and success are null and the raw reward stays in meta. Success is reward >= 1.
The gold is `{"actions", "outputs"}` of the task.

The format has no tool schemas, no model name and no domain (both stand in file names only), and no verdict on a tool
result: `is_error` is null. A simulated user's stop marker stays in its text.
"""

from __future__ import annotations

from .json_text import Json, encode
from .messages import turns_of
from .model import ANYWHERE, Context, Match, RewardPart, Run, Sample, Unreadable
from .score import share
from .values import integer_of, json_or_null, number_of, text_of


class TauBench:
    """The adapter; it has no state."""

    name = "tau_bench"
    version = 1
    containers = ANYWHERE
    elements: str | None = None
    call_ids = True

    def recognise(self, sample: Sample) -> Match:
        return share(sample, _score)

    def read(self, record: Json, context: Context) -> list[Run]:
        if not isinstance(record, dict) or not isinstance(record.get("traj"), list):
            raise Unreadable("no `traj` list")
        notes = context.notes
        rest = {key: item for key, item in record.items() if key not in {"traj", "task_id", "trial", "reward"}}
        held = record.get("info")
        info: dict[str, Json] = held if isinstance(held, dict) else {}
        turns = turns_of(record["traj"], notes)
        run = Run(self.name, turns, task_id=text_of(record.get("task_id")))
        run.trial = integer_of(record.get("trial"), notes, 31)
        reward = number_of(record.get("reward"), notes)
        if not turns or "error" in info:
            run.outcome = "crash"
            rest["reward"] = record.get("reward")
        else:
            run.reward = reward
            run.success = None if reward is None else reward >= 1
            run.outcome = {True: "success", False: "failure", None: "unknown"}[run.success]
        if info:
            rest["info"] = self._take_info(run, info, notes)
        run.meta_json = encode(rest)
        return [run]

    def _take_info(self, run: Run, info: dict[str, Json], notes: set[str]) -> dict[str, Json]:
        """Moves error, gold and reward parts from `info` to their columns; returns what is left."""
        left = dict(info)
        if "error" in left:
            error = left.pop("error")
            run.error = error if isinstance(error, str) else json_or_null(error)
        task = left.get("task")
        if isinstance(task, dict):
            gold = {key: task[key] for key in ("actions", "outputs") if key in task}
            run.gold_json = encode(gold) if gold else None
            left["task"] = {key: item for key, item in task.items() if key not in gold}
        reward_info = left.get("reward_info")
        if isinstance(reward_info, dict) and isinstance(reward_info.get("info"), dict):
            run.reward_parts = [
                RewardPart(key, number_of(item, notes))
                for key, item in reward_info["info"].items()
                if key.startswith("r_") and isinstance(item, int | float)
            ]
        return left


def _score(record: Json) -> tuple[float, str]:
    if not isinstance(record, dict) or not isinstance(record.get("traj"), list):
        return 0.0, "no `traj` list"
    missing = [key for key in ("task_id", "reward", "info") if key not in record]
    return 1.0 - 0.3 * len(missing), "has `traj`" + (f", lacks {', '.join(missing)}" if missing else "")


TAU_BENCH = TauBench()
