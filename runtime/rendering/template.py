"""Chat templates: Jinja with the names and the filters that the Hugging Face convention gives them.

Source of the convention: https://huggingface.co/docs/transformers/chat_templating_writing. A template is code from
elsewhere: it runs in an immutable sandbox, and whatever it raises becomes `TemplateRaised`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

# A template that asks for the date gets this one, so that equal inputs give equal rows.
TODAY = datetime(2025, 1, 1)
_OPEN, _CLOSE = "curatec_generation_opens", "curatec_generation_closes"


class TemplateRaised(Exception):
    """The template refused the conversation or failed on it. The message is one line."""

    def __init__(self, error: Exception) -> None:
        super().__init__(" ".join(str(error).split())[:200] or type(error).__name__)


class _Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}`: what the model would write. Its ends are marked where marks are given."""

    tags = {"generation"}  # noqa: RUF012 (jinja's own interface)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        ends = [nodes.Output([nodes.Name(name, "load")]).set_lineno(line) for name in (_OPEN, _CLOSE)]
        return nodes.Scope([ends[0], *body, ends[1]]).set_lineno(line)


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template and the special tokens that it may name, such as `bos_token`."""

    compiled: jinja2.Template
    names: Mapping[str, str]

    def __call__(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] | None,
        *,
        prompt: bool = False,
        marks: tuple[str, str] = ("", ""),
    ) -> str:
        """The conversation as text. `prompt` adds what asks the model for its turn; `marks` go around what the
        template itself calls generated. Raises TemplateRaised."""
        around = dict(zip((_OPEN, _CLOSE), marks, strict=True))
        try:
            return self.compiled.render(
                **self.names, **around, messages=messages, tools=tools, documents=None, add_generation_prompt=prompt
            )
        except Exception as error:  # any: the template's code decides what it does with texts and nulls
            raise TemplateRaised(error) from None


def compile_template(text: str, names: Mapping[str, str]) -> Template:
    """Raises jinja2.TemplateSyntaxError."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = TODAY.strftime
    return Template(environment.from_string(text), dict(names))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter writes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)
