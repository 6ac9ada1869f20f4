"""A tokenizer with its chat template: conversations → token ids, and which of them are trained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from curatec.runtime.conversation.messages import Message
from curatec.runtime.conversation.spans import Trained
from curatec.runtime.rendering.layout import Laid, Layout
from curatec.runtime.rendering.mask import IGNORED, masked
from curatec.runtime.rendering.rows import Refusal, Rendered, Row
from curatec.runtime.rendering.shape import Shape
from curatec.runtime.rendering.template import Template

if TYPE_CHECKING:
    from tokenizers import Tokenizer

T = TypeVar("T")
_BATCH = 2_000_000  # code points that are tokenized at once


@dataclass(frozen=True)
class Renderer:
    """Everything is a function of the tokenizer's and the template's bytes: `digest`, `template_digest`."""

    name: str
    digest: str
    template_digest: str
    tokenizer: Tokenizer = field(repr=False)
    templates: Mapping[bool, Template] = field(repr=False)  # by whether tools are shown
    shapes: Mapping[bool, Shape] = field(repr=False)
    special: re.Pattern[str] | None = field(repr=False)
    added: Mapping[int, str] = field(repr=False)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of plain texts; no special tokens are added."""
        return [len(found) for batch in _batches(texts, len) for found in self._encode(batch)]

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[str] | None,
        marks: Sequence[Trained] | None = None,
        *,
        except_reasoning: bool = False,
        prompt: bool = False,
    ) -> Rendered | Refusal:
        """One conversation as `render_many` renders it."""
        return next(self.render_many([Row(messages, tools, marks, except_reasoning, prompt)]))

    def render_many(self, rows: Iterable[Row]) -> Iterator[Rendered | Refusal]:
        """Each row's tokens with the mask, or why it is refused; some rows at a time, as many as `_BATCH` holds."""
        layout = Layout(self.templates, self.shapes, self.special)
        for batch in _batches((layout(Row(*row)) for row in rows), _length):
            laid = [one for one in batch if isinstance(one, Laid)]
            offsets = any(one.places for one in laid)
            encodings = iter(self._encode([one.text for one in laid], offsets=offsets))
            for one in batch:
                yield one if isinstance(one, Refusal) else self._rendered(one, next(encodings))

    def _encode(self, texts: list[str], *, offsets: bool = False) -> list[Any]:
        """Encodings without offsets are made in less time."""
        encode = self.tokenizer.encode_batch if offsets else self.tokenizer.encode_batch_fast
        return list(encode(texts, add_special_tokens=False))

    def _rendered(self, laid: Laid, encoding: Any) -> Rendered:
        ids: list[int] = encoding.ids
        if not laid.places:
            return Rendered(laid.text, ids, [IGNORED] * len(ids), len(ids), 0)
        labels, straddling = masked(laid.text, ids, encoding.offsets, laid.places, self.added)
        return Rendered(laid.text, ids, labels, len(ids), len(ids) - labels.count(IGNORED), straddling)


def _batches(items: Iterable[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += length(item)
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _length(laid: Laid | Refusal) -> int:
    return len(laid.text) if isinstance(laid, Laid) else 0
