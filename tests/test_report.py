"""The report: its numbers are right, what a trajectory holds does nothing, the same input gives the same bytes."""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatec.runtime import expectations, manifest, sinks
from curatec.runtime.cache import Cache
from curatec.runtime.compile import Request, checked, chosen_plan
from curatec.runtime.execute import Executed, execute
from curatec.runtime.inputs import read_inputs
from curatec.runtime.report import measures as report_measures
from curatec.runtime.report import page as report
from curatec.runtime.report import plots as report_plots
from curatec.runtime.report import text as report_text
from curatec.runtime.report.clean import clean
from curatec.runtime.report.measures import axis_for, counts, nice
from curatec.runtime.side import read_side
from curatec.runtime.sinks.written import Written
from curatec.runtime.steps.render import read_renderer
from tests import every_step

QUICKSTART = Path(__file__).parents[1] / "specs" / "quickstart"
Json = dict[str, Any]

HOSTILE = (
    "<script>alert(1)</script>\x00\u202egnp.exe <img src=http://evil.test/x onerror=1> \"'&amp; \x1b[31m {{ 7*7 }} "
    + "W" * 5_000
)


@dataclass(frozen=True)
class Made:
    """What `report.render` gets, and what it gives."""

    executed: Executed
    written: Mapping[str, Written]
    summary: Json
    out: Path
    page: str = ""


def make(spec: Path, work: Path, limit: int | None = None) -> Made:
    request = Request(str(spec), allowed=(spec.parent, QUICKSTART), limit=limit)
    found = checked(request)
    plan = chosen_plan(found, request)
    out, scratch = work / "out", work / "scratch"
    out.mkdir(parents=True)
    scratch.mkdir()
    inputs = read_inputs(plan.corpora, found.program.project, request.allowed, Cache(work / "cache"))
    side = read_side(plan, found.program.project, request.allowed)
    renderer = read_renderer(plan, found.program.project, request.allowed)
    executed = execute(plan, inputs, scratch, side=side, renderer=renderer, limit=limit)
    written = {branch.name: sinks.write(executed, branch, out) for branch in plan.sinks}
    summary = manifest.build(
        executed,
        spec_name=str(spec),
        spec_text=found.program.root.parsed.source.text,
        modules=[(m.parsed.source.name, m.parsed.source.text) for m in found.program.modules],
        written=written,
        expectations=expectations.ask(executed, written),
        lints=[d for d in found.diagnostics if d.severity != "error"],
        partial=limit is not None,
        started=datetime.now(UTC),
    )
    return Made(executed, written, summary, out, report.render(executed, written, summary))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(QUICKSTART / "service.curate", tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Every step that makes, replaces, redacts, joins or seals rows."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("phonenumbers")
    folder = tmp_path_factory.mktemp("every")
    return make(every_step.write(folder), folder / "work")


def raw_runs() -> list[Json]:
    """The quickstart corpus by nothing but `json`."""
    runs: list[Json] = []
    for path in sorted((QUICKSTART / "runs").iterdir()):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in text.decode().split("\n"):
            try:
                runs += [json.loads(line)] if line else []
            except json.JSONDecodeError:
                continue
    return runs


# ---- reading a page ----

VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclass
class Page(HTMLParser):
    """Tables, tags and attributes of a page; every tag that is opened must be closed."""

    tables: list[list[list[str]]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)  # the heading or summary before each table
    tags: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _heading: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self._heading = ""
        if tag == "table":
            self.tables.append([])
            self.titles.append(self._heading)
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text.append(data)
        if any(h in self._open for h in ("h1", "h2", "h3")):
            self._heading += data
        if self._open and any(t in self._open for t in ("td", "th")):
            self.tables[-1][-1][-1] += data

    def table(self, title: str) -> dict[str, list[str]]:
        """Rows of the table under a heading by their first cell's first word."""
        rows = self.tables[self.titles.index(title)][1:]
        return {
            " ".join(row[0].split()).split(" ")[0]: [" ".join(cell.split()) for cell in row[1:]]
            for row in rows
            if len(row) > 1
        }


def read(page: str) -> Page:
    parsed = Page()
    parsed.feed(page)
    parsed.close()
    assert not parsed._open
    return parsed


def n(text: str) -> float:
    return float(text.split(" ", 1)[0].replace(",", ""))


# ---- numbers ----


def test_funnel_says_what_the_ledger_says(shop: Made) -> None:
    page = read(shop.page)
    ledger = shop.executed.ledger.table().filter((pl.col("action") == "dropped") & pl.col("turn").is_null())
    left = {None: len(raw_runs())}
    for sink, title in ((None, "Shared steps"), ("sft", "sft"), ("rl", "rl"), ("memory", "memory")):
        here = left[None]
        own = [c for c in shop.executed.ledger.counts if c.sink == sink]
        assert own
        for count in own:
            gone = ledger.filter(pl.col("sink").eq_missing(pl.lit(sink)) & (pl.col("label") == count.label)).height
            entered, dropped, after = page.table(title)[count.label]
            assert (n(entered), 0 if dropped == "–" else n(dropped), n(after)) == (here, gone, here - gone)
            here -= gone
        if sink is None:
            left[None] = here
        else:
            assert here == shop.executed.ends[sink].rows.height


def test_accounts_add_up(shop: Made) -> None:
    text = " ".join("".join(read(shop.page).text).split())
    found = re.findall(
        r"(\d+) in \+ (\d+) created = (\d+) written \+ (\d+) dropped \+ (\d+) replaced \+ (\d+) rejected", text
    )
    assert len(found) == len(shop.written)
    for sums, (name, written) in zip(found, shop.written.items(), strict=True):
        into, created, out, dropped, replaced, rejected = map(int, sums)
        assert into + created == out + dropped + replaced + rejected
        assert (into, out) == (len(raw_runs()), sum(written.rows.values())), name


def test_lengths_at_from_are_those_of_the_records(shop: Made) -> None:
    page, runs = read(shop.page), raw_runs()
    spoken = [sum(m["role"] != "system" for m in run["messages"]) for run in runs]
    calls = [sum(len(m.get("tool_calls") or ()) for m in run["messages"]) for run in runs]
    for title, values in (("Turns of a run", spoken), ("Tool calls of a run", calls)):
        shown = page.table(title)["at"]
        quarters = statistics.quantiles(values, n=4, method="inclusive")
        expected = [len(values), min(values), *quarters, max(values), statistics.fmean(values), 0]
        assert [n(cell) for cell in shown] == pytest.approx(expected, abs=0.006)


def test_outcomes_and_models_are_those_of_the_records(shop: Made) -> None:
    page, runs = read(shop.page), raw_runs()
    models = Counter(run["model"] for run in runs)
    assert {name: n(cells[0]) for name, cells in page.table("Model").items()} == dict(models)
    crashed = sum(not run["messages"] for run in runs)
    outcomes = page.table("Outcome")
    assert n(outcomes["crash"][0]) == crashed
    assert sum(n(cells[0]) for cells in outcomes.values()) == len(runs)
    kept = shop.executed.ends["sft"].rows
    assert n(outcomes["success"][1]) == kept.filter(pl.col("outcome") == "success").height
    assert page.table("Tasks")["at"][:2] == [str(len(runs)), str(len({run["task_id"] for run in runs}))]


def test_examples_are_runs_that_the_label_took(shop: Made) -> None:
    ledger = shop.executed.ledger.table().filter(pl.col("action") == "dropped")
    for label in ("crash", "sane_length", "once", "winners"):
        ids = ledger.filter(pl.col("label") == label)["traj_id"].sort().to_list()
        row = shop.page.index(f'<span class="label">{label}</span>')
        below = shop.page[row : shop.page.index("</ol>", row)]
        assert re.findall(r"<code>([0-9a-f]{12})</code> <span>", below) == [id_[:12] for id_ in ids[:3]]


def test_an_example_says_what_the_condition_asked(shop: Made) -> None:
    said = re.findall(r"<p class=\"what\">(.*?)</p>", shop.page, re.DOTALL)
    said = [" ".join(re.sub("<[^>]*>", "", one).split()) for one in said]
    lengths = [int(found[1]) for one in said if (found := re.fullmatch(r"dropped · turn_count (\d+)", one))]
    assert len(lengths) == 3
    assert not [n for n in lengths if 3 <= n <= 24]
    assert [one for one in said if re.fullmatch(r"dropped · failure (null|\w+) · success (true|false|null)", one)]


def test_lengths_in_a_sink_are_after_its_edits(tmp_path: Path) -> None:
    runs = [conversation(i, f"task {i}", "x" * 4_000) for i in range(6)]
    steps = 'turns set content = truncate(content, 40) where role == "tool"'
    made = make(
        spec(tmp_path, runs, f"strategy s {{\n from t\n emit sft {{ short: {steps} }}\n emit rl {{}}\n}}"),
        tmp_path / "work",
    )
    tokens = read(made.page).table("Tokens of a run")
    before, sft, rl = (n(tokens[name][5]) for name in ("at", "sft", "rl"))
    assert before == rl
    assert before - sft == (4_000 - 40) / 4


def test_the_margin_of_the_spec_counts_runs(shop: Made) -> None:
    rows = read(shop.page).tables[-1][1:]
    assert [row[2] for row in rows] == shop.summary["spec"]["text"].rstrip("\n").split("\n")
    margin = {row[2].split(":")[0].strip(): row[1] for row in rows if row[1]}
    for count in shop.executed.ledger.counts:
        if count.label in margin:
            assert margin[count.label] == (
                f"{count.entered} → {count.left}" if count.entered != count.left else str(count.left)
            )
    assert margin["source desk {"] == f"{len(raw_runs())} runs"


# ---- rows that steps make ----


def test_funnel_of_made_rows_says_what_the_ledger_says(every: Made) -> None:
    page = read(every.page)
    ledger = every.executed.ledger.table().filter(pl.col("turn").is_null())
    ends = {None: every.executed.start.rows.height}
    for sink, base, title in (
        (None, None, "Shared steps"), ("taught", None, "taught"), ("sft", "taught", "sft"), ("rl", None, "rl"),
    ):  # fmt: skip
        here, table = ends[base] - len(every.executed.held.get(sink or "", ())), page.table(title)
        for count in (c for c in every.executed.ledger.counts if c.sink == sink):
            own = ledger.filter(pl.col("sink").eq_missing(pl.lit(sink)) & (pl.col("label") == count.label))
            gone, made, replaced = (
                own.filter(pl.col("action") == a).height for a in ("dropped", "created", "replaced")
            )
            entered, dropped, after = table[count.label]
            left = here - gone - replaced + made
            assert (n(entered), 0 if dropped == "–" else n(dropped), n(after)) == (here, gone, left)
            here = left
        ends[sink] = here
    assert ends["sft"] == every.executed.ends["sft"].rows.height > 2 * every.executed.shared.rows.height


def test_no_bar_is_longer_than_its_frame(every: Made, shop: Made) -> None:
    for made in (every, shop):
        bars = re.findall(r'<span class="bar".*?</span>', made.page, re.DOTALL)
        sums = [sum(float(width) for width in re.findall(r"width:([\d.]+)%", bar)) for bar in bars]
        assert len(sums) > 10
        assert max(sums) == pytest.approx(100, abs=0.02)
        assert min(sums) > 0


def flags(page: str, label: str) -> list[str]:
    """What stands in bubbles below a step."""
    row = page.index(f'<span class="label">{label}</span>')
    found = re.findall(r'<span class="flag[^"]*">(.*?)</span>', page[row : page.index("</tr>", row)])
    return [re.sub("<[^>]*>", "", one) for one in found]


def test_flags_say_what_was_made_and_why_not(every: Made) -> None:
    ledger = every.executed.ledger.table()
    made = {
        label: ledger.filter((pl.col("label") == label) & (pl.col("action") == "created")).height for label in LABELS
    }
    shut = [run for run in runs_at(every, "taught") if len(run["tools"]) == 5]
    nameless = [run for run in runs_at(every, "crowded") if "order" not in run["messages"][1]["content"]]
    assert flags(every.page, "crowded") == [
        f"{made['crowded']} rows made",
        f"{2 * len(shut)} not made: there are not enough tools that it neither shows nor calls",
    ]
    assert flags(every.page, "renamed") == [
        f"{made['renamed']} rows made",
        f"{len(nameless)} not made: no call gives such an argument",
    ]
    decisions = [sum(bool(m.get("tool_calls")) for m in run["messages"]) for run in runs_at(every, "each_decision")]
    assert flags(every.page, "each_decision") == [f"{len(decisions)} runs replaced", f"{sum(decisions)} rows made"]
    assert flags(every.page, "known") == ["18 runs without a row in the table"]
    assert flags(every.page, "sealed_again") == ["once more, for what was made or changed since"]


LABELS = ("crowded", "renamed", "put_right")


def runs_at(every: Made, label: str) -> list[Json]:
    """The records of the runs that made rows or could not, at a step: those of the training split, except for
    `each_decision`; a copy is told by its run."""
    records = {run["id"]: run for run in every_step.records()}
    shared = every.executed.shared.rows
    if label in ("taught", "crowded"):
        shared = shared.filter(pl.col("split") != "validation")
    if label == "each_decision":
        held = next(every.executed.held[c.sink] for c in every.executed.ledger.counts if c.label == label and c.sink)
        shared = shared.filter(~pl.col("id").is_in(held.implode()))
    ids = dict(shared.select("id", "record_id").iter_rows())
    found = [records[record] for record in ids.values()]
    if label == "crowded":  # and its copies
        lineage = pl.concat(every.executed.ledger.lineage).filter(pl.col("operator") == "distractors")
        found += [records[ids[parent]] for parent in lineage["in"]]
    return found


def test_examples_of_made_rows_name_their_parents(every: Made) -> None:
    lineage = pl.concat([*every.executed.ledger.lineage, *(w.lineage for w in every.written.values())])
    parents: dict[str, list[str]] = {}
    for out, parent in lineage.sort("out", "ordinal").select("out", "in").iter_rows():
        parents.setdefault(report_text.short_id(out), []).append(report_text.short_id(parent))
    tasks = dict(every.executed.start.rows.select(pl.col("id").str.head(12), "task").iter_rows())
    shown = re.findall(r'<li>\n<p class="who"><code>([^<]*)</code>(.*?)</li>', every.page, re.DOTALL)
    made = [(id_, text) for id_, text in shown if "#" in id_ or id_.startswith("pair-")]
    assert len({id_.rpartition("#")[2][:2] for id_, _ in made}) >= 4  # windows, decisions, copies, pairs
    for id_, text in made:
        said = re.search(r"made from (.*?)\n", text)
        assert said
        assert re.findall(r"<code>([^<]*)</code>", said[1]) == parents[id_]
        root = id_
        while root in parents:
            root = parents[root][0]
        assert f"<span>{tasks[root]}</span>" in text
    assert not [text for id_, text in shown if id_ in tasks and "made from" in text]


def test_lengths_of_made_rows_are_their_own(every: Made, tmp_path: Path) -> None:
    """By the rows that were written: an rl row is a decision's, and its prompt all before it."""
    tables = [every.out / file for file in every.written["rl"].files if file.endswith(".parquet")]
    prompts = (
        pl.concat([pl.read_parquet(path, columns=["prompt"]) for path in tables])["prompt"].ext.storage().to_list()
    )
    spoken = [1 + sum(json.loads(m)["role"] != "system" for m in prompt) for prompt in prompts]
    calls = [1 + sum(len(json.loads(m).get("tool_calls") or ()) for m in prompt) for prompt in prompts]
    for title, values in (("Turns of a run", spoken), ("Tool calls of a run", calls)):
        shown = read(every.page).table(title)["rl"]
        quarters = statistics.quantiles(values, n=4, method="inclusive")
        expected = [len(values), min(values), *quarters, max(values), statistics.fmean(values), 0]
        assert [n(cell) for cell in shown] == pytest.approx(expected, abs=0.006)


def test_tokens_are_said_to_be_what_they_are(every: Made, shop: Made) -> None:
    text = " ".join("".join(read(every.page).text).split())
    assert "Tokens are exact, by builtin:tiny-qwen3" in text
    assert every.summary["render"]["template_digest"][:12] in text
    assert "tokens, estimate " not in text
    assert all(f"tokens{w.tokens:,}" in text.replace(" ", "") for w in every.written.values())
    assert "no tokenizer was asked" in "".join(read(shop.page).text)
    assert "tokens, estimate" in "".join(read(shop.page).text)


def test_tokens_are_compared_by_one_measure(every: Made) -> None:
    """Estimated at `from` and in sinks, although sinks count exactly."""
    shown = {name: n(cells[5]) for name, cells in read(every.page).table("Tokens of a run").items()}
    assert shown["memory"] < shown["at"] * 1.2


def test_what_is_redacted_is_nowhere_on_the_page(every: Made) -> None:
    runs = every_step.records()
    assert sum("@example.com" in json.dumps(run) for run in runs) == 64
    assert "@example.com" not in every.page
    assert "901820" not in every.page
    assert "[EMAIL_1]" in every.page
    page = read(every.page)
    rows = page.tables[page.titles.index("Redacted")][1:]
    assert [[" ".join(cell.split()) for cell in row] for row in rows] == [
        ["clean", "pii.email", "64", "64 rows"],
        ["clean", "pii.phone", "66", "66 rows"],
    ]


def test_leaks_and_likenesses_are_shown_with_their_evidence(every: Made) -> None:
    text = " ".join("".join(read(every.page).text).split())
    assert "evidence bench-<1>: the sealed question asks which of the nine parcels" in text
    assert "<1>" not in every.page
    dropped = every.executed.ledger.table().filter(pl.col("label") == "alike").sort("traj_id").head(3)
    for id_, key, survivor in dropped.select("traj_id", "key", "survivor").iter_rows():
        assert re.search(rf"{id_[:12]}.*?likeness {key} · {survivor[:12]} stays in its place", text)


def test_what_was_read_beside_the_runs(every: Made, shop: Made) -> None:
    page = read(every.page)
    table = page.table("Beside the runs")
    assert [table[name][:2] for name in ("verdicts", "bench", "kept_back")] == [
        ["table", "12"],
        ["test set, kept out of all sinks", "2"],
        ["test set, kept out of all sinks", "1"],
    ]
    sources = every.page[every.page.index('<section id="sources"') : every.page.index('<section id="spec"')]
    assert "verdicts.csv" not in sources
    assert "Beside the runs" not in shop.page


# ---- what a trajectory may hold ----


def conversation(i: int, task: str, result: str = "ok", **more: Any) -> Json:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": task},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
        {"role": "assistant", "content": "done"},
    ]
    return {"id": str(i), "task_id": f"t{i % 3}", "model": "m", "reward": float(i % 2), "messages": messages, **more}


def spec(folder: Path, runs: list[Json], strategy: str, head: str = "") -> Path:
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    path = folder / "s.curate"
    path.write_text(f'curate 1\n{head}\nsource t {{ path "runs.jsonl" }}\n{strategy}\n', encoding="utf-8")
    return path


def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path) -> None:
    runs = [conversation(i, HOSTILE, model=HOSTILE[:200] + str(i), task_id=HOSTILE[:100]) for i in range(8)]
    because = '<b onclick="x">why</b> </style><script>'
    gone = f'gone: drop where reward == 0 because {json.dumps(because)} see "javascript:alert(1)"'
    strategy = f"strategy s {{\n from t\n {gone}\n emit sft {{ few: limit 1 per task_text }}\n}}"
    made = make(spec(tmp_path, runs, strategy, head="# </code></td><script>"), tmp_path / "work")
    page = read(made.page)
    assert not page.tags.keys() & {"script", "img", "iframe", "object", "form"}
    assert page.tags["b"] == 6  # of the account
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not any(c in made.page for c in ("\x00", "\x1b", "\u202e"))
    text = "".join(page.text)
    assert "<script>alert(1)</script>␀⟨U+202E⟩gnp.exe" in text
    assert because in text
    assert "{{ 7*7 }}" in text
    assert max(len(run) for run in re.findall("W+", text)) < 300
    made.page.encode("utf-8")


def test_lone_surrogates_and_unicode_line_ends(tmp_path: Path) -> None:
    runs = [conversation(i, "a\ud800b\u2028c \U0001f600 é") for i in range(3)]
    made = make(
        spec(tmp_path, runs, "strategy s { from t emit sft { none: drop where reward >= 0 } }", head="# one\u2028two"),
        tmp_path / "work",
    )
    made.page.encode("utf-8")
    assert "# one\u2028two" in "".join(read(made.page).text)


# ---- the page itself ----


def test_nothing_is_fetched(shop: Made) -> None:
    page = read(shop.page)
    assert not [a for a in page.attributes if a[1] in ("src", "srcset", "xlink:href", "data", "poster", "background")]
    assert not page.tags.keys() & {"script", "link", "img", "iframe", "base"}
    assert "url(" not in shop.page
    assert "@import" not in shop.page
    assert all(value.startswith("#") for tag, name, value in page.attributes if tag == "a" and name == "href")
    assert "default-src 'none'" in shop.page


def test_links_have_targets_and_ids_are_unique(shop: Made) -> None:
    attributes = read(shop.page).attributes
    ids = Counter(value for _, name, value in attributes if name == "id")
    assert max(ids.values()) == 1
    wanted = {value.removeprefix("#") for _, name, value in attributes if name == "href"}
    wanted |= {value for _, name, value in attributes if name == "aria-labelledby"}
    assert wanted <= set(ids)


def test_every_plot_says_what_it_shows(shop: Made) -> None:
    page = read(shop.page)
    labels = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert len(labels) == page.tags["svg"] == 16
    assert all("at from" in label for label in labels)
    headings = [int(tag[1]) for tag in re.findall(r"<(h[1-6])", shop.page)]
    assert headings[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(headings))


def test_it_says_that_output_is_partial(tmp_path: Path, shop: Made) -> None:
    runs = [conversation(i, f"task {i}") for i in range(9)]
    part = make(spec(tmp_path, runs, "strategy s { from t emit sft {} }"), tmp_path / "work", limit=4)
    assert "4 of 9 runs" in "".join(read(part.page).text)
    assert "Partial." not in shop.page


def test_no_run_is_left(tmp_path: Path) -> None:
    runs = [conversation(i, f"task {i}") for i in range(4)]
    strategy = 'strategy s { from t all: drop where model == "m" emit sft {} emit memory { key task_text value "x" } }'
    page = read(make(spec(tmp_path, runs, strategy), tmp_path / "work").page)
    assert page.tags["svg"] == 0
    assert page.table("Tasks")["sft"][0] == "0"


def test_stages_are_branches_too(tmp_path: Path) -> None:
    runs = [conversation(i, f"task {i}") for i in range(6)]
    strategy = (
        "strategy s { from t stage good from shared { won: keep where reward > 0 } emit sft from good {} emit rl {} }"
    )
    page = read(make(spec(tmp_path, runs, strategy), tmp_path / "work").page)
    assert page.table("good")["won"] == ["6", "3", "3"]
    assert "3 runs from good." in " ".join("".join(page.text).split())


def test_large_corpora_are_sampled(monkeypatch: pytest.MonkeyPatch, shop: Made) -> None:
    monkeypatch.setattr(report_measures, "SAMPLE", 40)
    page = report.render(shop.executed, shop.written, shop.summary)
    assert "the 40 runs with the lowest digests" in page
    turns = read(page).table("Turns of a run")
    assert turns["at"][0] == "40"
    assert turns["sft"][0] == "10"
    # Facts are counted over all.
    assert read(page).table("Model") == read(shop.page).table("Model")


def test_many_values_are_summed_up(tmp_path: Path) -> None:
    runs = [conversation(i, f"task {i}", model=f"m{i // 2}") for i in range(80)]
    page = read(make(spec(tmp_path, runs, "strategy s { from t emit sft {} }"), tmp_path / "work").page)
    models = page.table("Model")
    assert len(models) == 13
    assert n(models["28"][0]) == 80 - 12 * 2


# ---- the same bytes ----

RENDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.test_report import QUICKSTART, make
sys.stdout.buffer.write(make(QUICKSTART / "service.curate", Path(sys.argv[2])).page.encode())
"""


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_other_processes_write_the_same_page(tmp_path: Path, shop: Made, seed: str) -> None:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "POLARS_MAX_THREADS": "1" if seed == "0" else "2",
        "TZ": "Asia/Tokyo",
    }
    command = [sys.executable, "-c", RENDER, str(Path(__file__).parents[1]), str(tmp_path / "work")]
    page = subprocess.run(command, check=True, capture_output=True, env=environment).stdout.decode()
    assert page == shop.page
    assert str(tmp_path) not in page
    assert "chart-" not in page
    assert str(datetime.now(UTC).year) not in re.sub(r"<blockquote>.*?</blockquote>|<code>[^<]*</code>", "", page)


# ---- bins and plots ----

VALUES = st.lists(st.one_of(st.none(), st.integers(0, 10**7)), min_size=1, max_size=60)
REWARDS = st.lists(st.one_of(st.none(), st.floats(-50, 50)), min_size=1, max_size=60)


@given(VALUES)
def test_every_known_value_is_in_one_bin(values: list[int | None]) -> None:
    series = pl.Series(values, dtype=pl.Int64)
    axis = axis_for([series], whole=True)
    assert 1 <= axis.count <= 80
    bins = counts(series, axis)
    assert sum(bins) == sum(v is not None for v in values)
    for i, found in enumerate(bins[: None if not axis.more else -1]):
        low = axis.start + i * axis.step
        assert found == sum(v is not None and low <= v < low + axis.step for v in values)


@given(REWARDS)
def test_rewards_have_bins_within_their_axis(values: list[float | None]) -> None:
    series = pl.Series(values, dtype=pl.Float64)
    axis = axis_for([series], whole=False)
    assert sum(counts(series, axis)) == sum(v is not None for v in values)
    assert all(axis.start - 1e-6 <= v <= axis.end + 1e-6 for v in values if v is not None)
    assert axis.count <= 25


@given(st.floats(1e-6, 1e12))
def test_nice_widths_are_round(width: float) -> None:
    found = nice(width)
    assert width <= found * (1 + 1e-8)
    assert found <= 5 * width
    assert f"{found:e}"[0] in "125"


def paths(svg: str) -> Iterator[list[tuple[float, float]]]:
    for d in re.findall(r'class="series serie-\d color-\d"><path d="M([^"]*)"', svg):
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", d)]
        yield list(zip(numbers[::2], numbers[1::2], strict=True))


@given(st.lists(st.integers(0, 500), min_size=2, max_size=20).filter(any), st.randoms(use_true_random=False))
def test_heights_of_a_plot_are_shares(before: list[int], random: Any) -> None:
    after = [random.randint(0, b) for b in before]
    axis = report_measures.Axis(0.0, 5.0, len(before), False)
    top = report_plots.top_of([before, after])
    svg = str(report_plots.histograms(before, {"x": after}, axis, top, {"x": 'a "label"'})["x"])
    assert 'aria-label="a &#34;label&#34;"' in svg
    for bins, points in zip((before, after), paths(svg), strict=True):
        floor = points[0][1]
        scale = ticks(svg)
        shares = [b / sum(bins) if sum(bins) else 0 for b in bins]
        tops = [y for _, y in points[3:]][::2][: len(bins)]
        assert [(floor - y) / scale for y in tops] == pytest.approx(shares, abs=0.005)
        widths = [b[0] - a[0] for a, b in pairwise(points[3:])][::2][: len(bins)]
        assert max(widths) - min(widths) < 0.3


def ticks(svg: str) -> float:
    """Units of height for a share of 1, from the first and last label of the vertical axis."""
    found = re.findall(r'<path d="M0 ([\d.]+) h[\d.]+"[^>]*></path><text[^>]*>([\d.]+) %</text>', svg)
    (low, zero), (high, last) = found[0], found[-1]
    assert zero == "0"
    return (float(low) - float(high)) / (float(last) / 100)


# ---- text ----


@given(st.text(), st.integers(1, 400))
def test_excerpts_are_short(text: str, limit: int) -> None:
    found = report_text.excerpt(text, limit)
    assert len(found) <= limit + 1
    assert found.endswith("…") or len(text) <= limit


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_shares_round_nothing_away(part: int, whole: int) -> None:
    part = min(part, whole)
    said = report_text.share(part, whole)
    assert (said == "0 %") == (part == 0)
    assert (said == "100 %") == (part == whole)


@given(st.text(st.characters(blacklist_categories=[])))
def test_clean_text_can_be_encoded_and_has_no_control(text: str) -> None:
    found = clean(text)
    found.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", found)
