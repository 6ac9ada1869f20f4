"""`redact` as a step: what each scope means, the ledger, the loss, and what a reward's inputs say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.redaction import Finder
from tests.sinks.conftest import Made, Make, Record, calls, result, run, says, system, trained_texts, user, write_jsonl

pytestmark = pytest.mark.usefixtures("parts")
_SFT = "emit sft { format openai loss on assistant }"
_ADDRESSES = {name: f"{name}@example.com" for name in ("ann", "bob", "cat", "dan", "eve")}


def _conversation(task: str = "1") -> Record:
    """An address of its own for each place, and Ann's everywhere."""
    a = _ADDRESSES
    return run(
        task,
        system(f"Ask {a['bob']} or {a['ann']}."),
        user(f"I am {a['ann']}."),
        calls(("c1", "find", {"email": a["ann"], "cc": a["cat"]}), reasoning_content=f"{a['ann']}, not {a['eve']}."),
        result("c1", f"{a['dan']} {a['ann']}"),
        says("All done."),
    )  # fmt: skip


def _spec(scope: str, families: str = "pii", more: str = _SFT) -> str:
    return f'mask: redact {families} in {scope} because "policy" {more}'


def _edits(made: Made) -> list[tuple[Any, ...]]:
    steps = (pl.col("action") == "edited") & pl.col("step").is_not_null()
    rows = made.executed.ledger.table().filter(steps).sort("traj_id", "turn", "key")
    return rows.select("turn", "label", "reason", "key", "n").rows()


def _messages(made: Made, task: str = "1") -> dict[str, str]:
    """The texts of a conversation by place."""
    messages = made.task("sft", task)["messages"]
    call = messages[2]["tool_calls"][0]["function"]["arguments"]
    return {
        "system": messages[0]["content"],
        "content": messages[1]["content"],
        "reasoning": messages[2]["reasoning_content"],
        "arguments": call if isinstance(call, str) else orjson.dumps(call).decode(),
        "results": messages[3]["content"],
    }


def test_everything(made: Make) -> None:
    done = made([_conversation()], _spec("all"))
    assert _messages(done) == {
        "system": "Ask [EMAIL_1] or [EMAIL_2].",
        "content": "I am [EMAIL_2].",
        "reasoning": "[EMAIL_2], not [EMAIL_3].",
        "arguments": '{"email":"[EMAIL_2]","cc":"[EMAIL_4]"}',
        "results": "[EMAIL_5] [EMAIL_2]",
    }
    done.conserved("sft")


@pytest.mark.parametrize("scope", ["system", "content", "reasoning", "arguments", "results"])
def test_a_scope_leaves_all_else(made: Make, scope: str) -> None:
    plain = _messages(made([_conversation()], _SFT, name="plain"))
    done = _messages(made([_conversation()], _spec(scope)))
    assert "@" not in done[scope]
    assert {place: text for place, text in done.items() if place != scope} == {
        place: text for place, text in plain.items() if place != scope
    }


def test_the_ledger_counts_by_turn_and_kind(made: Make) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    record = run("1", user(f"ann@example.com, bob@example.com, {key}"), says("Hello."), user("8.8.8.8"), says("Bye."))
    done = made([record], _spec("all", "pii, secrets"))
    assert _edits(done) == [
        (0, "mask", "policy", "pii.email", 2),
        (0, "mask", "policy", "secrets.aws_key", 1),
        (2, "mask", "policy", "pii.ip", 1),
    ]
    [count] = [count for count in done.executed.ledger.counts if count.label == "mask"]
    assert (count.entered, count.left, count.edited) == (1, 1, 2)


def test_a_turn_that_was_redacted_carries_no_loss(made: Make) -> None:
    record = run("1", user("Who?"), says("It is ann@example.com."), user("Sure?"), says("Yes."))
    plain = made([record], _spec("all"), name="plain")
    assert trained_texts(plain.texts("sft")[0]) == [(3, "content", "Yes.")]
    included = made(
        [record], _spec("all", more="emit sft { format openai loss on assistant including edited }"), name="included"
    )
    assert trained_texts(included.texts("sft")[0]) == [(1, "content", "It is [EMAIL_1]."), (3, "content", "Yes.")]


def test_runs_do_not_share_placeholders(made: Make) -> None:
    records = [run(str(i), user(f"I am user{i}@example.com."), says("Hi.")) for i in range(12)]
    done = made(records, _spec("all"), files=3)
    assert {row["messages"][0]["content"] for row in done.rows("sft")} == {"I am [EMAIL_1]."}


def test_later_steps_see_what_is_left(made: Make) -> None:
    done = made([_conversation()], _spec("all", more=f'none: drop where any(turns where content ~ "@") {_SFT}'))
    assert len(done.rows("sft")) == 1
    before = made([_conversation()], f'none: drop where any(turns where content ~ "@") {_SFT}', name="before")
    assert before.written["sft"].dropped == {} or not before.rows("sft")


def test_redacting_again_changes_nothing(made: Make) -> None:
    once = made([_conversation()], _spec("all"), name="once")
    twice = made([_conversation()], _spec("all", more=f"again: redact pii in all {_SFT}"), name="twice")
    assert _messages(once) == _messages(twice)
    assert {label for _, label, *_ in _edits(twice)} == {"mask"}


def test_arguments_that_are_no_json(made: Make) -> None:
    record = run("1", user("Go."), calls(("c1", "find", "{email: ann@example.com")), result("c1"), says("Done."))
    done = made([record], _spec("all"))
    turns = pl.concat(frames.turns for _, frames in done.executed.ends["sft"].batches())
    [call] = turns.filter(pl.col("calls").list.len() > 0)["calls"].explode().struct.field("args_raw").to_list()
    assert call == "{email: [EMAIL_1]"


def test_parts_of_a_message(made: Make) -> None:
    parts = [{"type": "text", "text": "I am ann@example.com."}, {"type": "text", "text": "And bob@example.com."}]
    done = made([run("1", {"role": "user", "content": parts}, says("Hi."))], _spec("content"))
    assert done.rows("sft")[0]["messages"][0]["content"] == "I am [EMAIL_1].\n\nAnd [EMAIL_2]."
    turns = pl.concat(frames.turns for _, frames in done.executed.ends["sft"].batches())
    assert [part["text"] for part in turns["parts"][0]] == ["I am [EMAIL_1].", "And [EMAIL_2]."]
    assert _edits(done) == [(0, "mask", "policy", "pii.email", 2)]


# ---- a reward's inputs ----

_RL = "emit rl { reward state_match }"
_GOLD = [{"name": "find", "arguments": {"email": "ann@example.com", "n": 7}}]


def test_gold_and_meta_do_not_leak(made: Make) -> None:
    record = run(
        "1",
        user("I am ann@example.com."),
        says("Hi."),
        gold=_GOLD,
        note={"by": "ann@example.com", "to": "bob@example.com"},
    )
    [plain] = made([record], _RL, name="plain").rows("rl")
    assert "ann@example.com" in plain["meta"]
    assert "ann@example.com" in plain["gold"]
    done = made([record], _spec("all", more=_RL))
    [row] = done.rows("rl")
    assert orjson.loads(row["gold"]) == [{"name": "find", "arguments": {"email": "[EMAIL_1]", "n": 7}}]
    assert orjson.loads(row["meta"]) == {"note": {"by": "[EMAIL_1]", "to": "[EMAIL_2]"}}
    assert row["prompt"] == [{"role": "user", "content": "I am [EMAIL_1]."}]
    assert "@" not in orjson.dumps(row).decode()
    assert _edits(done) == [(None, "mask", "policy", "pii.email", 3), (0, "mask", "policy", "pii.email", 1)]


def test_a_narrower_scope_leaves_the_record(made: Make) -> None:
    record = run("1", user("I am ann@example.com."), says("Hi."), gold=_GOLD, note="ann@example.com")
    [row] = made([record], _spec("content", more=_RL)).rows("rl")
    assert "ann@example.com" in row["meta"]


def test_a_sink_of_its_own_redacts_for_itself(made: Make) -> None:
    record = run("1", user("I am ann@example.com."), says("Hi."), gold=_GOLD, note="ann@example.com")
    done = made([record], f"emit rl {{ mask: redact pii in all reward state_match }} {_SFT}")
    assert "@" not in orjson.dumps(done.rows("rl")).decode()
    assert done.rows("sft")[0]["messages"][0]["content"] == "I am ann@example.com."


def test_no_sink_leaks(made: Make) -> None:
    sinks = """
      emit sft { format openai loss on assistant }
      emit rl { reward state_match }
      emit memory { key task_text value final_answer }
      emit preference { pair within task chosen where success rejected where not success }
    """
    records = [
        run(
            "1",
            user("I am ann@example.com."),
            says("Wait."),
            user("And?"),
            says(f"Hi, ann@example.com, {i}."),
            success=i % 2 == 0,
            gold=_GOLD,
            note="ann@example.com",
        )
        for i in range(4)
    ]
    plain = made(records, sinks, name="plain")
    done = made(records, _spec("all", more=sinks))
    for sink in ("sft", "rl", "memory", "preference"):
        files = [file for file in (done.out / sink).rglob("*.jsonl") if file.stat().st_size]
        assert files
        assert all(b"ann@example.com" not in file.read_bytes() for file in files)
        assert any(b"ann@example.com" in (plain.out / sink / file.name).read_bytes() for file in files)


# ---- what can go wrong ----


def test_a_library_that_fails_is_named(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, member: str | None) -> Any:
        raise ValueError(f"cannot read {text}")

    def finder(self: Finder, families: Any) -> None:
        self._recognisers, self._known = (broken,), {}

    monkeypatch.setattr(Finder, "__init__", finder)
    with pytest.raises(CuratecError) as raised:
        made([_conversation()], _spec("all"))
    [told] = raised.value.diagnostics
    assert told.code == "C0503"
    assert "ValueError" in told.message
    assert "example.com" not in told.message


def test_without_the_extra_the_message_says_how_to_get_it(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "runs.jsonl", [_conversation()])
    spec = f'curate 1\nsource runs {{ path "runs.jsonl" }}\nstrategy s {{\n  from runs\n  {_spec("all")}\n}}\n'
    (tmp_path / "spec.curate").write_text(spec)
    program = (
        "import sys; sys.modules['phonenumbers'] = None; from curatec.runtime.cli import main;"
        "sys.argv = 'curatec compile spec.curate -o out --no-cache'.split(); main()"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error[C0502]: `redact` needs a library that is not installed: phonenumbers" in done.stderr
    assert "help: install it: pip install 'curatec[redact]'" in done.stderr
    assert "spec.curate:5" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_libraries_are_loaded_only_when_asked() -> None:
    program = "import sys, curatec.runtime.steps, curatec.runtime.cli; print(sorted(sys.modules))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not any(f"'{name}'" in said for name in ("phonenumbers", "detect_secrets", "stdnum", "email_validator"))
