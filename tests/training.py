"""A tokenizer and a model so small that a real trainer runs in seconds. No weights are fetched."""

from __future__ import annotations

from typing import Any

# ChatML in short. {% generation %} stands around assistant messages that do not say "weight": 0.
TEMPLATE = """
{%- macro shown(m) %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}{% endmacro %}
{%- if tools %}{{ '<|s|>tools\n' }}
{%- for tool in tools %}{{ tool | tojson }}{{ '\n' }}{% endfor %}{{ '<|e|>\n' }}
{%- endif %}
{%- for m in messages %}{{ '<|s|>' + m.role + '\n' }}
{%- if m.role == 'assistant' and m.weight != 0 %}
{%- generation %}{{ shown(m) + '<|e|>' }}{% endgeneration %}{{ '\n' }}
{%- else %}{{ shown(m) + '<|e|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|s|>assistant\n' }}{% endif %}"""


def tokenizer() -> Any:
    """Bytes as tokens, so that nothing needs training and decoding is exact."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<|s|>", "<|e|>"]
    vocabulary = {token: i for i, token in enumerate([*special, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(special)
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<|e|>", chat_template=TEMPLATE)


def model(size: int) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config)
