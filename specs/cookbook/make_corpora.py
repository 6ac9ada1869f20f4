"""Makes what the cookbook needs and public data lacks: `python specs/cookbook/make_corpora.py [FOLDER]`.

`made/team.jsonl`: sessions of a lead that hands work to a scout and a tester, as ATIF. `made/desk_export.jsonl`: chats
of a helpdesk whose records carry licences of their own, with personal data and secrets (all made up), as OpenAI
messages. Both are drawn from a fixed seed, so that the files in the repository are what this program writes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MADE = Path(__file__).parent / "made"
Json = dict[str, Any]

# ---- a team ----

FAULTS = [
    ("dates.py", "parse_week", "week 53 raises", "the week is checked against 52", "52", "53"),
    ("money.py", "round_half", "0.125 becomes 0.12", "round() is half-even", "round(x, 2)", "half_up(x, 2)"),
    ("paths.py", "common_root", "an empty list raises", "items[0] is read first", "items[0]", "items[:1]"),
    ("text.py", "wrap", "a long word loops", "the cut is never past column 0", "cut = 0", "cut = width"),
    ("cache.py", "get", "an expired entry is given back", "the clock is compared the wrong way", "<", ">"),
    ("retry.py", "delays", "one delay too few", "the range ends too early", "range(n - 1)", "range(n)"),
    ("units.py", "to_kelvin", "the offset is missing", "only the factor is applied", "c * 1.0", "c + 273.15"),
    ("queue.py", "peek", "the item is lost", "pop() is called", ".pop()", "[-1]"),
]
TOOLS = {
    "lead": ["delegate", "edit"],
    "scout": ["search", "open"],
    "tester": ["run_tests"],
}
PARAMETERS = {
    "delegate": ["agent", "task"],
    "edit": ["file", "old", "new"],
    "search": ["pattern"],
    "open": ["file"],
    "run_tests": ["file"],
}
PROMPTS = {
    "lead": "You lead a small team. Give work to `scout` and `tester`, make the change yourself.",
    "scout": "You are a helper. Do what you are told.",
    "tester": "You are a helper. Do what you are told.",
}


def team() -> Iterator[Json]:
    """Two sessions for each fault; in some the lead does not believe its tester."""
    draws = random.Random(11)
    for number, fault in enumerate(FAULTS):
        for attempt in range(2):
            yield _session(f"team-{number}-{attempt}", number, fault, solved=draws.random() < 0.65, draws=draws)


def _session(name: str, number: int, fault: tuple[str, ...], *, solved: bool, draws: random.Random) -> Json:
    file, function, symptom, cause, old, new = fault
    seen = f"{symptom} in `{function}` of {file}"
    found = f"`{function}` in {file}: {cause}. The line holds `{old}`."
    scout = [
        _said("user", f"Find out why {seen}."),
        _acted("I look for the function.", "search", {"pattern": f"def {function}"}, f"{file}:{draws.randint(3, 90)}"),
        _acted("", "open", {"file": file}, f"def {function}(...):\n    ...  # {old}"),
        _said("agent", found),
    ]
    passed = draws.randint(4, 30)
    verdict = f"{passed} passed" if solved else f"{passed} passed, 1 failed"
    tester = [
        _said("user", f"Run the tests of {file}."),
        _acted("", "run_tests", {"file": file}, verdict),
        _said("agent", f"Tests of {file}: {verdict}."),
    ]
    lead = [
        _said("user", f"Please mend this: {seen}."),
        _acted("The scout looks first.", "delegate", {"agent": "scout", "task": f"Find out why {seen}."}, found),
        _acted("", "edit", {"file": file, "old": old, "new": new if solved else f"{old}  # fine"}, "edited"),
        _acted("", "delegate", {"agent": "tester", "task": f"Run the tests of {file}."}, tester[-1]["message"]),
        _said("agent", f"`{function}` is mended." if solved else f"`{function}` should work now."),
    ]
    whole = _run("lead", name, name, lead)
    whole["extra"] = {"task_id": f"fault-{number}", "reward": float(solved), "success": solved, "license": "MIT"}
    whole["subagent_trajectories"] = [
        _run("scout", name, f"{name}-s", scout),
        _run("tester", name, f"{name}-t", tester),
    ]
    return whole


def _run(agent: str, session: str, name: str, steps: list[Json]) -> Json:
    numbered = [_numbered(n, step) for n, step in enumerate([_said("system", PROMPTS[agent]), *steps], 1)]
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": session,
        "trajectory_id": name,
        "agent": {"name": agent, "version": "1", "tool_definitions": [_schema(tool) for tool in TOOLS[agent]]},
        "steps": numbered,
    }


def _schema(tool: str) -> Json:
    members = {name: {"type": "string"} for name in PARAMETERS[tool]}
    parameters = {"type": "object", "properties": members, "required": list(members)}
    return {"type": "function", "function": {"name": tool, "description": f"{tool}.", "parameters": parameters}}


def _said(source: str, message: str) -> Json:
    return {"source": source, "message": message}


def _acted(message: str, tool: str, arguments: Json, result: str) -> Json:
    call = {"function_name": tool, "arguments": arguments}
    return {**_said("agent", message), "tool_calls": [call], "observation": {"results": [{"content": result}]}}


def _numbered(number: int, step: Json) -> Json:
    """A step with its number, which its call is named after."""
    for call in step.get("tool_calls", ()):
        call["tool_call_id"] = f"call_{number}"
        step["observation"]["results"][0]["source_call_id"] = f"call_{number}"
    return {"step_id": number, **step}


# ---- a helpdesk ----

LICENCES = ("CC-BY-4.0", "CC0-1.0", "CC-BY-NC-4.0", None)
NAMES = ("alma", "bruno", "cleo", "dario", "edda", "felix")
ASKED = (
    "Hello, my parcel {order} has not come. You can write to {mail} or call {phone}.",
    "I cannot log in to the shop any more, my address there is {mail}.",
    "Our script for order {order} gets a 401, this is what we send: api_key={key}",
    "Please send the invoice of {order} to {mail} again, and call {phone} if that is not possible.",
)
ANSWERS = (
    "I am sorry to hear that. I have noted it and we look into {order} today. We write to {mail}.",
    "Thank you. I have sent a link to {mail}; it works for one hour.",
    "The key is refused because it was withdrawn. Please make another one and keep it out of messages.",
    "The invoice of {order} is on its way. Is there anything else?",
)


def desk() -> Iterator[Json]:
    """Chats of which every fourth is told again in nearly the same words."""
    draws = random.Random(5)
    for number in range(48):
        kind = number % len(ASKED)
        name = draws.choice(NAMES)
        values = {
            "order": f"Q{draws.randint(10_000, 99_999)}",
            "mail": f"{name}{draws.randint(1, 99)}@example.org",
            "phone": f"+49 30 {draws.randint(2_000_000, 8_999_999)}",
            "key": f"bagshop_{draws.randbytes(20).hex()}",
        }
        licence = draws.choice(LICENCES)
        asked, answer = ASKED[kind].format(**values), ANSWERS[kind].format(**values)
        colour, strap = draws.choice(("blue", "grey", "green")), draws.choice(("long", "short"))
        more = f"It is the {colour} one with the {strap} strap, number {number}"
        yield _chat(f"desk-{number}", asked, f"{more}.", answer, licence)
        if number % 4 == 0:
            yield _chat(f"desk-{number}-again", asked, f"{more}!!", f"{answer} Bye.", licence)


def _chat(name: str, asked: str, more: str, answer: str, licence: str | None) -> Json:
    messages = [
        {"role": "system", "content": "You answer for a shop that sells bags. Be short and kind."},
        {"role": "user", "content": asked},
        {"role": "assistant", "content": "Which of our bags is it about?"},
        {"role": "user", "content": more},
        {"role": "assistant", "content": answer},
    ]
    return {"id": name, "messages": messages, "success": True} | ({"license": licence} if licence else {})


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, records in (("team", team()), ("desk_export", desk())):
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else MADE)
