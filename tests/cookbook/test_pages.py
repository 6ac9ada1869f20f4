"""Pages say what the specs say, and numbers that a compile gives."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.cookbook.conftest import PAGES, REAL, ROOT, SPECS, Done, Kitchen, fence
from tests.cookbook.pages import HEAD, table

Json = dict[str, Any]
JOBS = sorted(path.stem for path in (SPECS / "cookbook").glob("*.curate"))
STRATEGIES = {"10_long_context": ("windows", "decisions")}
OWN = ("07_preference_pairs", "08_subagents")  # read corpora of the project's own alone

on_published_runs = pytest.mark.parametrize("kitchen", [REAL], indirect=True)


def _page(job: str) -> str:
    return (PAGES / f"{job.replace('_', '-')}.md").read_text()


def _tables(page: str) -> list[str]:
    return [HEAD + body for body in re.findall(rf"^{re.escape(HEAD)}((?:\|.*\n)+)", page, re.MULTILINE)]


def test_there_are_twelve_jobs_each_with_a_page_in_the_index() -> None:
    assert len(JOBS) == 12
    index = (PAGES / "README.md").read_text()
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md"}
    assert pages == {f"{job.replace('_', '-')}.md" for job in JOBS} == set(re.findall(r"\]\((\d\d-[^)]*)\)", index))
    assert "docs/cookbook/README.md" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("job", JOBS)
def test_a_page_shows_the_very_spec(job: str) -> None:
    assert fence(_page(job), "curate") == (SPECS / "cookbook" / f"{job}.curate").read_text()


@pytest.mark.parametrize("job", JOBS)
def test_commands_of_a_page_name_what_there_is(job: str) -> None:
    page = _page(job)
    assert page.count("\n## ") >= 3
    for spec in re.findall(r"specs/\S+\.curate", page):
        assert (ROOT / spec).exists(), spec
    rules = re.findall(r"left out of `\w+`: (\w+)", page)
    for label in re.findall(r"--label (\w+)", page):
        assert f"{label}:" in fence(page, "curate") or label in rules, label
    for name in re.findall(r"-D (\w+)=", page):
        assert f"param {name} " in page
    for strategy in re.findall(r"--strategy (\w+)", page):
        assert f"strategy {strategy} " in page


def _agrees(kitchen: Kitchen, job: str) -> None:
    manifests = [kitchen(job, strategy).manifest for strategy in STRATEGIES.get(job, (None,))]
    assert _tables(_page(job))[: len(manifests)] == [table(manifest) for manifest in manifests]


@pytest.mark.parametrize("job", OWN)
def test_numbers_of_own_corpora_are_those_of_a_compile(kitchen: Kitchen, job: str) -> None:
    _agrees(kitchen, job)


@on_published_runs
@pytest.mark.parametrize("job", [job for job in JOBS if job not in OWN])
def test_numbers_of_a_page_are_those_of_a_compile(kitchen: Kitchen, job: str) -> None:
    _agrees(kitchen, job)


def _says(job: str, words: str) -> None:
    """Line ends of a page are spaces of a sentence."""
    assert words in " ".join(_page(job).split()), words


def _crashed(record: Json) -> bool:
    return not record["traj"] or "error" in record["info"]


@on_published_runs
def test_what_is_said_of_best_runs(kitchen: Kitchen) -> None:
    done = kitchen("01_best_of_n")
    rows, beaten = len(done.rows("sft")), len(done.ledger("best"))
    _says("01_best_of_n", f"The {rows} rows are of {rows} tasks")
    _says("01_best_of_n", f"`best` took {beaten} runs")
    [path] = kitchen.runs.glob("tau_bench/**/retail-qwen2.5-7b.json")
    prompts = [run["traj"][0]["content"] for run in json.loads(path.read_text())]
    assert all(prompt.startswith("# Airline Agent Policy") for prompt in prompts)
    _says("01_best_of_n", f"`{path.name}` holds {len(prompts)} runs at airline tasks")


@on_published_runs
def test_what_is_said_of_pass_rates(kitchen: Kitchen) -> None:
    tries: dict[Any, list[bool]] = defaultdict(list)
    for domain, model, record in kitchen.tau:
        if domain == "airline" and not _crashed(record):
            for key in ((model, record["task_id"]), ("any", record["task_id"])):
                tries[key].append(record["reward"] >= 1)
    shares = {key: sum(found) / len(found) for key, found in tries.items() if len(found) > 1}
    never, always = (sum(m == "gpt-4o" and share == end for (m, _), share in shares.items()) for end in (0, 1))
    mixed = defaultdict(set)
    for (model, task), share in shares.items():
        if 0.1 <= share <= 0.9:
            mixed[model].add(task)
    assert mixed["qwen2.5-7b"] < mixed["gpt-4o"] < mixed["any"]
    left, few, pooled = len(mixed["gpt-4o"]), len(mixed["qwen2.5-7b"]), len(mixed["any"])
    _says("02_pass_rate_groups", f"{never} were never solved and {always} always; {left} are left. The {few} tasks")
    _says("02_pass_rate_groups", f"{pooled} of these tasks look learnable")
    _says("02_pass_rate_groups", f"{pooled - left} of them are not known to be")


@on_published_runs
def test_what_is_said_of_submissions(kitchen: Kitchen) -> None:
    ended = [(run.get("info") or {}).get("exit_status") for _, run in kitchen.swe]
    _says("03_swe_verdicts", f"it keeps {ended.count('submitted')} of these {len(ended)} runs")


@on_published_runs
def test_what_is_said_of_wrong_turns(kitchen: Kitchen) -> None:
    masked, turns = _masked(kitchen("04_mask_wrong_turns"))
    _says("04_mask_wrong_turns", f"{masked} of {turns:,} assistant turns")
    spec = (SPECS / "cookbook" / "04_mask_wrong_turns.curate").read_text()
    masked, turns = _masked(kitchen.variant("all_turns", spec.replace("  solved: keep where success\n", "")))
    _says("04_mask_wrong_turns", f"without `solved` it is {masked} of {turns:,}")


def _masked(done: Done) -> tuple[int, int]:
    """Assistant turns without loss, and all."""
    weights = [
        weight
        for row in done.rows("sft")
        for message, weight in zip(row["messages"], row["weights"], strict=True)
        if message["role"] == "assistant"
    ]
    return weights.count(0), len(weights)


@on_published_runs
def test_what_is_said_of_leaks(kitchen: Kitchen) -> None:
    done = kitchen("05_leak_removal")
    found = Counter(entry["reason"] for entry in done.ledger("leaks"))
    by_words_alone = {done.runs[e["traj_id"]]["task"] for e in done.ledger("leaks") if e["reason"] == "test_ngram"}
    assert "airline/17" in by_words_alone
    _says("05_leak_removal", "a run of airline task 17")
    by_id, by_text, by_words = found["test_id"], found["test_text"], found["test_ngram"]
    told = f"{by_id} are runs of a sealed task by id, {by_text} say a sealed text word for word, and {by_words} share"
    _says("05_leak_removal", f"Of the {found.total()} runs that leak, {told}")
    _says("05_leak_removal", f"misses {by_text + by_words} of the {found.total()}")


@on_published_runs
def test_what_is_said_of_the_mix(kitchen: Kitchen) -> None:
    done, tokens = kitchen("06_token_mix"), Counter[str]()
    rows = Counter(row["source"] for row in done.rows("sft"))
    for row in done.rows("sft"):
        tokens[row["source"]] += row["n_trained"]
    service, chats, swe = (f"{tokens[n]:,}" for n in ("service", "chats", "swe"))
    told = f"chats {chats} in {rows['chats']}, software {swe} in {rows['swe']}"
    _says("06_token_mix", f"Service has {service} trained tokens in {rows['service']} rows, {told}")
    shown = sum(row["n_tokens"] for row in done.rows("sft"))
    _says("06_token_mix", f"{shown:,} tokens are shown and {tokens.total():,} are trained")


@on_published_runs
def test_no_runs_of_tau_bench_part_at_the_agent(kitchen: Kitchen) -> None:
    spec, source = (
        (SPECS / "cookbook" / f"{job}.curate").read_text() for job in ("07_preference_pairs", "01_best_of_n")
    )
    tau = "".join(re.findall(r"^source \w+ \{.*?\n\}\n", source, re.DOTALL | re.MULTILINE))
    spec = re.sub(r"source desk \{.*?\n\}\n", lambda _: tau, spec, flags=re.DOTALL)
    spec = spec.replace("from desk", "from airline, retail")
    done = kitchen.variant("pairs_of_tau", re.sub(r"\n  expect .*\n", "", spec))
    assert done.rows("preference") == []
    assert _tables(_page("07_preference_pairs"))[1] == table(done.manifest)
    tasks = defaultdict(list)
    for domain, _, record in kitchen.tau:
        if not _crashed(record):
            tasks[domain, record["task_id"]].append(record)
    seen = 0
    for runs in tasks.values():
        for one in runs:
            for other in runs:
                if one["reward"] >= 1 > other["reward"]:
                    assert _first_difference(one["traj"], other["traj"]) == "user"
                    seen += 1
    assert seen > 80


def _first_difference(one: list[Json], other: list[Json]) -> str:
    """The role of the first message that differs."""
    pairs = zip(one, other, strict=False)
    return next(a["role"] for a, b in pairs if any(a.get(key) != b.get(key) for key in ("role", "content")))


@on_published_runs
def test_what_is_said_of_chats_without_tools(kitchen: Kitchen) -> None:
    done = kitchen("09_tool_pruning")
    [step] = [step for step in done.manifest["steps"] if step["label"] == "crowded"]
    bare = [row for row in done.rows("sft") if not row["tools"]]
    assert step["failed"] == len(bare)
    _says("09_tool_pruning", f"The {len(bare)} that were not possible")


@on_published_runs
def test_what_is_said_of_windows(kitchen: Kitchen) -> None:
    rows = kitchen("10_long_context", "windows").rows("sft")
    runs = {row["parents"][0] for row in rows}
    _says("10_long_context", f"{len(runs)} runs become {len(rows)} rows")


@on_published_runs
def test_what_is_said_of_simulations(kitchen: Kitchen) -> None:
    def acts(actions: list[Json]) -> list[tuple[str, Json]]:
        return [(action["name"], action["arguments"]) for action in actions]

    simulations, other = kitchen.tau2, 0
    for _, task, one in simulations:
        checks = one["reward_info"].get("action_checks")
        asked = acts(task["evaluation_criteria"]["actions"] or [])
        other += checks is not None and acts([check["action"] for check in checks]) != asked
    _says("11_user_simulator", f"{other} of the {len(simulations)} simulations")


@on_published_runs
def test_what_is_said_of_redactions(kitchen: Kitchen) -> None:
    found: Counter[str] = Counter()
    for entry in kitchen("12_licensed_release").edits_of("private"):
        found[entry["key"]] += entry["n"]
    told = (found["pii.email"], found["secrets.password"], found["pii.phone"])
    words = "`private` replaced {} e-mail addresses, {} passwords and keys, and {} telephone numbers".format(*told)
    _says("12_licensed_release", words)
    assert found.total() == sum(told)
