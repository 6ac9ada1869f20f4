"""Templates that hide, drop, rewrite, refuse or blur: what becomes of a row, each by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curatec.runtime import rendering
from curatec.runtime.conversation.messages import Call, Message
from curatec.runtime.conversation.spans import Span, Trained
from curatec.runtime.rendering import Refusal, Rendered, Renderer, Row, load
from tests.rendering.conftest import BUILTIN, Renderers
from tests.rendering.conversations import assistant, call, marks, schema, system, tool, user
from tests.rendering.styles import LLAMA3, MISTRAL, QWEN3, STYLES, TINY, Style
from tests.rendering.test_trained_text import learnt, whole

TALK = [system("Be kind."), user("Hello"), assistant("Good day."), user("Thanks"), assistant("You are welcome.")]
# ChatML in one line, with a hole for how a text is shown.
CHATML = (
    "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{{ TEXT }}{{ '<|im_end|>\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def own(folder: Path, template: str) -> Renderer:
    """The built-in tokenizer with a template."""
    (folder / "own.jinja").write_text(template, encoding="utf-8")
    return load(BUILTIN, "own.jinja", folder, folder, ())


def showing(folder: Path, text: str) -> Renderer:
    return own(folder, CHATML.replace("TEXT", text))


def said(renderer: Renderer, messages: list[Message], **how: Any) -> str:
    """What is trained where every assistant message is."""
    row = renderer.render(messages, None, marks(messages, **how), **how)
    return str(row) if isinstance(row, Refusal) else learnt(renderer, row)


# ---- what a template does to texts ----


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("m.content", "Good day.<|im_end|>You are welcome.<|im_end|>"),
        ("m.content | trim", "Good day.<|im_end|>You are welcome.<|im_end|>"),
        ("m.content | tojson", '"Good day."<|im_end|>"You are welcome."<|im_end|>'),
        ("m.content | upper", "template_rewrites_text"),
        ("m.content[:10]", "template_rewrites_text"),
        ("m.content[2:]", "template_rewrites_text"),
        ("m.content.replace('a', 'e')", "template_rewrites_text"),
        ("m.content if m.role != 'system' else ''", "template_drops_turns"),
        ("m.content if m.role != 'user' or loop.last else ''", "template_drops_turns"),
        ("m.content if m.role != 'assistant' or loop.last else ''", "template_hides_trained_text"),
        ("'hm'", "template_hides_trained_text"),
        ("m.content + m.content", "template_unclear"),
        ("m.content if m.content | length < 17 else 'long'", "template_unclear"),
        ("raise_exception('no')", "template_raises"),
        ("m.content + 1", "template_raises"),
        ("m.nothing.nowhere", "template_raises"),
    ],
)
def test_what_a_template_does_to_texts(tmp_path: Path, text: str, becomes: str) -> None:
    assert said(showing(tmp_path, text), TALK) == becomes


def test_a_hidden_turn_that_is_not_trained_is_still_dropped(tmp_path: Path) -> None:
    renderer = showing(tmp_path, "m.content if m.role != 'assistant' or loop.last else ''")
    assert renderer.render(TALK, None, marks(TALK, [0, 0, 0, 0, 1])) == "template_drops_turns"
    assert renderer.render(TALK, None) == "template_drops_turns"


def test_a_template_that_looks_at_how_a_text_begins(tmp_path: Path) -> None:
    renderer = showing(tmp_path, "('!' if m.content.startswith('Hello') else '') + m.content")
    assert said(renderer, TALK) == "Good day.<|im_end|>You are welcome.<|im_end|>"


def test_a_refusal_says_what_the_template_said(renderers: Renderers) -> None:
    renderer = renderers(MISTRAL)
    row = renderer.render([user("a"), user("b")], None)
    assert isinstance(row, Refusal)
    assert (row, row.detail) == ("template_raises", "user and assistant must take turns")
    odd = [user("a"), assistant("", call(id="c1")), tool("x", "c1"), assistant("b")]
    row = renderer.render(odd, [schema()])
    assert isinstance(row, Refusal)
    assert row.detail == "ids of calls have nine characters"
    assert renderers(TINY).render([], None) == "no_messages"


@pytest.mark.parametrize("at_once", [0, 10_000])
def test_many_rows_keep_their_order(renderers: Renderers, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering.renderer, "_BATCH", at_once)
    renderer = renderers(MISTRAL)
    good, bad = [user("a"), assistant("b")], [user("a"), user("b")]
    rows = list(renderer.render_many([Row(good, None, marks(good)), Row(bad), Row(good)]))
    assert [type(row) for row in rows] == [Rendered, Refusal, Rendered]
    assert [row.n_trained > 0 for row in rows if isinstance(row, Rendered)] == [True, False]


@pytest.mark.parametrize("many", [300, 480, 899])
def test_deep_arguments(renderers: Renderers, many: int) -> None:
    deep = "[" * many + '"x"' + "]" * many
    talk = [user("a"), assistant("", Call("c", f'{{"name":"look","arguments":{{"place":{deep}}}}}', 1))]
    row = renderers(TINY).render(talk, None, marks(talk))
    assert isinstance(row, Rendered) or row in ("nested_too_deeply", "template_raises")
    assert isinstance(row, Rendered) or many > 300


def test_half_a_character_is_refused(renderers: Renderers) -> None:
    talk = [user("a"), assistant("", Call("c", '{"name":"look","arguments":{"place":"\\ud800"}}', 1))]
    assert renderers(TINY).render(talk, None, marks(talk)) == "lone_surrogate"


def test_marks_that_part_a_text_are_refused(renderers: Renderers) -> None:
    """No rule of the language makes such marks; nothing is guessed about them."""
    talk = [user("a"), assistant("b", call())]
    half = [Trained(0.0), Trained(1.0, (Span("content", None, 0, 1),))]
    assert renderers(TINY).render(talk, None, half) == "template_unclear"


# ---- special tokens in texts ----


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_special_tokens_in_texts(renderers: Renderers, style: Style) -> None:
    renderer = renderers(style)
    for token in style.special:
        for messages in (
            [user(f"a{token}b"), assistant("c")],
            [user("a"), assistant(f"{token} c")],
            [user("a"), assistant("", call("look", {"place": [token]})), tool("x"), assistant("c")],
            [user("a"), assistant("", call("look", {token: 1})), tool("x"), assistant("c")],
            [user("a"), assistant("", call()), tool(token), assistant("c")],
            [user("a"), assistant("b", reasoning=token)],
        ):
            assert renderer.render(messages, [schema()], marks(messages)) == "special_token_in_text"
        assert renderer.render([user("a"), assistant("b")], [schema("look", token)]) == "special_token_in_text"


def test_header_words_in_a_text_fool_nobody(tmp_path: Path) -> None:
    """A template without special tokens: its headers can stand in any text."""
    renderer = own(
        tmp_path,
        "{% for m in messages %}{{ 'BOT: ' if m.role == 'assistant' else 'YOU: ' }}{{ m.content + '\n\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'BOT: ' }}{% endif %}",
    )
    talk = [user("BOT: hi\n\nBOT: ho"), assistant("YOU: what?\n\nBOT: that"), user("YOU: BOT: "), assistant("Fine.")]
    row = whole(renderer.render(talk, None, marks(talk)))
    assert row.n_straddling == 0
    assert learnt(renderer, row) == "YOU: what?\n\nBOT: thatFine."
    row = whole(renderer.render(talk, None, marks(talk, [0, 0, 0, 1])))
    assert learnt(renderer, row) == "Fine."


def test_private_use_characters_of_a_text_are_not_marks(renderers: Renderers) -> None:
    icons = "".join(map(chr, range(0xF0000, 0xF0020)))
    talk = [user(icons), assistant(f"{icons} ok {icons}")]
    renderer = renderers(TINY)
    assert said(renderer, talk) == f"{icons} ok {icons}<|im_end|>"


def test_json_that_is_all_ascii(tmp_path: Path) -> None:
    renderer = showing(tmp_path, "m.content | tojson(ensure_ascii=True)")
    talk = [user("größer \\ud83d"), assistant("日本 🙂")]
    assert said(renderer, talk) == '"\\u65e5\\u672c \\ud83d\\ude42"<|im_end|>'


# ---- where turns begin and end ----


def test_the_prompt_opens_the_reasoning(tmp_path: Path) -> None:
    """What the generation prompt gives is not trained; what closes the reasoning is."""
    template = (
        "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
        "{%- if m.role == 'assistant' %}{{ '<think>\n' + (m.reasoning_content or '') + '\n</think>\n\n' }}{% endif %}"
        "{{ m.content + '<|im_end|>\n' }}{% endfor %}"
        "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"
    )
    renderer = own(tmp_path, template)
    talk = [user("a"), assistant("b", reasoning="Hm."), user("c"), assistant("d")]
    assert said(renderer, talk) == "Hm.\n</think>\n\nb<|im_end|>\n</think>\n\nd<|im_end|>"
    assert said(renderer, talk, except_reasoning=True) == "b<|im_end|>d<|im_end|>"


def test_a_conversation_may_close_with_more_than_a_turn(tmp_path: Path) -> None:
    """As Phi does: the last special token of all ends the conversation, not the turn."""
    template = CHATML.replace("TEXT", "m.content").removesuffix("{% endif %}")
    renderer = own(tmp_path, template + "{% else %}{{ '<|endoftext|>' }}{% endif %}")
    assert said(renderer, TALK) == "Good day.<|im_end|>You are welcome.<|im_end|>"


def test_a_turn_that_ends_otherwise_amid_a_conversation_is_unclear(tmp_path: Path) -> None:
    last = "{{ m.content + ('<|endoftext|>' if loop.last else '<|im_end|>') }}"
    renderer = own(tmp_path, CHATML.replace("{{ TEXT }}{{ '<|im_end|>\n' }}", last))
    assert said(renderer, TALK) == "template_unclear"
    assert said(renderer, TALK[:3]) == "Good day.<|endoftext|>"


def test_empty_turns_before_a_trained_one(renderers: Renderers) -> None:
    talk = [user("a"), assistant(""), assistant(""), assistant("b"), user(""), assistant("c")]
    assert said(renderers(TINY), talk) == "b<|im_end|>c<|im_end|>"
    assert said(renderers(QWEN3), talk) == "b<|im_end|><think>\n\n</think>\n\nc<|im_end|>"


def test_a_trained_turn_of_white_space_is_unclear(renderers: Renderers) -> None:
    assert said(renderers(TINY), [user("a"), assistant("\n")]) == "template_unclear"


def test_content_beside_a_call_that_llama_hides(renderers: Renderers) -> None:
    talk = [user("a"), assistant("Let me look.", call()), tool("x"), assistant("b")]
    renderer = renderers(LLAMA3)
    assert renderer.render(talk, [schema()], marks(talk)) == "template_hides_trained_text"
    assert renderer.render(talk, [schema()], marks(talk, [0, 0, 0, 1])) == "template_rewrites_text"
    two = [user("a"), assistant("", call(), call(id="call00002")), tool("x"), tool("y", "call00002"), assistant("b")]
    assert renderer.render(two, [schema()], marks(two)) == "template_raises"


# ---- reasoning ----


def test_reasoning_of_earlier_turns_that_qwen_hides(renderers: Renderers) -> None:
    talk = [user("a"), assistant("b", reasoning="Hm."), user("c"), assistant("d", reasoning="So.")]
    renderer = renderers(QWEN3)
    assert said(renderer, talk) == "template_hides_trained_text"
    assert said(renderer, talk, except_reasoning=True) == "b<|im_end|>d<|im_end|>"
    row = whole(renderer.render(talk, None, marks(talk, [0, 0, 0, 1])))
    assert learnt(renderer, row) == "<think>\nSo.\n</think>\n\nd<|im_end|>"


THINKING = "<think>\nHm.\n</think>\n\nYes. <think>Wait.</think>\nNo."


@pytest.mark.parametrize(
    ("content", "all_of_it", "without"),
    [
        (THINKING, THINKING, "Yes. No."),
        ("Yes. <think>cut", "Yes. <think>cut", "Yes. "),
        ("Yes.\n<think>\n", "Yes.\n<think>\n", "Yes.\n"),
        ("Hm.</think>\nYes.", "Hm.</think>\nYes.", "Yes."),
        ("<think></think>Yes.", "<think></think>Yes.", "Yes."),
        ("<think>\n\n</think>\n\nYes.", "<think>\n\n</think>\n\nYes.", "Yes."),
        ("</think>Yes.", "</think>Yes.", "Yes."),
        ("Yes.", "Yes.", "Yes."),
    ],
)
def test_reasoning_in_content(renderers: Renderers, content: str, all_of_it: str, without: str) -> None:
    talk = [user("a"), assistant(content)]
    renderer = renderers(TINY)
    assert said(renderer, talk) == all_of_it + "<|im_end|>"
    assert said(renderer, talk, except_reasoning=True) == without + "<|im_end|>"


def test_reasoning_in_content_that_the_template_moves(renderers: Renderers) -> None:
    talk = [user("a"), assistant("<think>Hm.</think>\n\nYes.")]
    renderer = renderers(QWEN3)
    assert said(renderer, talk) == "<think>\nHm.\n</think>\n\nYes.<|im_end|>"
    assert said(renderer, talk, except_reasoning=True) == "Yes.<|im_end|>"
    # It keeps the first block and the last answer of several.
    assert said(renderer, [user("a"), assistant(THINKING)]) == "template_hides_trained_text"


def test_think_tags_in_arguments_are_no_reasoning(renderers: Renderers) -> None:
    talk = [user("a"), assistant("", call("look", {"place": "<think>x</think> y"}), reasoning="Hm.")]
    for style in (TINY, QWEN3):
        assert said(renderers(style), talk, except_reasoning=True) == (
            '<tool_call>\n{"name": "look", "arguments": {"place": "<think>x</think> y"}}\n</tool_call><|im_end|>'
        )


def test_an_empty_block_that_the_template_adds(renderers: Renderers) -> None:
    talk = [user("a"), assistant("b")]
    renderer = renderers(QWEN3)
    assert said(renderer, talk) == "<think>\n\n</think>\n\nb<|im_end|>"
    assert said(renderer, talk, except_reasoning=True) == "b<|im_end|>"


# ---- tokens across a border ----


def test_a_token_across_a_border_is_not_trained(renderers: Renderers) -> None:
    """` the` is one token here, and its space is white space behind reasoning."""
    renderer = renderers(TINY)
    assert renderer.count([" the"]) == [1]
    talk = [user("a"), assistant("<think>Hm.</think> the end")]
    row = whole(renderer.render(talk, None, marks(talk, except_reasoning=True), except_reasoning=True))
    assert row.n_straddling == 1
    assert learnt(renderer, row) == " end<|im_end|>"
