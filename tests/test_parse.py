"""Parsing: recovery, messages, hostile input, the stored tables, files on disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.dsl import codes
from curatec.dsl import grammar as tables
from curatec.dsl.ast import Filter, Strategy
from curatec.dsl.diagnostics import Diagnostic, render_text
from curatec.dsl.parse import Parsed, decode, parse, read_source
from curatec.dsl.source import Source

HERE = Path(__file__).parent
GALLERY = sorted((HERE / "errors" / "syntax").glob("*.curate"))
SPECS = sorted((HERE / "specs").glob("*.curate"))


def found(text: str) -> list[str]:
    return [d.code for d in parse(text).diagnostics]


def one(text: str) -> Diagnostic:
    (diagnostic,) = parse(text).diagnostics
    return diagnostic


# ---- the gallery ----


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery(path: Path) -> None:
    parsed = parse(path.read_bytes().decode(), path.name)
    shown = "\n\n".join(render_text(d) for d in parsed.diagnostics) + "\n"
    expected = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GALLERY"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")
    assert not parsed.ok
    assert {d.code for d in parsed.diagnostics} <= codes.titles().keys()


def test_gallery_has_no_orphans() -> None:
    assert {p.stem for p in GALLERY} == {p.stem for p in (HERE / "errors" / "syntax").glob("*.txt")}


# ---- pages ----


def test_each_code_of_the_sources_has_a_page() -> None:
    folder = Path(codes.__file__).parent
    used = {c for path in folder.glob("*.py") for c in re.findall(r'"(C0[01]\d\d)"', path.read_text(encoding="utf-8"))}
    assert used
    assert used <= codes.titles().keys()
    assert list(codes.titles()) == sorted(codes.titles())
    assert codes.page("C0104") == codes.page("c0104") != ""
    assert codes.page("C9999") is None


@pytest.mark.parametrize("code", [c for c in codes.titles() if c < "C0200"])
def test_examples_of_pages(code: str) -> None:
    page = codes.page(code)
    assert page is not None
    examples = re.findall(r"```curate\n(.*?)```", page, re.DOTALL)
    if examples:
        bad, good = examples
        assert code in found(bad)
        assert found(good) == []


# ---- recovery ----


def test_all_errors_and_nothing_else() -> None:
    parsed = parse((HERE / "errors/syntax/five_errors.curate").read_text(encoding="utf-8"))
    assert [d.code for d in parsed.diagnostics] == ["C0102", "C0101", "C0104", "C0109", "C0105"]
    assert [d.kind for d in parsed.file.declarations] == ["version", "source", "param", "strategy"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_one_broken_line_gives_one_error(spec: Path) -> None:
    """Whatever statement of a good spec is broken, the rest of it stays good."""
    lines = spec.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        head = re.match(r"\s*(?:\w+: )?(keep|drop|turns|limit|dedup|derive|sort|sample|path|format|tasks) ", line)
        if not head or line.count("{") != line.count("}") or line.count('"""') % 2:
            continue
        broken = [*lines]
        broken[number] = line[: head.end()] + ") " + line[head.end() :]
        parsed = parse("\n".join(broken))
        assert len(parsed.diagnostics) == 1, (broken[number], [d.message for d in parsed.diagnostics])
        row, _ = parsed.source.position(parsed.diagnostics[0].span.start)  # type: ignore[union-attr]
        assert row == number + 1


def test_the_good_part_stays() -> None:
    parsed = parse(
        "strategy s {\n  good: keep where success\n  kep where reward > 1\n  derive n = * 1\n  keep where n > 1\n}"
    )
    (strategy,) = parsed.file.declarations
    assert isinstance(strategy, Strategy)
    assert [type(step) for step in strategy.body] == [Filter, Filter, Filter]
    assert parsed.unread >= {"derive", "n"}


def test_nothing_is_lost_inside_a_block_whose_head_is_wrong() -> None:
    text = "strategy s {\n  emmit sft {\n    kep where success\n  }\n}\nstrategy t fro x {\n  lmit 4 per task\n}\n"
    assert found(text) == ["C0102", "C0102", "C0109", "C0102"]


def test_caret_stands_at_the_end_of_the_statement_before() -> None:
    text = "strategy s {\n  keep where\n  limit 4 per task\n}\n"
    problem = one(text)
    assert problem.span is not None
    assert text[: problem.span.start].endswith("keep where")


def test_too_many_errors_stop() -> None:
    parsed = parse("strategy s {\n" + "  kep where a\n" * 500 + "}\n")
    assert len(parsed.diagnostics) == 101
    assert parsed.diagnostics[-1].code == "C0116" or any(d.code == "C0116" for d in parsed.diagnostics)


# ---- tokens and comments ----


def test_tokens_and_comments_are_all_there() -> None:
    text = 'curate 1 # one\r\n# two # three\nsource a { path "x#y" } # four'
    parsed = parse(text)
    assert [str(c) for c in parsed.comments] == ["# one", "# two # three", "# four"]
    assert [str(t) for t in parsed.tokens] == ["curate", "1", "source", "a", "{", "path", '"x#y"', "}"]
    assert all(text[t.start_pos : t.end_pos] == t for t in (*parsed.tokens, *parsed.comments))


# ---- odd and hostile input ----


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "\ufeffcurate 1\n", "curate 1\r\nsource a { }\r\n"])
def test_nothing_wrong(text: str) -> None:
    assert parse(text).diagnostics == ()


DEEP = "strategy s {\n  keep where %s\n  kep where a\n}\n"


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 10_000 + "a" + ")" * 10_000,
        "(" * 1_000_000,
        "[" * 50_000,
        "not " * 20_000 + "a",
        "- " * 20_000 + "a",
        "a" + " or a" * 20_000,
        "f(" * 5_000,
        "if a then " * 5_000,
        "a" + ".b" * 20_000,
        "(" * 500 + "a" + ")" * 500,
    ],
    ids=lambda e: e[:6],
)
@pytest.mark.timeout(60)  # none of these may hang
def test_depth_bombs(expression: str) -> None:
    parsed = parse(DEEP % expression)
    assert parsed.diagnostics[0].code == "C0115"
    assert parsed.diagnostics[-1].code == "C0102"


def test_deep_but_not_too_deep() -> None:
    assert found("strategy s { keep where " + "(" * 90 + "a" + ")" * 90 + " }") == []
    assert found("strategy s { keep where a" + " or a" * 90 + " }") == []


@pytest.mark.parametrize(
    "text",
    [
        "\0" * 1000,
        "a\0b",
        "curate 1\0\n",
        '"""' + "x" * 1_000_000,
        '"' + "\\" * 100_001,
        "{" * 100_000,
        "}" * 100_000,
        "\n" * 300_000 + "x",
        " " * 300_000,
        "9" * 50_000,
        "strategy s { limit " + "9" * 6_000 + " per task }",
        "x: " * 10_000,
        "strategy s { " + "keep where a " * 10_000 + "}",
        "source a { } " * 8_000,
        "emit { " * 20_000,
        "a\n" * 100_000,
        "\n) strategy s { \n" * 3_000,
        "`" * 1_001,
        "\ud800",
    ],
    ids=lambda t: ascii(t[:8]) + str(len(t)),
)
@pytest.mark.timeout(60)  # none of these may hang
def test_hostile_text(text: str) -> None:
    parsed = parse(text)
    assert all(0 <= d.span.start <= d.span.end <= len(text) for d in parsed.diagnostics if d.span)


def test_a_thousand_statements() -> None:
    body = "".join(f'  s{i}: keep where reward >= 0.{i} and any(turns where role == "x{i}")\n' for i in range(1_000))
    parsed = parse("strategy s {\n" + body + "}\n")
    assert parsed.ok
    assert len(parsed.file.declarations[0].body) == 1_000  # type: ignore[union-attr]


def test_lone_carriage_returns() -> None:
    assert found("# old\rsource a { path 1 }\r") == ["C0008"]


@pytest.mark.parametrize("data", [b"curate 1\n", b"\xef\xbb\xbfcurate 1\n", "# größe\ncurate 1\r\n".encode()])
def test_good_bytes(data: bytes) -> None:
    source = decode(data, "a.curate")
    assert isinstance(source, Source)
    assert parse(source.text).ok


def test_bad_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.curate"
    path.write_bytes(b"curate 1\n# caf\xe9\n")
    problem = read_source(path, "a.curate")
    assert isinstance(problem, Diagnostic)
    assert problem.code == "C0001"
    assert "offset 14" in problem.message
    assert problem.place == "a.curate:2"
    path.write_bytes(b"\xef\xbb\xbf\xff")
    again = read_source(path, "a.curate")
    assert isinstance(again, Diagnostic)
    assert "offset 3" in again.message
    missing = read_source(tmp_path / "none.curate")
    assert isinstance(missing, Diagnostic)


def test_utf16_is_named() -> None:
    problem = decode("curate 1\n".encode("utf-16"), "a.curate")
    assert isinstance(problem, Diagnostic)
    assert "UTF-16" in problem.help[0]


# ---- fuzz ----

_WORDS = [
    *sorted(tables.grammar().words.values()),
    *("NAME", "a", "b1", "1", "0.5", "10%", "5m", '"x"', 'r"y"', '"""z"""', "best:", "x:", "# c\n", "\n", "\n  "),
    *("“", "'", "&&", "\u200b", "\0", '"', '"""', "é"),
]
_CORPUS = [path.read_text(encoding="utf-8") for path in SPECS]


def check(text: str) -> Parsed:
    parsed = parse(text)
    for problem in parsed.diagnostics:
        assert problem.span is not None
        assert 0 <= problem.span.start <= problem.span.end <= len(parsed.source.text)
        assert problem.message
        render_text(problem)
    for node in parsed.file.walk():
        assert 0 <= node.span.start <= node.span.end <= len(parsed.source.text)
    return parsed


@settings(max_examples=120, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(_WORDS), max_size=60))
def test_token_soup(words: list[str]) -> None:
    check(" ".join(words))


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.sampled_from(_CORPUS), st.data())
def test_mutations(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.sampled_from(["", " ", *_WORDS])) + text[end:]
    check(text)


# ---- the stored tables ----


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(tables.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def _run(folder: Path, code: str = "from curatec.dsl.parse import parse; print(parse('curate 1').ok)") -> str:
    environment = os.environ | {tables.CACHE_VARIABLE: str(folder)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_tables_are_stored_and_loaded(cache: Path) -> None:
    text = tables.grammar_text()
    path = tables.cache_path(text)
    assert path is not None
    assert path.parent == cache
    tables._save(tables.build_lark(text), path)
    assert [p.name for p in cache.iterdir()] == [path.name]
    lark = tables._load(path)
    assert lark is not None
    assert tables.Grammar(lark).places


def test_foreign_and_broken_tables_are_left_alone(cache: Path) -> None:
    path = tables.cache_path("grammar")
    assert path is not None
    assert tables._load(path) is None
    cache.mkdir()
    path.write_bytes(b"not tables")
    assert tables._load(path) is None
    tables._save(tables.build_lark('start: "a"'), path)
    assert tables._load(path) is not None
    path.chmod(0o666)
    assert tables._load(path) is None
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    assert tables._load(path) is None


def test_no_place_for_tables(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert _run(tmp_path / "file" / "cache").strip() == "True"


def test_lark_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, curatec.dsl.parse; print('lark' in sys.modules)"
    assert _run(Path("/nonexistent"), code).strip() == "False"
