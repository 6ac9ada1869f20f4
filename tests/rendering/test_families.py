"""The chat templates that TRL ships, as a second opinion: each training template marks what is generated.

What is trained is found with these marks and without; header and white space at the ends are the only difference.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from curatec.runtime.conversation.messages import Message, json_of
from curatec.runtime.rendering import Rendered, Renderer, load
from tests.rendering.conversations import assistant, call, marks, schema, system, tool, user
from tests.rendering.styles import HERMES, Style, tokenizer
from tests.rendering.test_trained_text import learnt

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fixed_date")]
trl = pytest.importorskip("trl")
TEMPLATES = {
    path.stem: path for path in sorted((Path(trl.__file__).parent / "chat_templates").glob("*_training.jinja"))
}
# What looks like a special token of some family.
SPECIAL = re.compile(
    r"<\|[^|<>'\s]+\|>|<｜[^｜]+｜>|</?s>|<(?:start|end)_of_turn>|<\|?turn\|?>|<channel\|>|<\|channel>|<\|?tool_\w+\|?>"
)
GENERATION = re.compile(r"(\{%-?\s*)(end)?generation(\s*-?%\})")

CONVERSATIONS: dict[str, tuple[list[Message], list[str] | None]] = {
    "plain": ([system("Be kind."), user("look"), assistant("So.\nReally."), user("why"), assistant("Because.")], None),
    "bare": ([user("look"), assistant("So."), user("why"), assistant("Because.")], None),
    "call": (
        [user("look"), assistant("", call("look", {"place": "é", "n": 2})), tool("sunny"), assistant("It is sunny.")],
        [schema()],
    ),
    "calls": (
        [
            user("look"),
            assistant("", call("look", {"place": "roof"}), call("look", {"place": "floor"}, "call00002")),
            tool("sunny"),
            tool("dark", "call00002"),
            assistant("Fine."),
        ],
        [schema()],
    ),
    "reasoning": (
        [
            user("look"),
            assistant("ok", call(), reasoning="I look"),
            tool("sunny"),
            assistant("Fine.", reasoning="Done"),
        ],
        [schema()],
    ),
}
# Nothing of these is read: one ends its last turn otherwise than all others, some want contents of another shape. They
# are refused and not read wrongly.
UNREAD = {"gptoss", "idefics3", "llava_next", "smolvlm"}


def family(text: str, folder: Path) -> Renderer:
    special = tuple(dict.fromkeys(["<s>", "</s>", *SPECIAL.findall(text)]))
    names = {"bos_token": "<s>", "eos_token": "</s>"}
    tokenizer(Style("family", special, names, HERMES.says, ""), 300).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    (folder / "chat_template.jinja").write_text(text, encoding="utf-8")
    return load(str(folder), None, folder, folder, ())


def spans(text: str, messages: list[Message], tools: list[str] | None) -> tuple[str, list[str]]:
    from transformers.utils.chat_template_utils import render_jinja_template

    chat: list[dict[str, Any]] = [json.loads(json_of(message, "trl")) for message in messages]
    schemas = None if tools is None else [json.loads(one) for one in tools]
    (rendered,), (generated,) = render_jinja_template(
        [chat], schemas, chat_template=text, return_assistant_tokens_mask=True, bos_token="<s>", eos_token="</s>"
    )
    return rendered, [rendered[start:end] for start, end in generated]


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_training_template_agrees(name: str, marked: bool, tmp_path: Path) -> None:
    text = TEMPLATES[name].read_text(encoding="utf-8")
    bare_text = GENERATION.sub(lambda tag: f"{tag[1]}{'endif' if tag[2] else 'if true'}{tag[3]}", text)
    renderer = family(text if marked else bare_text, tmp_path)
    headers = renderer.shapes[False].headers.values()
    given = next((header.given.strip() for header in headers), "")

    def bare(generated: str) -> str:
        """Without header; some templates also mark what the prompt gives."""
        for header in headers:
            generated = generated.removeprefix(header.text)
        return generated.strip().removeprefix(given).strip()

    read = 0
    for messages, tools in CONVERSATIONS.values():
        row = renderer.render(messages, tools, marks(messages))
        if not isinstance(row, Rendered):
            continue
        read += 1
        rendered, generated = spans(text, messages, tools)
        assert row.text == rendered
        # Phi closes a conversation with a second token of its own.
        wanted = [bare(one) for one in generated if one != "</s>"]
        had = learnt(renderer, row)
        for one in wanted:
            at = had.find(one)
            assert at >= 0
            assert had[:at].strip() in ("", given)
            had = had[at + len(one) :]
        assert not had.strip()
    assert read or name.removesuffix("_training") in UNREAD
