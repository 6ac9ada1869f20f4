"""`dedup near` and `split … near` on the public path, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.semantics.tools import Bench, Record, record

WORDS = [f"w{i}" for i in range(60)]
HALVES = "{ train 50% validation 50% }"


def said(first: int, count: int) -> str:
    """Words in a row. Texts of 12 words have 10 shingles; shifted by two words they share 8 of 12."""
    return " ".join(WORDS[first : first + count])


def asked(text: str | None, **facts: Any) -> Record:
    return record({"role": "user", "content": text}, {"role": "assistant", "content": "done"}, **facts)


def dropped(bench: Bench, step: str, records: list[Record]) -> list[tuple[Any, ...]]:
    """(who, its key, its survivor) by record ids, and how many had no key."""
    done = bench.run(f"x: {step}", records)
    names = dict(done.start.rows.select("id", "record_id").iter_rows())
    entries = done.ledger.table().filter(action="dropped").select("traj_id", "key", "survivor", "reason").iter_rows()
    found: list[tuple[Any, ...]] = [(names[i], key, names[by], why) for i, key, by, why in entries]
    return [*sorted(found), done.ledger.counts[0].null_key]


CHAIN = [
    asked(said(0, 12), id="a", reward=1.0),
    asked(said(2, 12), id="b", reward=0.5),
    asked(said(4, 12), id="c", reward=0.0),
    asked(said(40, 12), id="far", reward=0.0),
]


def test_a_component_keeps_its_best_and_says_how_like_it_the_others_were(bench: Bench) -> None:
    found = dropped(bench, "dedup near on task_text threshold 0.6", CHAIN)
    assert found == [("b", "0.67", "a", "near duplicate"), ("c", "chain", "a", "near duplicate"), 0]
    found = dropped(bench, "dedup near on task_text threshold 0.6 best by reward", CHAIN)
    assert found == [("a", "chain", "c", "near duplicate"), ("b", "0.67", "c", "near duplicate"), 0]
    assert dropped(bench, "dedup near on task_text threshold 0.7", CHAIN) == [0]
    assert dropped(bench, 'dedup near on task_text threshold 0.7 because "once"', CHAIN) == [0]


def test_a_reason_of_ones_own(bench: Bench) -> None:
    found = dropped(bench, 'dedup near on task_text threshold 0.6 because "once is enough"', CHAIN[:2])
    assert found == [("b", "0.67", "a", "once is enough"), 0]


def test_texts_without_words_and_null_keys_are_left_alone_and_counted(bench: Bench) -> None:
    records = [
        asked("same words here", id="1", agent="p"),
        asked("SAME  words\nhere", id="2", agent="p"),
        asked("same words here", id="3", agent="q"),
        asked("same words here", id="4"),
        asked(" ", id="5", agent="p"),
        asked("", id="6", agent="p"),
        asked(None, id="7", agent="p"),
    ]
    survivors = bench.kept("x: dedup near on task_text threshold 0.9 over (agent)", records)
    assert sorted(survivors)[1:] == ["3", "4", "5", "6", "7"]
    assert dropped(bench, "dedup near on task_text threshold 0.9 over (agent)", records)[-1] == 4
    assert dropped(bench, "dedup near on task_text threshold 0.9", records)[-1] == 3


def parted(bench: Bench, records: list[Record], near: str) -> set[frozenset[str]]:
    """Which runs stand in one part for every seed. Other tasks see to it that no part is empty."""
    filler = [asked(said(15 + i, 4), id=f"f{i}", task_id=f"f{i}") for i in range(40)]
    found = []
    for seed in range(12):
        rows = bench.run(f"split by task {near} {HALVES} seed {seed}", [*records, *filler]).shared.rows
        found.append(dict(rows.select("record_id", "split").iter_rows()))
    histories = {r["id"]: tuple(one[r["id"]] for one in found) for r in records}
    return {frozenset(i for i, h in histories.items() if h == history) for history in histories.values()}


def test_near_texts_and_equal_keys_are_never_parted(bench: Bench) -> None:
    records = [
        asked(said(0, 12), id="a1", task_id="a"),
        asked("another text of a", id="a2", task_id="a"),
        asked(said(2, 12), id="b", task_id="b"),
        asked("another text of c", id="c1", task_id="c"),
        asked("another text of a", id="c2", task_id="c"),
        asked("something else entirely", id="d", task_id="d"),
    ]
    alone = {frozenset({"a1", "a2"}), frozenset({"b"}), frozenset({"c1", "c2"}), frozenset({"d"})}
    assert parted(bench, records, "") == alone
    together = {frozenset({"a1", "a2", "b", "c1", "c2"}), frozenset({"d"})}
    assert parted(bench, records, "near task_text 0.6") == together


def test_a_component_is_drawn_by_its_lowest_key(bench: Bench) -> None:
    """So the part of the lowest task is what it is without `near`."""
    records = [asked(said(0, 12), id="b", task_id="b"), asked(said(2, 12), id="a", task_id="a")]
    records += [asked(said(15 + i, 4), id=f"f{i}", task_id=f"f{i}") for i in range(40)]
    for seed in range(8):
        texts = (f"split by task {near} {HALVES} seed {seed}" for near in ("", "near task_text 0.6"))
        one, other = (dict(bench.run(t, records).shared.rows.select("record_id", "split").iter_rows()) for t in texts)
        assert other["a"] == other["b"] == one["a"]


@pytest.mark.parametrize("near", ["", "near task_text 0.5"])
def test_a_key_that_parts_a_task_is_an_error_still(bench: Bench, near: str) -> None:
    records = [asked("the same text", task_id="t", trial=i) for i in range(2)]
    assert bench.fails(f"split by trial {near} {HALVES} seed 1", records) == ["C0413"]
