"""A row as the trainer sees it, with the text that is trained marked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import polars as pl

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.answers import forms
from curatec.runtime.answers.lookup import find
from curatec.runtime.answers.output import Output

# Marks the trained part of a text: (text) → marked text.
Mark = Callable[[str], str]
_CONVERSATIONS = ("prompt", "messages", "chosen", "rejected")


def brackets(text: str) -> str:
    """How trained text is marked where there is no colour."""
    return f"⟦{text}⟧"


def examples(output: Output, name: str | None, sink: str | None) -> list[tuple[str, str]]:
    """(sink, example id) of all rows that a name stands for; of the first row of a sink without a name."""
    sinks = [output.sink(sink)] if sink is not None else list(output.sinks)
    if name is None:
        first = [(s, id_) for s in sinks if (id_ := _first(output, s)) is not None][:1]
        if not first:
            raise CuratecError.of("C0622", "there is no row to show", help="`curatec why OUT` says where all went")
        return first
    found = find(output, name)
    if found.example is not None and found.sinks:
        here = [(s, found.example) for s in found.sinks if s in sinks]
    else:
        made = [row for run in found.runs for row in output.below(run)]
        here = _rows_of(output, found.runs, sinks) or _rows_of(output, made, sinks)
    if not here:
        where = f"sink `{sink}`" if sink is not None else "any sink"
        help_ = f"`curatec why {output.root} {name}` says why"
        raise CuratecError.of("C0622", f"`{name}` has no row in {where}", help=help_)
    return sorted(here, key=lambda pair: (sinks.index(pair[0]), pair[1]))


def _rows_of(output: Output, ids: Sequence[str], sinks: Sequence[str]) -> list[tuple[str, str]]:
    """(sink, example id) of the rows that are, or that a sink made from, some runs or made rows."""
    kept = output.ledger.filter(
        pl.col("traj_id").is_in(ids) & (pl.col("action") == "kept") & pl.col("example_id").is_not_null()
    )
    pairs = dict.fromkeys(kept.select("sink", "example_id").iter_rows())
    pairs |= {(sink, example): None for sink in sinks for id_ in ids for example in output.made_from(id_, sink)}
    return [(sink, example) for sink, example in pairs if sink in sinks]


def _first(output: Output, sink: str) -> str | None:
    for _, path in output.tables(sink):
        ids = output.table(path.relative_to(output.root).as_posix(), ["example_id"])["example_id"]
        if len(ids):
            return str(ids[0])
    return None


def row(output: Output, sink: str, example: str) -> dict[str, Any]:
    """One row as JSON-ready data: messages and tools as objects, spans as in the file, and which file.

    "made" says what made it, last first, where it is no run as it was; "exact", how its tokens were counted.
    """
    found = output.row(sink, example)
    if found is None:
        help_ = "`curatec verify` says what else is off"
        raise CuratecError.of("C0624", f"`{example}` is in the ledger but not in the files of `{sink}`", help=help_)
    file, values = found
    return {
        "sink": sink,
        "file": file,
        "format": next(branch["format"] for branch in output.manifest["branches"] if branch["name"] == sink),
        "exact": output.sinks[sink]["exact"],
        "made": _made(output, sink, example),
        "row": {name: _value(name, value) for name, value in values.items()},
    }


def _value(name: str, value: Any) -> Any:
    if name in (*_CONVERSATIONS, "tools", "completion", "gold_calls", "steps") and isinstance(value, list):
        return [orjson.loads(text) if isinstance(text, str) else text for text in value]
    if name in ("gold", "meta", "reset", "agent", "extra") and isinstance(value, str):
        return orjson.loads(value)
    return value


def _made(output: Output, sink: str, id_: str) -> list[dict[str, Any]]:
    """What made a row: the sink, where it cuts or pairs runs, then the steps, back to the run."""
    found: list[dict[str, Any]] = []
    while (step := output.made.get(id_)) is None:
        own = output.lineage.filter(pl.col("out") == id_).sort("ordinal")
        if not own.height:
            return found
        parents = own["in"].to_list()
        found.append({"by": own["operator"][0], "label": None, "sink": sink, "from": parents})
        if len(parents) > 1:
            return found
        id_ = parents[0]
    while step is not None:
        found.append({"by": step.operator, "label": step.label, "sink": step.sink, "from": [step.parent]})
        step = output.made.get(step.parent)
    return found


# ---- as text ----


def lines(shown: dict[str, Any], mark: Mark) -> Iterator[str]:
    """The row for a reader."""
    values = shown["row"]
    yield from head(shown)
    said = forms.conversations(shown["format"], values) if "prompt" not in values else None
    if said is not None:
        for name, messages in said:
            yield from _named(name)
            yield from _whole_messages(messages, mark)
        return
    spans = values.get("trained")
    for name in _CONVERSATIONS:
        if isinstance(values.get(name), list) and not (name == "prompt" and "messages" in values):
            yield from _named(name if name != "messages" else None)
            whole = name in ("chosen", "rejected")
            yield from _conversation(values[name], spans if name == "messages" else None, mark if whole else None, mark)
    yield from _rest(values)


def head(shown: dict[str, Any]) -> Iterator[str]:
    """What row it is, where it comes from, what it shows of tools."""
    values = shown["row"]
    yield f"{shown['sink']} {values['example_id']}  ({shown['file']})"
    estimate = "" if shown["exact"] else " (estimate)"
    told = [f"task {values['task']}", f"source {values['source']}", f"{values['n_tokens']:,} tokens{estimate}"]
    if values["n_trained"]:
        told.append(f"{values['n_trained']:,} trained")
    yield "  " + " · ".join(told)
    for made in shown["made"]:
        label = f" ({made['label']})" if made["label"] else ""
        yield f"  made by {made['by']}{label} from {', '.join(made['from'])}"
    if not shown["made"] and values["parents"] != [values["example_id"]]:
        yield f"  from {', '.join(values['parents'])}"
    if names := forms.tool_names(values):
        yield "  tools " + ", ".join(names)


def _named(part: str | None) -> Iterator[str]:
    if part is not None:
        yield ""
        yield f"── {part} ──"


def _whole_messages(said: Sequence[forms.Shown], mark: Mark) -> Iterator[str]:
    """Messages of a format that trains all of one or nothing."""
    for number, (message, trained) in enumerate(said):
        yield ""
        yield f"[{number}] {message['role']}{_answers(message)}{'' if trained else '  (context)'}"
        yield from _message(message, [], mark if trained else None, mark)


def _rest(values: dict[str, Any]) -> Iterator[str]:
    for name in ("key", "value", "reward", "reset", "gold_calls", "gold_answers", "state_digest", "gold"):
        if values.get(name) is not None:
            yield ""
            value = values[name]
            yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _conversation(
    messages: list[dict[str, Any]], spans: list[dict[str, Any]] | None, whole: Mark | None, mark: Mark
) -> Iterator[str]:
    for number, message in enumerate(messages):
        own = [span for span in spans or () if span["message"] == number]
        yield ""
        yield f"[{number}] {message['role']}{_answers(message)}{'' if own or spans is None else '  (context)'}"
        yield from _message(message, own, whole if message["role"] == "assistant" else None, mark)


def _answers(message: dict[str, Any]) -> str:
    return f" {message['name']}" if message.get("name") else ""


def _message(message: dict[str, Any], spans: list[dict[str, Any]], whole: Mark | None, mark: Mark) -> Iterator[str]:
    reasoning = message.get("reasoning_content")
    if reasoning:
        yield f"  (reasoning) {_marked(reasoning, [s for s in spans if s['part'] == 'reasoning'], whole, mark)}"
    if message.get("content"):
        yield _indented(_marked(message["content"], [s for s in spans if s["part"] == "content"], whole, mark))
    for k, call in enumerate(message.get("tool_calls") or ()):
        trained = whole is not None or any(s["part"] == "call" and s["call"] == k for s in spans)
        text = f"{call['function']['name']}({_arguments(call['function']['arguments'])})"
        yield f"  → {mark(text) if trained else text}"


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _marked(text: str, spans: list[dict[str, Any]], whole: Mark | None, mark: Mark) -> str:
    if whole is not None:
        return whole(text)
    done, at = "", 0
    for span in sorted(spans, key=lambda s: int(s["start"])):
        done += text[at : span["start"]] + mark(text[span["start"] : span["end"]])
        at = span["end"]
    return done + text[at:]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
