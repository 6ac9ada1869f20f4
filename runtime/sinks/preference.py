"""`emit preference`: two continuations of one prompt, one better than the other.

Two passes over the turns: the first leaves fingerprints of runs that may have a partner (`pairs` finds the pairs on
those), the second reads the texts of runs that are in a pair; halves of a pair meet in the buckets of the sort.

A continuation runs to its last assistant message. The prompt is the chosen run's; the rejected one's is equal but for
ids of calls. `source` and `task` are those of the chosen run; a license is given where both are known.

After `render`, a run that the template refuses is rejected before anything pairs, a pair whose prompt it refuses then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl
from xxhash import xxh3_128_hexdigest

from curatec.compiler import plan
from curatec.runtime import targets
from curatec.runtime.conversation import messages as m
from curatec.runtime.ledger import LINEAGE
from curatec.runtime.sinks import pairs, trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import Buckets
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.measure import Measure
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.written import Written
from curatec.runtime.state import State

SIDES = (
    Col("n_chosen", "int", "tokens of the prompt with the better continuation"),
    Col("n_rejected", "int", "tokens of the prompt with the worse continuation"),
    Col("margin", "float", "the value of `margin`, chosen less rejected; null where the spec has none"),
)


def columns(target: plan.Preference) -> tuple[Col, ...]:
    return (*COMMON, *targets.columns(targets.target(target.format), "preference"), *SIDES)


@dataclass
class _Sink:
    """One sink while it is written. `longest` is the most tokens of a prompt with one of its continuations."""

    place: Place
    target: plan.Preference
    format: targets.Target
    tools: m.Tools
    measure: Measure
    longest: int = 0
    account: Account = field(default_factory=Account)


def write(place: Place, target: plan.Preference) -> Written:
    """Files, ledger rows and account of a preference sink."""
    format_ = targets.target(target.format)
    measure = Measure(place.state.renderer, format_.form)
    sink = _Sink(place, target, format_, m.Tools(place.state.toolsets), measure)
    found, lost = pairs.find(_fingerprinted(sink, _sides(sink)), target)
    for id_, reason in lost.items():
        sink.account.drop(id_, reason)
    with Files(place.folder, columns(target)) as files:
        files.add_rows(_rows(sink, found))
    names = (*files.names, trainer.write(place.folder, _settings(sink, trainer.files(files.names))))
    return _written(sink, found, names)


# ---- first pass: who may pair ----


def _sides(sink: _Sink) -> dict[str, pairs.Side]:
    """The runs that are on a side and have a key; the others are dropped."""
    target, account, place = sink.target, sink.account, sink.place
    margins = [target.margin] if target.margin is not None else []
    cores = [*target.within, target.chosen, target.rejected, *margins, *target.max_per]
    state, values = place.state.values(cores)
    n = len(target.within)
    found: dict[str, pairs.Side] = {}
    about = state.rows.select("id", "origin", "toolset").iter_rows()
    for (id_, origin, toolset), *row in zip(about, *(v.to_list() for v in values), strict=True):
        group, (chosen, rejected), rest = tuple(map(_key, row[:n])), row[n : n + 2], row[n + 2 :]
        score, quota = rest[0] if margins else None, tuple(map(_key, rest[len(margins) :]))
        if not (chosen or rejected):
            account.drop(id_, "neither_side")
        elif None in group:
            account.drop(id_, "null_key")
        else:
            found[id_] = pairs.Side(
                id_,
                origin,
                place.positions[id_],
                group,
                place.splits[id_],
                toolset,
                bool(chosen),
                bool(rejected),
                score,
            )
            found[id_].quota = None if None in quota else quota
    return found


def _key(value: Any) -> Any:
    """Lists are keys as well (`tool_names`)."""
    return tuple(value) if isinstance(value, list) else value


def _fingerprinted(sink: _Sink, sides: dict[str, pairs.Side]) -> Iterator[pairs.Side]:
    """The sides with the hashes of their messages; what cannot be said is rejected."""
    for run, shown in _conversations(sink, sides):
        id_ = run["id"]
        if not shown:
            sink.account.drop(id_, "no_turns")
            continue
        fault = m.fault_of(shown, may_end_on_call=True) or sink.tools(run["toolset"])[1] or _refused(sink, run, shown)
        if fault is not None:
            sink.account.reject(id_, fault)
            continue
        sides[id_].take(shown, sink.format.form)
        yield sides[id_]


def _refused(sink: _Sink, run: dict[str, Any], shown: list[m.Message]) -> str | None:
    """Why the template shows no such conversation."""
    if sink.place.state.renderer is None:
        return None
    told = sink.measure.conversation(shown, sink.tools(run["toolset"])[0])
    return told if isinstance(told, str) else None


def _conversations(
    sink: _Sink, ids: Sequence[str] | dict[str, Any]
) -> Iterator[tuple[dict[str, Any], list[m.Message]]]:
    """Some runs with their messages up to the last assistant's, part by part."""
    state: State = sink.place.state
    some = state.keep(state.rows["id"].is_in(pl.Series(list(ids), dtype=pl.String).implode()))
    for _, frames in some.batches(m.TURN_COLUMNS):
        runs = frames.runs.select("id", "origin", "source", "license", "task", "toolset").to_dicts()
        for run, turns in zip(runs, m.by_run(m.turn_rows(frames.turns), len(runs)), strict=True):
            shown = m.messages_of(turns, sink.format.form)
            last = max((i for i, message in enumerate(shown) if message.role == "assistant"), default=-1)
            yield run, shown[: last + 1]


# ---- second pass: rows ----


def _rows(sink: _Sink, found: Sequence[pairs.Pair]) -> Iterator[dict[str, Any]]:
    """The rows of the pairs, in their order."""
    places: dict[str, list[tuple[int, int]]] = {}
    for i, pair in enumerate(found):
        places.setdefault(pair.chosen.id, []).append((2 * i, pair.start))
        places.setdefault(pair.rejected.id, []).append((2 * i + 1, pair.start))
    buckets = Buckets(sink.place.scratch)
    for run, shown in _conversations(sink, places):
        for position, start in places[run["id"]]:
            buckets.add(position, _half(sink, run, shown, start, is_chosen=position % 2 == 0))
    halves = iter(buckets)
    for pair, (_, chosen), (_, rejected) in zip(found, halves, halves, strict=True):
        row = _row(sink, pair, chosen, rejected)
        if row is not None:
            yield row


def _half(sink: _Sink, run: dict[str, Any], shown: list[m.Message], start: int, *, is_chosen: bool) -> dict[str, Any]:
    """One side of a pair; the chosen one brings the prompt. The sort keeps messages, named tuples, as lists."""
    tools = sink.tools(run["toolset"])[0]
    return {
        **run,
        "prompt": shown[:start] if is_chosen else [],
        "continuation": shown[start:],
        "prompt_tokens": sink.measure.prompt(shown[:start], tools) if is_chosen else 0,
        "tokens": sink.measure.conversation(shown, tools),
    }


def _row(sink: _Sink, pair: pairs.Pair, chosen: dict[str, Any], rejected: dict[str, Any]) -> dict[str, Any] | None:
    """The row of a pair; null where the template refuses its prompt, or the format the pair."""
    id_, split = pair_id(chosen["id"], rejected["id"]), sink.place.splits[chosen["id"]]
    n_prompt, n_chosen, n_rejected = chosen["prompt_tokens"], chosen["tokens"], rejected["tokens"]
    tools = sink.tools(chosen["toolset"])[0]
    prompt, better, worse = (
        msgspec.convert(said, list[m.Message])
        for said in (chosen["prompt"], chosen["continuation"], rejected["continuation"])
    )
    about = {name: chosen[name] for name in ("id", "source", "task")} | {"split": split}
    said = targets.pair(sink.format, prompt, better, worse, tools, about)
    refused = n_prompt if isinstance(n_prompt, str) else said if isinstance(said, str) else None
    if refused is not None or isinstance(said, str):
        sink.account.reject(id_, refused or "")
        return None
    n_trained = n_chosen + n_rejected - 2 * n_prompt
    sink.account.keep(id_, split, n_prompt + n_trained, n_trained)
    sink.longest = max(sink.longest, n_chosen, n_rejected)
    apart = pairs.margin(pair.chosen, pair.rejected)
    return {
        "example_id": id_,
        "parents": [chosen["origin"], rejected["origin"]],
        "source": chosen["source"],
        "license": _license(chosen["license"], rejected["license"]),
        "task": chosen["task"],
        "split": split,
        "n_tokens": n_prompt + n_trained,
        "n_trained": n_trained,
        **said,
        "n_chosen": n_chosen,
        "n_rejected": n_rejected,
        "margin": None if apart is None else float(apart),
    }


def pair_id(chosen: str, rejected: str) -> str:
    """The id of a pair, from those of its runs in order."""
    return "pair-" + xxh3_128_hexdigest(f"{chosen}\0{rejected}".encode())[:16]


def _license(chosen: str | None, rejected: str | None) -> str | None:
    if chosen is None or rejected is None:
        return None
    return " AND ".join(dict.fromkeys((chosen, rejected)))


# ---- account ----


def _written(sink: _Sink, found: Sequence[pairs.Pair], names: tuple[str, ...]) -> Written:
    """Runs in a pair are replaced by pairs, which are created and kept."""
    place, account = sink.place, sink.account
    ids = [pair_id(pair.chosen.id, pair.rejected.id) for pair in found]
    parents = [(pair.chosen.id, pair.rejected.id) for pair in found]
    uses: dict[str, int] = {}
    for id_ in (id_ for both in parents for id_ in both):
        uses[id_] = uses.get(id_, 0) + 1
    created = pl.Series(ids, dtype=pl.String)
    place.ledger.add(created, "created", example_id=created, sink=place.name, reason="pair")
    counts = pl.Series(list(uses.values()), dtype=pl.Int64)
    place.ledger.add(list(uses), "replaced", sink=place.name, reason="pair", n=counts)
    sums = account.close(place.ledger, place.name)
    lineage = pl.DataFrame(
        {
            "out": [id_ for id_ in ids for _ in range(2)],
            "in": [id_ for both in parents for id_ in both],
            "operator": ["pair"] * (2 * len(ids)),
            "ordinal": [0, 1] * len(ids),
        },
        schema=LINEAGE,
    )
    return Written(
        place.name,
        place.named(names),
        sums.rows,
        place.state.rows.height,
        sums.dropped,
        sums.rejected,
        created=len(ids),
        replaced=len(uses),
        tokens=sums.tokens,
        trained_tokens=sums.trained_tokens,
        exact=place.state.renderer is not None,
        lineage=lineage,
    )


def _settings(sink: _Sink, files: trainer.Setting) -> dict[str, trainer.Setting | Any]:
    renderer = sink.place.state.renderer
    longest = f"TRL cuts rows at 1024 tokens unless told. The longest side with its prompt has {sink.longest:,}"
    return {
        "trainer": "trl.DPOTrainer" if sink.target.format in targets.CHATS else sink.target.format,
        "format": trainer.about_format(sink.target.format),
        "files": files,
        "mask": trainer.Setting(
            "continuation",
            "TRL scores all of `chosen` and `rejected`, results of tools and later user messages included;\n"
            "n_trained counts the same.",
        ),
        **trainer.tokens(renderer, _ESTIMATE, _EXACT),
        "args": {
            "max_length": trainer.Setting(None, longest + (" (estimate)." if renderer is None else ".")),
            **trainer.order(sink.place.sorted),
            "remove_unused_columns": True,
        },
        "columns": trainer.about(columns(sink.target)),
    }


_ESTIMATE = "Numbers of tokens are UTF-8 bytes / 4: no tokenizer is named."
_EXACT = """\
Counted in the text that the template writes, tools included. n_tokens is prompt, chosen and rejected, each once."""
