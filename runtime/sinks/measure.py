"""How many tokens a row's texts are: exact after `render`, else estimated (UTF-8 bytes / 4, tool schemas apart)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curatec.compiler.text import estimate_tokens_py
from curatec.runtime.conversation import messages as m

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of tokens; of messages, or the template's reason (`rendering.Refusal`) for showing no such row."""

    renderer: Renderer | None
    form: m.Form = "trl"

    def texts(self, texts: Sequence[str]) -> int:
        """Of plain texts."""
        return sum(map(estimate_tokens_py, texts)) if self.renderer is None else sum(self.renderer.count(texts))

    def conversation(self, messages: Sequence[m.Message], tools: Sequence[str] | None) -> int | str:
        """Of a conversation as it is."""
        if self.renderer is None:
            return sum(message.tokens for message in messages)
        found = self.renderer.render(self._objects(messages), tools)
        return str(found) if isinstance(found, str) else found.n_tokens

    def prompt(self, messages: Sequence[m.Message], tools: Sequence[str] | None) -> int | str:
        """Of a prompt, with what asks the model for its turn."""
        told = self.conversation(messages, tools)
        if self.renderer is None or isinstance(told, str):
            return told
        from curatec.runtime.rendering.leaves import shown
        from curatec.runtime.rendering.template import TemplateRaised

        schemas = [json.loads(tool) for tool in tools] if tools else None
        texts = [shown(message) for message in self._objects(messages)]
        try:
            asked = self.renderer.templates[bool(schemas)](texts, schemas, prompt=True)
        except TemplateRaised:
            return "template_raises"
        return self.renderer.count([asked])[0]

    def _objects(self, messages: Sequence[m.Message]) -> Sequence[m.Message]:
        return messages if self.form == "trl" else [m.as_objects(message) for message in messages]
