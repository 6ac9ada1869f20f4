"""The files of `builtin:tiny-qwen3`: `curatec.runtime.rendering.tiny` makes the tokenizer, the template is by hand."""
