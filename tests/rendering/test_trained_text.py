"""What is trained, proved by decoding: the trained tokens of a row read as the rule, put together by hand, says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatec.runtime.rendering import Refusal, Rendered, Renderer
from tests.rendering.conftest import Renderers
from tests.rendering.conversations import (
    RAGGED,
    TIGHT,
    assistant,
    call,
    conversations,
    marks,
    schema,
    system,
    tool,
    user,
)
from tests.rendering.styles import HERMES, MISTRAL, QWEN3, STYLES, TINY, Style, expected

LAX = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
styles = pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)


def learnt(renderer: Renderer, row: Rendered) -> str:
    text: str = renderer.tokenizer.decode([label for label in row.labels if label != -100], skip_special_tokens=False)
    return text


def whole(row: Any) -> Rendered:
    assert isinstance(row, Rendered), (row, getattr(row, "detail", ""))
    assert row.n_tokens == len(row.input_ids) == len(row.labels)
    assert row.n_trained == sum(label != -100 for label in row.labels)
    assert all(label in (-100, token) for label, token in zip(row.labels, row.input_ids, strict=True))
    return row


@styles
@LAX
@given(data=st.data())
def test_trained_text_is_what_the_rule_says(renderers: Renderers, style: Style, data: st.DataObject) -> None:
    renderer = renderers(style)
    said = data.draw(st.sampled_from([TIGHT, RAGGED]))
    messages = data.draw(conversations(style, said))
    except_reasoning = data.draw(st.booleans())
    weights = [float(m.role == "assistant" and data.draw(st.booleans())) for m in messages]
    request = max(i for i, m in enumerate(messages) if m.role == "user")
    if style is QWEN3 and not except_reasoning:  # it hides the reasoning of earlier turns
        weights = [
            0.0 if i < request and m.reasoning else w for i, (m, w) in enumerate(zip(messages, weights, strict=True))
        ]
    tools = data.draw(st.sampled_from([None, [schema()]]))
    marked = marks(messages, weights, except_reasoning=except_reasoning)
    row = whole(renderer.render(messages, tools, marked, except_reasoning=except_reasoning))
    wanted = expected(style, messages, weights, reasoning=not except_reasoning)
    if row.n_straddling:  # white space at a border became one token with what is not trained
        assert said is RAGGED
        assert len(learnt(renderer, row)) < len(wanted)
    else:
        assert learnt(renderer, row) == wanted


_TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "a", "b c", " ", "\n", "<think>\n", "\n</think>\n\n"]),
    min_size=1,
    max_size=8,
).map("".join)


def spoken(content: str) -> str:
    """Content without its blocks of reasoning, as `thinking` describes them."""
    started_inside = re.match(r"(?:(?!<think>).)*?</think>\s*", content, re.DOTALL)
    rest = content[started_inside.end() :] if started_inside else content
    return re.sub(r"<think>.*?(?:</think>\s*|\Z)", "", rest, flags=re.DOTALL)


@pytest.mark.parametrize("style", [TINY, HERMES, MISTRAL], ids=lambda style: style.name)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=_TAGGED, except_reasoning=st.booleans())
def test_reasoning_anywhere_in_content(
    renderers: Renderers, style: Style, content: str, except_reasoning: bool
) -> None:
    """Of templates that show content as it is."""
    messages = [user("a"), assistant(content), user("b"), assistant("end")]
    renderer, marked = renderers(style), marks(messages, except_reasoning=except_reasoning)
    row = renderer.render(messages, None, marked, except_reasoning=except_reasoning)
    words = re.sub(r"</?think>", "", content).strip()
    if isinstance(row, Refusal):  # there is no text to follow
        assert row == "template_unclear"
        assert not words
        return
    said = spoken(content) if except_reasoning else content
    wanted = (said + style.end if said.strip() else "") + "end" + style.end
    assert row.n_straddling or learnt(renderer, row) == wanted


@styles
def test_a_row_by_hand(renderers: Renderers, style: Style) -> None:
    messages = [
        system("Be kind."),
        user("look at the roof"),
        assistant("", call("look", {"place": "roof", "n": 2})),
        tool("sunny"),
        assistant("It is sunny."),
    ]
    renderer = renderers(style)
    row = whole(renderer.render(messages, [schema()], marks(messages)))
    said = {
        "tiny": '<tool_call>\n{"name": "look", "arguments": {"place": "roof", "n": 2}}\n</tool_call><|im_end|>'
        "It is sunny.<|im_end|>",
        "qwen3": '<tool_call>\n{"name": "look", "arguments": {"place": "roof", "n": 2}}\n</tool_call><|im_end|>'
        "<think>\n\n</think>\n\nIt is sunny.<|im_end|>",
        "llama3": '{"name": "look", "parameters": {"place": "roof", "n": 2}}<|eot_id|>It is sunny.<|eot_id|>',
        "mistral": '[TOOL_CALLS][{"name": "look", "arguments": {"place": "roof", "n": 2}, "id": "call00001"}]</s>'
        "It is sunny.</s>",
        "hermes": '\n<tool_call>\n{"name": "look", "arguments": {"place": "roof", "n": 2}}\n</tool_call><|im_end|>'
        "It is sunny.<|im_end|>",
    }
    assert learnt(renderer, row) == said[style.name]
    assert row.n_tokens == renderer.count([row.text])[0]
