"""Makes `builtin:tiny-qwen3`: a byte-level tokenizer of 600 tokens in the manner of Qwen3.

Its texts are written here, so that anyone can make the files again and get the same bytes:
`python -m curatec.runtime.rendering.tiny FOLDER`. The template beside the files is written by hand.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

SIZE = 600
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Tags are text: a trainer that decodes without special tokens still sees calls and reasoning.
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

_WHO = ("the customer", "the agent", "a user", "the model", "the assistant", "our team")
_DOES = ("asks for", "cancels", "books", "changes", "looks up", "confirms", "returns", "cannot find", "pays for")
_WHAT = ("the order", "a reservation", "the flight", "this item", "an account", "the address", "a refund", "the file")
_WHEN = ("today", "before the delivery", "after the payment", "in the morning", "as the policy says", "once more")
_SAYS = (
    "I can help you with that. Could you please provide your user id and the order number?",
    "Thank you for the information. Let me check the details of your reservation for you.",
    "I have found the order. The total is 42.50 dollars, and it was paid by credit card.",
    "I am sorry, but I am not able to do this. Would you like me to transfer you to a human agent?",
    "First I need to know what the tool returned. The result says that there is no such item, so I try another name.",
    "The test fails because the function returns the wrong value. I will read the file and then change the line.",
    "What is the status of my request? I would like to return one of the products that I bought last week.",
    "You are a helpful assistant. Follow the policy, use the tools, and never make up information.",
    "Yes, please go ahead. No, that is all. Thanks for your help, have a nice day!",
)
_TOOLS = ("get_order", "search_items", "update_address", "cancel_order", "read_file", "run_command", "send_message")
_KEYS = ("order_id", "user_id", "name", "query", "path", "amount", "status", "date", "items", "reason")
_VALUES = ("W1234567", "pending", "2025-01-31", "src/main.py", "delivered", 42, 17.5, True, None, ["a", "b"])


def corpus() -> Iterator[str]:
    """English, calls and results in the words of agents."""
    for who, does, what, when in itertools.product(_WHO, _DOES, _WHAT, _WHEN):
        yield f"{who[0].upper()}{who[1:]} {does} {what} {when}. "
    for says in _SAYS:
        yield from (says,) * 40
    for tool, key, value in itertools.product(_TOOLS, _KEYS, _VALUES):
        yield json.dumps({"name": tool, "arguments": {key: value}})
        yield json.dumps({key: value, "success": True, "error": None}, indent=1)
    for tool, key in itertools.product(_TOOLS, _KEYS):
        members = {key: {"type": "string", "description": f"The {key.replace('_', ' ')}."}}
        parameters = {"type": "object", "properties": members, "required": [key]}
        said = {"name": tool, "description": f"{tool.replace('_', ' ')}.", "parameters": parameters}
        yield json.dumps({"type": "function", "function": said})


def make(folder: Path) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    # Words with the space before them, single digits, runs of signs, line ends, white space.
    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE - len(SPECIAL) - len(TAGS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(corpus(), trainer)
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    made.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 131072,
    }
    for name, value in (("tokenizer.json", json.loads(made.to_str())), ("tokenizer_config.json", config)):
        text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
