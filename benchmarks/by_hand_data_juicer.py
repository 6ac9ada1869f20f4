"""An easier job than the fixed one with data-juicer's own operators, in two processes.

Usage: by_hand_data_juicer.py CORPUS OUT. Reward, length of the text, white space made one, exact duplicates without
case; no turn is edited, and there are no caps and no split. What a run says lies ready as one text, messages and tools
as JSON text: `python by_hand_data_juicer.py --ready RUNS CORPUS` writes such a corpus from a benchmark's. Needs an
environment of its own with `py-data-juicer` (which also wants `aiohttp` and `torch`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import string
import sys
import tempfile
from pathlib import Path

import job

TEXT = (500, 20_000)  # characters
NOT_INSTALLED = 3  # exit code


def made_ready(runs: Path, corpus: Path) -> None:
    import orjson

    with runs.open("rb") as lines, corpus.open("wb") as file:
        for line in lines:
            run = orjson.loads(line)
            said = (m["content"] for m in run["messages"] if m["role"] != "system")
            row = {
                "id": run["id"],
                "reward": run["reward"],
                "text": "\n".join(text for text in said if text),
                "messages": orjson.dumps(run["messages"]).decode(),
                "tools": orjson.dumps(run["tools"]).decode(),
            }
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def expected(corpus: Path) -> set[str]:
    """The ids that the job asks for, in plain Python: the first of equal texts stays."""
    import orjson

    blind = str.maketrans("", "", string.digits + string.punctuation)
    first: dict[str, str] = {}
    with corpus.open("rb") as lines:
        for row in map(orjson.loads, lines):
            if (row["reward"] or 0) >= job.REWARD and TEXT[0] <= len(row["text"]) <= TEXT[1]:
                first.setdefault("".join(row["text"].lower().translate(blind).split()), row["id"])
    return set(first.values())


def main() -> None:
    if sys.argv[1] == "--ready":
        made_ready(*map(Path, sys.argv[2:4]))
        return
    if importlib.util.find_spec("data_juicer") is None:
        print("data-juicer is not installed: `pip install py-data-juicer aiohttp torch`", file=sys.stderr)
        raise SystemExit(NOT_INSTALLED)
    corpus, out = job.paths()
    recipe = {
        "project_name": "fixed_job",
        "dataset_path": str(corpus.resolve()),
        "export_path": str(out.resolve() / "rows.jsonl"),
        "np": 2,
        "use_cache": False,
        "open_tracer": False,
        "text_keys": "text",
        "process": [
            {"specified_numeric_field_filter": {"field_key": "reward", "min_value": job.REWARD}},
            {"text_length_filter": {"min_len": TEXT[0], "max_len": TEXT[1]}},
            {"whitespace_normalization_mapper": {}},
            {"document_deduplicator": {"lowercase": True, "ignore_non_character": True}},
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_HOME"] = folder
        os.environ["HF_HUB_OFFLINE"] = "1"
        path = Path(folder) / "recipe.yaml"  # JSON is YAML
        path.write_text(json.dumps(recipe))
        sys.argv[1:] = ["--config", str(path)]
        from data_juicer.tools.process_data import main as process

        process()


if __name__ == "__main__":
    main()
