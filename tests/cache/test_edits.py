"""One line of a spec is edited: what runs again, and that the output is what a compile without a cache writes."""

from __future__ import annotations

import pytest

from tests import every_step
from tests.cache.conftest import Desk
from tests.cli.conftest import SPEC, corpus, write_lines


@pytest.fixture
def small(desk: Desk, all_kept: None) -> Desk:
    """Compiled once."""
    desk.write("s.curate", SPEC)
    write_lines(desk.root / "runs" / "a.jsonl", corpus(6), broken='{"messages": [\n')
    desk.compile("s.curate")
    assert desk.ran == ("split_task", "crash", "short_tools", "once", "winners", "few", "lessons")
    return desk


EDITS = {
    "nothing": (SPEC, ()),
    "a comment": (SPEC.replace("strategy small", "# small\nstrategy small"), ()),
    "a label": (SPEC.replace("crash:", "noise:").replace("winners:", "good:"), ()),
    "a reason": (SPEC.replace("harness noise", "noise of the harness"), ()),
    "no reason": (SPEC.replace(' because "harness noise"', ""), ()),
    "a setting of a sink": (SPEC.replace('value concat(final_answer, "")', 'value concat(final_answer, "!")'), ()),
    "a step of a sink": (SPEC.replace("limit 2 per task", "limit 1 per task"), ("few",)),
    "the first step of a sink": (SPEC.replace("keep where success", "keep where reward > 0.5"), ("winners", "few")),
    "the last shared step": (
        SPEC.replace("on task, calls_text", "on task, text"),
        ("once", "winners", "few", "lessons"),
    ),
    "a shared step that edits turns": (
        SPEC.replace("content, 12", "content, 11"),
        ("short_tools", "once", "winners", "few", "lessons"),
    ),
    "a new step in front": (
        SPEC.replace("  crash:", "  all: keep where turn_count > 0\n  crash:"),
        ("all", "crash", "short_tools", "once", "winners", "few", "lessons"),
    ),
    "a fact from meta": (
        SPEC.replace("few: limit 2", "few: keep where meta.id is null or turn_count > 0\n    two: limit 2"),
        ("few", "two"),
    ),
    "a setting of the source": (
        SPEC.replace('r"^Error"', 'r"^Err"'),
        ("split_task", "crash", "short_tools", "once", "winners", "few", "lessons"),
    ),
    "a sink less": (SPEC[: SPEC.index("  emit memory")] + "  expect rows(sft) >= most - 1\n}\n", ()),
    "a sink more": (
        SPEC.replace("  expect", "  emit rl { hard: keep where pass_rate < 1\n reward 1.0 * call_format }\n  expect"),
        ("hard",),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_runs_again(small: Desk, edit: str) -> None:
    text, again = EDITS[edit]
    small.write("s.curate", text)
    small.compile("s.curate")
    assert small.ran == again
    warm = small.content()
    small.compile("s.curate", no_cache=True)
    assert small.ran != ()
    assert small.content() == warm


def test_a_spec_begins_from_what_another_left(small: Desk) -> None:
    """Sinks of one spec may be stages of another: what counts is what was done to rows."""
    other = SPEC.replace("strategy small", "strategy other").replace(
        "  emit sft {\n    winners: keep where success\n",
        "  stage good from shared { best: keep where success }\n  emit sft from good {\n",
    )
    small.write("other.curate", other)
    small.compile("other.curate", "elsewhere")
    assert small.ran == ()
    warm = small.content("elsewhere")
    small.compile("other.curate", "elsewhere", no_cache=True)
    assert small.content("elsewhere") == warm


def test_an_error_is_mended_from_where_it_stood(small: Desk) -> None:
    from curatec.dsl.diagnostics import CuratecError

    wrong = SPEC.replace("limit 2 per task", "limit 1 per task").replace("most - 1", "most + 99")
    small.write("s.curate", wrong)
    with pytest.raises(CuratecError, match="does not hold"):
        small.compile("s.curate")
    small.write("s.curate", wrong.replace("most + 99", "most - 1"))
    small.compile("s.curate")
    assert small.ran == ()


EVERY = {
    "nothing": every_step.SPEC,
    "labels": every_step.SPEC.replace("known:", "labelled:").replace("each_decision:", "each:"),
    "label of copies": every_step.SPEC.replace("renamed:", "other_names:"),
    "redact less": every_step.SPEC.replace("redact pii, secrets in all", "redact pii in all"),
    "another tokenizer-counted bound": every_step.SPEC.replace("fit 560 tokens", "fit 500 tokens"),
    "no sealed set": every_step.SPEC.replace("decontaminate against bench", "decontaminate against kept_back"),
    "meta": every_step.SPEC.replace("keep where not success", "keep where not success and meta.x is null"),
}


@pytest.mark.usefixtures("all_kept")
def test_every_step(desk: Desk) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    every_step.write(desk.root)
    for text in EVERY.values():
        desk.write("every_step.curate", text)
        desk.compile("every_step.curate", "cold", no_cache=True)
        everything = desk.ran
        for _ in range(2):
            desk.compile("every_step.curate")
            assert desk.content() == desk.content("cold"), text
        assert desk.ran == ()
        assert len(everything) > 10


@pytest.mark.usefixtures("all_kept")
def test_side_data_counts_where_it_is_read(desk: Desk) -> None:
    """A table is read by its join, a test set by every sink: what comes before is kept."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    every_step.write(desk.root)
    desk.compile("every_step.curate")
    items = desk.root / "side" / "kept_back.json"
    items.write_text('[{"task_id": "t32"}]', encoding="utf-8")
    desk.compile("every_step.curate")
    assert "sealed" not in desk.ran
    assert "held_out" in desk.ran
    warm = desk.content()
    desk.compile("every_step.curate", no_cache=True)
    assert desk.content() == warm
    table = desk.root / "side" / "verdicts.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("true", "false"), encoding="utf-8")
    desk.compile("every_step.curate")
    assert desk.ran[0] == "known"


def test_engines_share_what_is_kept(small: Desk) -> None:
    """One begins where the other stopped."""
    small.write("s.curate", SPEC.replace("limit 2 per task", "limit 1 per task"))
    small.compile("s.curate", engine="duckdb")
    assert small.ran == ("few",)
    warm = small.content()
    small.compile("s.curate", no_cache=True)
    assert small.content() == warm
    small.compile("s.curate", no_cache=True, engine="duckdb")
    assert small.content() == warm
