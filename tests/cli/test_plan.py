"""`curatec plan`: what steps that make rows would cost, what they need, what changed beside the spec."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import every_step
from tests.cli.conftest import SPEC, Place, corpus, write_lines
from tests.cli.test_show import tokenizer

DECOMPOSE = """curate 1
source r {{ path "runs/*.jsonl" }}
strategy s {{
  from r
  emit sft {{ each: decompose at calls is not empty {context} loss on assistant }}
}}
"""
SHORT = "context { system, task, last 1 results, all calls }"


def size(message: every_step.Json) -> int:
    """UTF-8 bytes of what a message says."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    said = [message.get("content") or "", *(call["name"] + call["arguments"] for call in calls)]
    return sum(len(text.encode()) for text in said)


def test_full_prefixes_are_as_long_as_it_says(tmp_path: Path) -> None:
    runs = [*every_step.records(), *corpus(4, tool="é東" * 50)]
    write_lines(tmp_path / "runs" / "a.jsonl", runs)
    (tmp_path / "s.curate").write_text(DECOMPOSE.format(context=""), encoding="utf-8")
    place = Place(tmp_path)
    whole = repeated = 0
    for run in runs:
        so_far = 0
        for message in run["messages"]:
            so_far += size(message)
            repeated += so_far if message["role"] == "assistant" else 0
        whole += so_far
    ran = " ".join(place("plan", "s.curate").out.split())
    assert f"each: full prefixes are up to {repeated / whole:.3g} times the bytes of the runs" in ran
    assert "`context { system, task, last 3 results, all calls }`" in ran
    assert place("plan", "s.curate", "--json").json["notes"][0].startswith("each: full prefixes")
    # What was suggested is what the language says, and then there is nothing to say.
    suggested = re.search(r"`(context \{.*?\})`", ran)
    assert suggested
    (tmp_path / "s.curate").write_text(DECOMPOSE.format(context=suggested[1]), encoding="utf-8")
    assert place("plan", "s.curate", "--json").json["notes"] == []


def test_short_runs_grow_little(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "x" * 100}, {"role": "assistant", "content": "yes"}]
    write_lines(tmp_path / "runs" / "a.jsonl", [{"messages": messages}])
    (tmp_path / "s.curate").write_text(DECOMPOSE.format(context=""), encoding="utf-8")
    [note] = Place(tmp_path)("plan", "s.curate", "--json").json["notes"]
    assert note == "each: full prefixes are up to 1 times the bytes of the runs"


def test_the_context_of_the_sink_will_do(tmp_path: Path) -> None:
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(2))
    spec = (
        DECOMPOSE.format(context="")
        .replace("  emit sft {", "  stage d from shared {")
        .replace("loss on assistant ", "")
    )
    spec = spec.rstrip().removesuffix("}") + f"  emit sft from d {{ {SHORT} loss on assistant }}\n}}\n"
    (tmp_path / "s.curate").write_text(spec, encoding="utf-8")
    assert Place(tmp_path)("plan", "s.curate", "--json").json["notes"] == []


@pytest.mark.parametrize(
    ("module", "extra", "word"), [("tokenizers", "render", "render"), ("phonenumbers", "redact", "redact")]
)
def test_what_is_not_installed_is_told_before(tmp_path: Path, module: str, extra: str, word: str) -> None:
    every_step.write(tmp_path)
    without = tmp_path / "without"
    without.mkdir()
    (without / f"{module}.py").write_text(f"raise ImportError('not here', name='{module}')\n", encoding="utf-8")
    place = Place(tmp_path)
    ran = place("plan", "every_step.curate", PYTHONPATH=str(without))
    assert "warning[C0502]" in ran.err
    assert f"`{word}` needs" in ran.err
    assert f"pip install 'curatec[{extra}]'" in ran.err
    assert "C0502" in place("compile", "every_step.curate", code=1, PYTHONPATH=str(without)).err
    data = place("plan", "every_step.curate", "--json", PYTHONPATH=str(without)).json
    assert [d["code"] for d in data["diagnostics"] if d["code"] == "C0502"] == ["C0502"]


def test_another_tokenizer_under_the_same_name_is_a_change(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "small.curate").write_text(SPEC.replace("  crash:", '  render "mine"\n  crash:'), encoding="utf-8")
    write_lines(tmp_path / "runs" / "a.jsonl", corpus(3))
    tokenizer(tmp_path / "mine")
    place = Place(tmp_path)
    place("compile", "small.curate", "-o", "out", "-q")
    assert place("plan", "small.curate", "-o", "out").out.startswith("no changes")
    file = tmp_path / "mine" / "tokenizer.json"
    changed = json.loads(file.read_text(encoding="utf-8"))
    changed["added_tokens"][0]["content"] = "<|other|>"
    file.write_text(json.dumps(changed), encoding="utf-8")
    data = place("plan", "small.curate", "-o", "out", "--json").json
    states = {step["name"]: step["state"] for step in data["steps"]}
    assert states["split_task"] == "same"
    assert states["render"] == "changed"
    assert set(list(states.values())[2:]) == {"after"}
