"""The numbers of a page: one line for each source, step and sink of a manifest, in its order."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
HEAD = "| what | number |\n|---|---|\n"


def table(manifest: Json) -> str:
    """What a page shows of a compile, as Markdown."""
    lines = [*_sources(manifest), *_steps(manifest), *_sinks(manifest)]
    return HEAD + "".join(f"| {what} | {number} |\n" for what, number in lines)


def _sources(manifest: Json) -> list[tuple[str, str]]:
    return [(f"runs of `{name}`", f"{source['records']:,}") for name, source in manifest["inputs"].items()]


def _steps(manifest: Json) -> list[tuple[str, str]]:
    """Counts that are not zero; a split, a render and a derive change no row and are left out."""
    words = {
        "unmatched": "without a row in the table of `{}`",
        "dropped": "dropped by `{}`",
        "replaced": "replaced by `{}`",
        "created": "made by `{}`",
        "failed": "not possible in `{}`",
        "edited": "edited by `{}`",
    }
    return [
        (words[count].format(step["label"]), f"{step[count]:,}")
        for step in manifest["steps"]
        for count in words
        if step[count]
    ]


def _sinks(manifest: Json) -> list[tuple[str, str]]:
    found = []
    for name, sink in manifest["sinks"].items():
        about = "" if sink["exact"] else ", estimated"
        found += [(f"left out of `{name}`: {reason}", f"{n:,}") for reason, n in sorted(sink["dropped"].items())]
        found += [(f"rows of `{name}`: {part}", f"{n:,}") for part, n in sink["rows"].items()]
        found += [(f"tokens of `{name}`{about}", f"{sink['tokens']:,}")] if sink["tokens"] is not None else []
        if sink["trained_tokens"]:
            found.append((f"trained tokens of `{name}`{about}", f"{sink['trained_tokens']:,}"))
    return found
