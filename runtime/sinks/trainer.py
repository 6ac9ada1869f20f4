"""`trainer.yaml`: the settings that make a sink's files mean what the spec says, for people and for `curatec train`.

Values are written as JSON, which is YAML; lines of comment stand above what they explain.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from curatec.runtime import targets
from curatec.runtime.sinks.columns import Col

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

NAME = "trainer.yaml"


@dataclass(frozen=True, slots=True)
class Setting:
    """One entry. A mapping is written as a block, everything else on its line."""

    value: Any
    comment: str = ""


def render(settings: Mapping[str, Setting | Any]) -> str:
    """YAML text; entries in the given order."""
    return "".join(_entry(name, value, 0) for name, value in settings.items())


def _entry(name: str, value: Setting | Any, depth: int) -> str:
    setting = value if isinstance(value, Setting) else Setting(value)
    pad = "  " * depth
    above = "".join(f"{pad}# {line}\n" for line in setting.comment.splitlines())
    if isinstance(setting.value, Mapping) and setting.value:
        return f"{above}{pad}{name}:\n" + "".join(_entry(n, v, depth + 1) for n, v in setting.value.items())
    return f"{above}{pad}{name}: {orjson.dumps(setting.value).decode()}\n"


def write(folder: Path, settings: Mapping[str, Setting | Any]) -> str:
    """Writes the file; returns its name."""
    (folder / NAME).write_text(render(settings), encoding="utf-8")
    return NAME


def about_format(name: str) -> Setting:
    """The format, with what it changes and refuses."""
    return Setting(name, "\n".join(textwrap.wrap(targets.target(name).about, 110)))


def tokens(renderer: Renderer | None, estimate: str, counted: str) -> dict[str, Setting | Any]:
    """How tokens were counted, and by whose tokenizer and template."""
    if renderer is None:
        return {"tokens": Setting("estimate", estimate), "template_digest": None}
    return {
        "tokens": Setting("exact", counted),
        "tokenizer": Setting(renderer.name, "As the spec names it."),
        "tokenizer_digest": renderer.digest,
        "template_digest": renderer.template_digest,
    }


def about(columns: tuple[Col, ...]) -> Setting:
    return Setting({c.name: c.about for c in columns}, "What each column holds.")


def files(names: tuple[str, ...]) -> Setting:
    """split → its parquet file."""
    return Setting(
        {name.removesuffix(".parquet"): name for name in names if name.endswith(".parquet")},
        "The .jsonl files hold the same rows. `datasets` guesses their types from the first 10 MB: where a column is\n"
        "null that long, give it `features=` of the parquet file.",
    )


def order(in_order: bool) -> dict[str, Setting | Any]:
    """Arguments of a trainer that keep the order of `sort by`."""
    if not in_order:
        return {}
    return {"train_sampling_strategy": Setting("sequential", "The spec sorts the rows (`sort by`): no shuffling.")}
