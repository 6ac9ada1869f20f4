"""What `datasets.save_to_disk` leaves: a folder of Arrow files a data set, or one such folder for each split.

`state.json` names the files that belong to a data set (others are caches of `map` and `filter`); `dataset_dict.json`
names the splits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


def saved_files(folder: Path) -> list[Path] | None:
    """The data files of a saved data set, or of all splits of one, in order; null for any other folder."""
    splits = _member(folder / _SPLITS, "splits")
    if isinstance(splits, list):
        return [file for split in splits for file in saved_files(folder / str(split)) or []]
    files = _member(folder / _STATE, "_data_files") if (folder / _INFO).is_file() else None
    if not isinstance(files, list):
        return None
    return [folder / str(file["filename"]) for file in files if isinstance(file, dict) and "filename" in file]


def is_apart(path: Path) -> bool:
    """Whether a file lies in such a folder and is none of its data files."""
    saved = saved_files(path.parent)
    return saved is not None and path not in saved


def _member(path: Path, name: str) -> Any:
    """A member of a JSON object on disk; null where there is no such thing."""
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return value.get(name) if isinstance(value, dict) else None
