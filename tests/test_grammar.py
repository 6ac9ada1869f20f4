"""The grammar file: what it is built of, that all of it is used, and that the specs people see parse."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from curatec.dsl.building.build import RULES
from curatec.dsl.diagnostics import render_text
from curatec.dsl.grammar import PLACES, build_lark, grammar, grammar_text
from curatec.dsl.parse import parse
from curatec.dsl.parsing.driver import HEADS, Driver
from curatec.dsl.parsing.words import PLACE_NAMES, human
from curatec.dsl.source import Source

HERE = Path(__file__).parent
SPECS = sorted((HERE / "specs").glob("*.curate"))
DESIGN = Path(os.environ.get("CURATEC_SHARED", HERE.parent.parent / "shared")) / "design"


def test_builds_without_a_conflict() -> None:
    pytest.importorskip("interegular")
    build_lark(grammar_text(), strict=True)


def test_constrained_decoders_take_it() -> None:
    llguidance = pytest.importorskip("llguidance")
    matcher = llguidance.LLMatcher
    failed, messages = matcher.validate_grammar_with_warnings(matcher.grammar_from_lark(grammar_text()))
    assert not failed, messages
    assert not messages


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("look-around", r"\(\?[=!<]"),
        ("lazy quantifiers", r"[*+?}]\?(?=[^\s/]*/)"),
        ("priorities", r"^\w+\.\d+\s*:"),
        ("templates", r"^[a-z_]+\{"),
        ("directives", r"^%(declare|override|extend|import)"),
        ("anchors", r"^[A-Z_]+: /\^|\$/$"),
    ],
)
def test_stays_in_the_subset(what: str, pattern: str) -> None:
    text = re.sub(r"^\s*//.*$", "", grammar_text(), flags=re.MULTILINE)
    terminals = "\n".join(re.findall(r"^[A-Z_]+: /.*/$", text, re.MULTILINE)) if what == "lazy quantifiers" else text
    assert not re.search(pattern, terminals, re.MULTILINE), what


def test_terminals_have_names_for_people() -> None:
    found = grammar()
    for terminal in [*(t.name for t in found.lark.terminals), "$END"]:
        name = human(terminal, found.words)
        assert name
        assert "__" not in name


def test_places_have_names() -> None:
    assert PLACE_NAMES.keys() == PLACES.keys()
    assert set(HEADS) == {
        "SOURCE", "TABLE", "COLUMNS", "TOOLS", "TOOL", "MODEL", "TEST", "WORKFLOW", "SYNTHESIS", "RECIPE", "SFT",
        "GRPO", "BENCHMARK", "AGENT", "EVOLVE", "STRATEGY", "STAGE", "EMIT",
    }  # fmt: skip


def test_each_block_of_statements_is_a_place() -> None:
    """A `{` behind which statements are repeated must be known to the recovery."""
    blocks = set(re.findall(r'"\{" (\w+)\* "\}"', grammar_text()))
    known = {
        "source_setting", "table_setting", "column", "tools_setting", "tool_setting", "model_setting", "test_setting",
        "workflow_item", "synthesis_setting", "recipe_setting", "hyper", "benchmark_setting", "agent_item",
        "evolve_setting", "strategy_item", "sink_statement", "sink_item",
    }  # fmt: skip
    assert blocks == known


def _tree_names() -> set[str]:
    """The names that a parse tree can have: aliases, and rules that are not always replaced by their one child."""
    names = set()
    for rule in grammar().lark.rules:
        name = rule.alias or rule.origin.name
        inlined = rule.alias is None and rule.options.expand1
        if not name.startswith("_") and not (inlined and len(rule.expansion) == 1):
            names.add(str(name))
    return names


def test_each_rule_has_a_builder_and_none_is_dead() -> None:
    assert set(RULES) == _tree_names()


def test_specs_cover_the_grammar() -> None:
    trees = [Driver(Source(path.name, path.read_text(encoding="utf-8"))).run() for path in SPECS]
    seen = {str(node.data) for tree in trees for node in tree.iter_subtrees()}
    assert _tree_names() - seen == set()


def _clean(text: str, name: str) -> None:
    parsed = parse(text, name)
    assert parsed.diagnostics == (), "\n".join(render_text(d) for d in parsed.diagnostics)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_specs_parse(path: Path) -> None:
    _clean(path.read_text(encoding="utf-8"), path.name)


def _snippets() -> list[tuple[str, str]]:
    found = [(p.name, p.read_text(encoding="utf-8")) for p in sorted((DESIGN / "examples").glob("*.curate"))]
    for page in sorted(DESIGN.glob("*.md")):
        blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks, 1):
            declares = re.match(
                r"(curate 1|tools|workflow|synthesis|evolve|recipe|benchmark) ?(\w+:? )?.*\{|curate 1", block
            )
            if declares and (block.startswith("curate 1") or page.name in ("synthesis.md", "evolution.md")):
                found.append((f"{page.name}:{number}", block))
    return found


@pytest.mark.skipif(not DESIGN.is_dir(), reason="no design pages beside the repository")
@pytest.mark.parametrize(("name", "text"), _snippets(), ids=lambda value: value[:30].split("\n")[0])
def test_snippets_of_the_design_parse(name: str, text: str) -> None:
    _clean(text, name)
