"""The dataset card: OUT as a Hugging Face dataset, with the spec and the numbers behind it.

Everything comes from the manifest, and nothing from its `run`: two machines that compile the same spec over the same
records write the same card.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from curatec.runtime.report.text import environment, markdown, number, plural

# Identifiers that the Hub knows, by the names that people write. What is not here is `other`, with its name beside it.
_LICENSES = {
    "apache-2.0": ("apache-2.0", "apache 2.0", "apache license 2.0", "apache"),
    "mit": ("mit", "mit license"),
    "bsd-2-clause": ("bsd-2-clause",),
    "bsd-3-clause": ("bsd-3-clause",),
    "cc0-1.0": ("cc0-1.0", "cc0"),
    "cc-by-4.0": ("cc-by-4.0", "cc by 4.0"),
    "cc-by-sa-4.0": ("cc-by-sa-4.0", "cc by-sa 4.0"),
    "cc-by-nc-4.0": ("cc-by-nc-4.0", "cc by-nc 4.0"),
    "cc-by-nc-sa-4.0": ("cc-by-nc-sa-4.0",),
    "odc-by": ("odc-by", "odc-by-1.0"),
    "gpl-3.0": ("gpl-3.0", "gpl-3.0-only", "gpl-3.0-or-later"),
    "unlicense": ("unlicense",),
}
_HUB = {name: hub for hub, names in _LICENSES.items() for name in names}
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def render(summary: Mapping[str, Any]) -> str:
    """README.md of OUT, from the manifest without `run`."""
    made = environment(for_markdown=True)
    formats = {branch["name"]: branch["format"] for branch in summary["branches"]}
    sinks = [_sink(name, sink, formats[name], summary) for name, sink in summary["sinks"].items()]
    return made.get_template("card.md.jinja").render(
        front=_yaml(front_matter(summary)),
        s=summary,
        spec=fence(summary["spec"]["text"]),
        sinks=sinks,
        loadable=next((s for s in sinks if s["splits"]), None),
        sft=next((s for s in sinks if s["name"] == "sft" and s["splits"]), None),
        funnel=_funnel(summary),
        beside=beside(summary["side"]),
        families=_families(summary["redacted"]),
        sources=[_source(name, given) for name, given in summary["inputs"].items()],
        notes=list(_notes(summary)),
        records=sum(given["records"] for given in summary["inputs"].values()),
    )


# ---- front matter ----


def front_matter(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the Hub and `load_dataset` read: licence, tags, and one configuration for each sink."""
    total = sum(sum(sink["rows"].values()) for sink in summary["sinks"].values())
    return {
        "pretty_name": summary["strategy"],
        **license_of(summary),
        "task_categories": ["text-generation"],
        "tags": ["curatec", "agents", "tool-use", "trajectories", *summary["sinks"]],
        "size_categories": [next((name for bound, name in _SIZES if total < bound), "10M<n<100M")],
        **({"configs": made} if (made := configs(summary)) else {}),
    }


def license_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """One licence of all sources by its Hub identifier; else `other`, with all of them in its name."""
    listed = [given["licenses"] for given in summary["inputs"].values()]
    known = sorted({_HUB.get(name.lower(), name) for names in listed for name in names})
    if len(known) == 1 and all(listed) and known[0] in _LICENSES:
        return {"license": known[0]}
    names = [*known, *(["unknown"] if not all(listed) or not listed else [])]
    return {"license": "other", "license_name": "-and-".join(_slug(name) for name in names)}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "unnamed"


def configs(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`load_dataset(OUT, sink)`: the parquet file of each split. The first sink is what loads without a name."""
    made: list[dict[str, Any]] = []
    for name, sink in summary["sinks"].items():
        files = [{"split": split, "path": path} for split, path in splits_of(sink).items()]
        if files:
            made.append({"config_name": name, "data_files": files} | ({} if made else {"default": True}))
    return made


def splits_of(sink: Mapping[str, Any]) -> dict[str, str]:
    """Split → parquet file. `load_dataset` refuses a split without rows, so those are left out."""
    files = {PurePosixPath(path).stem: path for path in sink["files"] if path.endswith(".parquet")}
    # A memory has one file, named after what it is; its rows are all of train.
    sole = next(iter(files.values())) if len(files) == 1 else None
    found = {split: files.get(split, sole) for split, rows in sink["rows"].items() if rows}
    return {split: path for split, path in found.items() if path is not None}


def _yaml(value: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML()  # keeps the order of keys
    yaml.allow_unicode = True
    yaml.width = 1_000
    text = io.StringIO()
    yaml.dump(dict(value), text)
    return text.getvalue()


# ---- the body ----


def fence(text: str) -> str:
    """A code block that no run of backquotes inside can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}\n{text.rstrip(chr(10))}\n{marks}"


def _sink(name: str, sink: Mapping[str, Any], format_: str | None, summary: Mapping[str, Any]) -> dict[str, Any]:
    sums = summary["conservation"][name]
    return {
        "name": name,
        "format": format_,
        "lines": next((path for path in sink["files"] if path.endswith(".jsonl")), None),
        "rows": sum(sink["rows"].values()),
        "by_split": ", ".join(f"{split} {number(count)}" for split, count in sink["rows"].items()) or "none",
        "tokens": sink["tokens"],
        "trained": sink["trained_tokens"],
        "splits": splits_of(sink),
        "notes": sink["notes"],
        "lost": [("dropped", rule, n) for rule, n in sink["dropped"].items()]
        + [("rejected", reason, n) for reason, n in sink["rejected"].items()],
        "sums": sums,
    }


def _funnel(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Steps by branch, in the order in which they ran; shared ones first."""
    steps = [{"sink": None, **step, "why": "; ".join(_why(step))} for step in summary["steps"]]
    found = []
    for branch in dict.fromkeys(step["sink"] for step in steps):
        own = [step for step in steps if step["sink"] == branch]
        makes = any(step["created"] or step["replaced"] for step in own)
        found.append({"name": "all sinks" if branch is None else branch, "steps": own, "makes": makes})
    return found


def _why(step: Mapping[str, Any]) -> Iterable[str]:
    """The spec's reason, then what the counts alone do not say; Markdown."""
    if step.get("because"):
        yield markdown(step["because"])
    yield from (f"see {markdown(see)}" for see in step.get("see", ()))
    told = (
        ("edited", "turns or tools changed"),
        ("failed", "could not be made"),
        ("unmatched", "without a row in the table"),
        ("predicate_null", "without an answer"),
        ("null_key", "without a key"),
    )
    if step.get("again"):
        yield "once more, for what was made or changed since"
    yield from (f"{number(step[key])} {words}" for key, words in told if step[key])


def beside(side: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Tables and test sets: what it is, its name, what the manifest says of it."""
    kinds = (("table", side["tables"]), ("test set", side["test_sets"]))
    return [(kind, name, about) for kind, found in kinds for name, about in found.items()]


def _families(redacted: Iterable[Mapping[str, Any]]) -> list[tuple[str, int, int]]:
    """Family, values that gave way and rows that they stood in, over all steps that redact."""
    values, rows = Counter[str](), Counter[str]()
    for step in redacted:
        for family, found in step["families"].items():
            values[family] += found["values"]
            rows[family] += found["rows"]
    return [(family, values[family], rows[family]) for family in sorted(values)]


def _source(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "records": given["records"],
        "rejected": given["rejected"],
        "formats": ", ".join(given["formats"]),
        "license": ", ".join(given["licenses"]) or "unknown",
        "digest": given["digest"],
    }


def _notes(summary: Mapping[str, Any]) -> Iterable[str]:
    """What a reader must know before using the rows; one line each."""
    for name, given in summary["inputs"].items():
        if given["rejected"]:
            unread = plural(given["rejected"], "record")
            yield f"{unread} of source `{name}` could not be read; `rejects.jsonl` has each with its reason."
    unlicensed = [name for name, given in summary["inputs"].items() if not given["licenses"]]
    if unlicensed:
        names = ", ".join(f"`{name}`" for name in unlicensed)
        yield f"The licence of {names} is not known: neither the spec nor the records say it."
    yield from _about_made(summary)
    yield from _about_sealed(summary)
    for name, sink in summary["sinks"].items():
        for note in sink["notes"]:
            yield f"`{name}`: {note}"
    for lint in summary["lints"]:
        # Rejects are told above.
        if lint["code"] != "C0617":
            line = f" (line {lint['line']} of the spec)" if lint.get("line") else ""
            yield f"{lint['severity']} {lint['code']}: {lint['message']}{line}"


def _about_made(summary: Mapping[str, Any]) -> Iterable[str]:
    """Rows that are no recorded run as it was: which, and whose licence they have."""
    if not any(sums["created"] for sums in summary["conservation"].values()):
        return
    yield (
        "Rows that were made from runs name them in `parents`; `lineage.parquet` says how. The licence of such a row "
        "is that of its run, of a pair that of both."
    )
    for step in summary["steps"]:
        if step["created"] and len(summary["inputs"]) > 1 and re.search(r"\bpool:\s*all\b", step["text"]):
            yield f"Rows of `{step['label']}` also show schemas of tools from runs of other sources."


def _about_sealed(summary: Mapping[str, Any]) -> Iterable[str]:
    """What is kept out because it tests a model."""
    sets = summary["side"]["test_sets"]
    if not sets:
        return
    kept_out = {name: sink["dropped"].get("held_out", 0) for name, sink in summary["sinks"].items()}
    lost = ", ".join(f"`{name}` {number(n)}" for name, n in kept_out.items() if n)
    names = ", ".join(f"`{name}`" for name in sets)
    told = f"; the last check, at each sink, took out: {lost}" if lost else ""
    yield f"No row is of a task that a test set ({names}) names by its id{told}."
