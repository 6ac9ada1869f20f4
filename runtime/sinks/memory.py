"""`emit memory`: lessons to retrieve, from tasks of the training split only (semantics 27)."""

from __future__ import annotations

import polars as pl

from curatec.compiler import plan
from curatec.runtime.side import side_of
from curatec.runtime.side.leaks import TEXTS, Finder
from curatec.runtime.sinks import trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import Buckets
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.measure import Measure
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.written import Written

COLUMNS = (
    *COMMON,
    Col("key", "text", "what is searched"),
    Col("value", "text", "what is shown when it is found"),
)


def write(place: Place, target: plan.Memory) -> Written:
    """Files, ledger rows and account of a memory sink. A key or value of mere white space counts as null."""
    state, (keys, values) = place.state.values([target.key, target.value])
    buckets, account, measure = Buckets(place.scratch), Account(), Measure(state.renderer)
    leaking = _leaking(place, keys, values)
    about = state.rows.select("id", "origin", "source", "license", "task").iter_rows()
    for (id_, origin, source, license_, task), key, value, leaks in zip(about, keys, values, leaking, strict=True):
        rule = _rule(place.splits[id_], key, value, leaks)
        if rule is not None:
            account.drop(id_, rule)
            continue
        n_tokens = measure.texts((key, value))
        account.keep(id_, "train", n_tokens, 0)
        row = {
            "example_id": id_,
            "parents": [origin],
            "source": source,
            "license": license_,
            "task": task,
            "split": "train",
            "n_tokens": n_tokens,
            "n_trained": 0,
            "key": key,
            "value": value,
        }
        buckets.add(place.positions[id_], row)
    with Files(place.folder, COLUMNS, always="memory") as files:
        files.add_rows((row for _, row in buckets), stem="memory")
    settings = {
        "files": trainer.files(files.names),
        "retrieve": {"method": target.method, "top": target.top},
        **trainer.tokens(state.renderer, "n_tokens is UTF-8 bytes / 4: no tokenizer is named.", "Of key and value."),
        "columns": trainer.about(COLUMNS),
    }
    names = (*files.names, trainer.write(place.folder, settings))
    sums = account.close(place.ledger, place.name)
    return Written(
        place.name,
        place.named(names),
        sums.rows,
        state.rows.height,
        sums.dropped,
        sums.rejected,
        tokens=sums.tokens,
        exact=state.renderer is not None,
    )


def _leaking(place: Place, keys: pl.Series, values: pl.Series) -> list[bool]:
    """Which entries say something of a test set that a step above `decontaminate`s against: a key or a value may be
    made of what no turn says in these words."""
    row = pl.int_range(len(keys), dtype=pl.UInt32, eager=True)
    texts = pl.concat([pl.DataFrame({"row": row, "text": column, "said": True}) for column in (keys, values)])
    found: set[int] = set()
    for step in place.steps():
        if isinstance(step.operation, plan.Decontaminate):
            finder = Finder.of(side_of(place.state).sealed[step.operation.against], step.operation.ngram)
            found.update(finder.find(texts.cast(TEXTS)))
    return [i in found for i in range(len(keys))]


def _rule(split: str, key: str | None, value: str | None, leaks: bool) -> str | None:
    """Why a row is no memory, or null."""
    if split != "train":
        return "validation_task"
    if leaks:
        return "leaks_test_set"
    if key is None or not key.strip():
        return "null_key"
    return "null_value" if value is None or not value.strip() else None
