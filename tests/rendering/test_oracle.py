"""transformers is the oracle: the same text, ids and, where a template marks what is generated, the same mask."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatec.runtime.conversation.messages import Message, json_of
from curatec.runtime.rendering import Refusal, Rendered, Row, load
from tests.formats.conftest import shared_data  # noqa: F401 (a fixture)
from tests.rendering.conftest import Renderers
from tests.rendering.conversations import assistant, call, conversations, marks, schema, tau_runs, tool, user
from tests.rendering.styles import HERMES, LLAMA3, MISTRAL, STYLES, TINY, Style, expected
from tests.rendering.test_trained_text import learnt

pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fixed_date")]
LAX = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
styles = pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
_ANY = st.characters(exclude_categories=["Cs"])
Oracle = Callable[[Style], Any]


def applied(oracle: Any, messages: Sequence[Message], tools: Sequence[str] | None, **more: Any) -> Any:
    """What transformers makes of the conversation."""
    chat = [json.loads(json_of(message, "trl")) for message in messages]
    schemas = None if tools is None else [json.loads(text) for text in tools]
    return oracle.apply_chat_template(chat, tools=schemas, **more)


def agrees(oracle: Any, messages: Sequence[Message], tools: Sequence[str] | None, row: Rendered) -> None:
    assert row.text == applied(oracle, messages, tools, tokenize=False)
    assert row.input_ids == applied(oracle, messages, tools, return_dict=False)


@styles
@LAX
@given(data=st.data())
def test_texts_and_ids(renderers: Renderers, oracle: Oracle, style: Style, data: st.DataObject) -> None:
    messages = data.draw(conversations(style, st.text(_ANY, min_size=1)))
    tools = data.draw(st.sampled_from([None, [schema()], [schema(), schema("find", 'Say "ü" \\ <b>')]]))
    row = renderers(style).render(messages, tools)
    assert isinstance(row, Rendered)
    agrees(oracle(style), messages, tools, row)


@styles
def test_prompts(renderers: Renderers, oracle: Oracle, style: Style) -> None:
    for messages in ([user("a")], [user("a"), assistant("", call()), tool("x")]):
        row = renderers(style).render(messages, [schema()], prompt=True)
        assert isinstance(row, Rendered)
        assert row.text == applied(oracle(style), messages, [schema()], tokenize=False, add_generation_prompt=True)
        assert row.input_ids == applied(
            oracle(style), messages, [schema()], return_dict=False, add_generation_prompt=True
        )


@pytest.mark.parametrize("style", [TINY, HERMES], ids=lambda style: style.name)
@LAX
@given(data=st.data())
def test_masks(renderers: Renderers, oracle: Oracle, style: Style, data: st.DataObject) -> None:
    messages = data.draw(conversations(style))
    row = renderers(style).render(messages, None, marks(messages))
    assert isinstance(row, Rendered)
    told = applied(oracle(style), messages, None, return_dict=True, return_assistant_tokens_mask=True)
    assert [int(label != -100) for label in row.labels] == told["assistant_masks"]


@pytest.mark.parametrize(
    "more",
    [
        {"pad_token": "<|pad|>"},
        {"unk_token": {"content": "the", "__type": "AddedToken"}},
        {"extra_special_tokens": ["<|one|>", "<|two|>"]},
        {"additional_special_tokens": ["<|one|>"], "sep_token": "<|two|>"},
        {"added_tokens_decoder": {"9000": {"content": "<|one|>", "special": True}, "9001": {"content": "order"}}},
        {"added_tokens_decoder": {"9000": {"content": "<|two|>", "lstrip": True, "rstrip": True, "special": True}}},
    ],
)
def test_tokens_that_only_the_configuration_names(tmp_path: Path, more: dict[str, Any]) -> None:
    from transformers import AutoTokenizer

    folder = HERMES.write(tmp_path / "mine")
    config = json.loads((folder / "tokenizer_config.json").read_text()) | more
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    renderer, judge = load("mine", None, tmp_path, tmp_path, ()), AutoTokenizer.from_pretrained(folder)
    for text in ("the order <|one|> <|two|>\n<|pad|>", "order<|two|>the", "<|one|><|begin|>"):
        ids = judge(text, add_special_tokens=False)["input_ids"]
        assert renderer.tokenizer.encode(text, add_special_tokens=False).ids == ids
        assert renderer.count([text]) == [len(ids)]
    assert set(renderer.added.values()) == set(judge.added_tokens_encoder)


# ---- every run of tau-bench and tau2 ----


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> list[list[Message]]:  # noqa: F811
    if not (shared_data / "tau_bench").is_dir():
        pytest.skip("the collected runs are not there")
    return list(tau_runs(shared_data))


def nine(messages: Sequence[Message]) -> list[Message]:
    """Ids of calls as Mistral wants them."""
    ids = {c.id: f"{i:09}" for i, c in enumerate(c for m in messages for c in m.calls)}
    return [
        m._replace(calls=tuple(c._replace(id=ids[c.id]) for c in m.calls), call_id=ids.get(m.call_id or ""))
        for m in messages
    ]


def refusal(style: Style, messages: Sequence[Message]) -> str | None:
    """Why a style cannot say a run: what its template's comment says."""
    talk = [m for m in messages if m.role != "system"]
    if not messages:
        return "no_messages"
    if style is LLAMA3:
        called = any(m.calls for m in talk)
        if (called and talk[0].role != "user") or any(len(m.calls) > 1 for m in talk):
            return "template_raises"
        if any(m.calls and (m.content or "").strip() for m in talk):
            return "template_hides_trained_text"
    if style is MISTRAL:
        turns = [m.role for m in talk if m.role == "user" or (m.role == "assistant" and not m.calls)]
        if any(role != ("user", "assistant")[i % 2] for i, role in enumerate(turns)):
            return "template_raises"
    return None


@styles
def test_all_tau_runs(renderers: Renderers, oracle: Oracle, runs: list[list[Message]], style: Style) -> None:
    """Every run is refused for a reason that is known, or else text, ids, counts and trained text are right."""
    assert len(runs) == 570
    renderer, judge = renderers(style), oracle(style)
    shown = [nine(messages) if style is MISTRAL else messages for messages in runs]
    called = [sorted({json.loads(c.function)["name"] for m in run for c in m.calls}) for run in runs]
    tools = [[schema(name) for name in names] or None for names in called]
    rows = list(renderer.render_many([Row(m, t, marks(m)) for m, t in zip(shown, tools, strict=True)]))
    taken = 0
    for messages, schemas, row in zip(shown, tools, rows, strict=True):
        if isinstance(row, Refusal):
            assert row == refusal(style, messages), row.detail
            continue
        assert refusal(style, messages) is None
        agrees(judge, messages, schemas, row)
        weights = [float(m.role == "assistant") for m in messages]
        assert row.n_straddling == 0
        assert learnt(renderer, row) == expected(style, messages, weights, reasoning=True)
        taken += 1
    assert taken > 250
    counts = renderer.count([row.text for row in rows if isinstance(row, Rendered)])
    assert counts == [row.n_tokens for row in rows if isinstance(row, Rendered)]
