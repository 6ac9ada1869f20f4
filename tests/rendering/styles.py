"""Tokenizers and templates of the project's own, in four styles, and what each style would say: the second opinion.

`expected` puts together by hand the text that the spec trains of one message. It knows no marks and no shapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from curatec.runtime.conversation.messages import Message
from curatec.runtime.rendering.tiny import corpus

FIXTURES = Path(__file__).parent / "fixtures"
Say = Callable[[Message, bool, bool], tuple[str, str]]


@dataclass(frozen=True)
class Style:
    name: str
    special: tuple[str, ...]
    names: dict[str, str]
    says: Say
    end: str
    tags: tuple[str, ...] = ()
    shows_reasoning: bool = False  # where the template reads `reasoning_content` at all

    def write(self, folder: Path) -> Path:
        """A tokenizer's folder as a model of the hub has it."""
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer(self).save(str(folder / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **self.names}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        (folder / "chat_template.jinja").write_text((FIXTURES / f"{self.name}.jinja").read_text())
        return folder


@cache
def _words(size: int) -> str:
    """A byte-level BPE without special tokens, as JSON."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(corpus(), trainer)
    return made.to_str()


def tokenizer(style: Style, size: int = 700) -> Any:
    """Its post-processor adds special tokens and trims offsets, which must change nothing."""
    from tokenizers import AddedToken, Tokenizer, processors

    made = Tokenizer.from_str(_words(size))
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in style.special])
    made.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in style.tags])
    first = style.special[0]
    adds = processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, made.token_to_id(first))])
    made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), adds])
    return made


# ---- what each style says of an assistant message ----


def functions(message: Message) -> list[dict[str, Any]]:
    return [json.loads(call.function) for call in message.calls]


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _pair(name: str, arguments: Any, key: str = "arguments") -> str:
    return f'{{"name": "{name}", "{key}": {dumps(arguments)}}}'


def _chatml_calls(message: Message, *, first_break: bool) -> str:
    calls = [f"<tool_call>\n{_pair(f['name'], f['arguments'])}\n</tool_call>" for f in functions(message)]
    return ("\n" if calls and first_break else "") + "\n".join(calls)


# Each gives the block of reasoning as shown ("" for none) and the rest of what the model says. `behind`: the message
# stands behind the last request of the user.


def _tiny(message: Message, behind: bool, last: bool) -> tuple[str, str]:
    content = message.content or ""
    block = f"<think>\n{message.reasoning.strip(chr(10))}\n</think>\n\n" if message.reasoning else ""
    return block, content + _chatml_calls(message, first_break=bool(content))


def _qwen3(message: Message, behind: bool, last: bool) -> tuple[str, str]:
    said, content = message.reasoning or "", message.content or ""
    calls = _chatml_calls(message, first_break=bool(content))
    if behind and (said or last):
        return f"<think>\n{said.strip(chr(10))}\n</think>\n\n", content.lstrip("\n") + calls
    return "", content + calls


def _llama3(message: Message, behind: bool, last: bool) -> tuple[str, str]:
    if message.calls:
        (only,) = functions(message)
        return "", _pair(only["name"], only["arguments"], "parameters")
    return "", (message.content or "").strip()


def _mistral(message: Message, behind: bool, last: bool) -> tuple[str, str]:
    content = message.content or ""
    if not message.calls:
        return "", content
    calls = [
        f'{_pair(f["name"], f["arguments"])[:-1]}, "id": "{call.id}"}}'
        for f, call in zip(functions(message), message.calls, strict=True)
    ]
    return "", f"{content}[TOOL_CALLS][{', '.join(calls)}]"


def _hermes(message: Message, behind: bool, last: bool) -> tuple[str, str]:
    calls = [f"\n<tool_call>\n{dumps(f)}\n</tool_call>" for f in functions(message)]
    return "", (message.content or "") + "".join(calls)


def expected(style: Style, messages: Sequence[Message], weights: Sequence[float], *, reasoning: bool) -> str:
    """The trained text of a row, one message after the other. Without reasoning the white space behind it goes too."""
    request = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    said = []
    for i, (message, weight) in enumerate(zip(messages, weights, strict=True)):
        if weight:
            block, rest = style.says(message, i > request, i == len(messages) - 1)
            said.append((block + rest if reasoning or not block else rest.lstrip()) + style.end)
    return "".join(said)


_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
TINY = Style("tiny", _CHATML, {}, _tiny, "<|im_end|>", _TAGS, shows_reasoning=True)
QWEN3 = Style("qwen3", _CHATML, {"eos_token": "<|im_end|>"}, _qwen3, "<|im_end|>", _TAGS, shows_reasoning=True)
LLAMA3 = Style(
    "llama3",
    ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
    {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    _llama3,
    "<|eot_id|>",
)
MISTRAL = Style(
    "mistral",
    ("<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]",
     "[/TOOL_RESULTS]"),
    {"bos_token": "<s>", "eos_token": "</s>"},
    _mistral,
    "</s>",
)  # fmt: skip
HERMES = Style(
    "hermes",
    ("<|begin|>", "<|im_start|>", "<|im_end|>"),
    {"bos_token": "<|begin|>", "eos_token": "<|im_end|>"},
    _hermes,
    "<|im_end|>",
)
STYLES = (TINY, QWEN3, LLAMA3, MISTRAL, HERMES)
