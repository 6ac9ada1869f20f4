"""A tokenizer with its chat template: conversations → token ids, and which of them are trained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from curatec.runtime.conversation.messages import Message
from curatec.runtime.conversation.spans import Trained
from curatec.runtime.rendering.leaves import Leaf, Marked, Place, Seen, find, forms, mark, shown
from curatec.runtime.rendering.mask import IGNORED, masked
from curatec.runtime.rendering.regions import Unclear, trained_places
from curatec.runtime.rendering.shape import Shape
from curatec.runtime.rendering.template import Template, TemplateRaised

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BATCH = 2_000_000  # code points that are tokenized at once


class Row(NamedTuple):
    """One conversation. `tools` are JSON texts of schemas; `marks` one a message, None where nothing is trained.
    `except_reasoning` also leaves out the empty blocks of reasoning that a template writes."""

    messages: Sequence[Message]
    tools: Sequence[str] | None = None
    marks: Sequence[Trained] | None = None
    except_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """`labels` has the id of each trained token and -100 elsewhere. `n_straddling` counts tokens that hold trained and
    other text; they are not trained. With usual templates there are none: borders are special tokens."""

    text: str
    input_ids: list[int]
    labels: list[int]
    n_tokens: int
    n_trained: int
    n_straddling: int = 0


class Refusal(str):
    """Why a row is refused, one of a few words that can be counted. `detail` is what the template said.

    - `no_messages`
    - `special_token_in_text`: a text holds a special token, which would be read as one
    - `template_raises`: the template refused the conversation
    - `template_drops_turns`: nothing of a message is shown
    - `template_rewrites_text`: a text is shown in part, or otherwise than it was written
    - `template_hides_trained_text`: a text that is to be trained is not shown
    - `template_unclear`: what is trained cannot be told apart for certain
    """

    __slots__ = ("detail",)
    detail: str

    def __new__(cls, reason: str, detail: str = "") -> Refusal:
        made = super().__new__(cls, reason)
        made.detail = detail
        return made


@dataclass(frozen=True, slots=True)
class Laid:
    """A rendered conversation before it is tokenized."""

    text: str
    places: list[Place] = field(default_factory=list)


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
        return [len(found) for batch in _batches(texts) for found in self._encode(batch)]

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[str] | None,
        marks: Sequence[Trained] | None = None,
        *,
        except_reasoning: bool = False,
    ) -> Rendered | Refusal:
        """One conversation as `render_many` renders it."""
        return self.render_many([Row(messages, tools, marks, except_reasoning)])[0]

    def render_many(self, rows: Iterable[Row]) -> list[Rendered | Refusal]:
        """Each row's tokens with the mask, or why it is refused."""
        layout = _Layout(self)
        laid = [layout(Row(*row)) for row in rows]
        texts = [one.text for one in laid if isinstance(one, Laid)]
        offsets = any(isinstance(one, Laid) and one.places for one in laid)
        encodings = (found for batch in _batches(texts) for found in self._encode(batch, offsets=offsets))
        return [one if isinstance(one, Refusal) else self._rendered(one, next(encodings)) for one in laid]

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


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Layout:
    """Rows → text and places. Lists of tools, which many rows share, are parsed once."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self.tools: dict[tuple[str, ...], list[Any] | Refusal] = {}

    def __call__(self, row: Row) -> Laid | Refusal:
        if not row.messages:
            return Refusal("no_messages")
        tools = None if row.tools is None else self._tools(tuple(row.tools))
        messages = [shown(message) for message in row.messages]
        if isinstance(tools, Refusal):
            return tools
        if self._injects(messages):
            return Refusal("special_token_in_text")
        template, shape = self.renderer.templates[bool(tools)], self.renderer.shapes[bool(tools)]
        try:
            text = template(messages, tools)
            marked, seen = _seen(template, messages, tools, text)
            fault = _fault(messages, row.marks, marked.leaves, seen)
            if fault is not None:
                return Refusal(fault)
            if row.marks is None:
                return Laid(text)
            places = trained_places(
                messages, row.marks, marked.leaves, seen, shape, except_reasoning=row.except_reasoning
            )
        except TemplateRaised as error:
            return Refusal("template_raises", str(error))
        except Unclear as error:
            return Refusal(error.reason)
        return Laid(text, places)

    def _tools(self, texts: tuple[str, ...]) -> list[Any] | Refusal:
        if texts not in self.tools:
            parsed = [json.loads(text) for text in texts]
            self.tools[texts] = Refusal("special_token_in_text") if self._injects(parsed) else parsed
        return self.tools[texts]

    def _injects(self, value: Any) -> bool:
        special = self.renderer.special
        return special is not None and any(special.search(text) for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


# ---- what the template did to the texts ----


def _seen(
    template: Template, messages: list[dict[str, Any]], tools: list[Any] | None, text: str
) -> tuple[Marked, Seen]:
    """Where the texts went. Marks must not change what the template writes; one that looks at how a text begins or ends
    is asked again with marks in assistant messages only. Raises TemplateRaised, Unclear."""
    for marks in (lambda role: True, lambda role: role == "assistant"):
        marked = mark(messages, marks)
        seen = find(template(marked.messages, tools, marks=marked.generation), marked)
        if seen.text == text:
            return marked, seen
    whole = all(
        leaf.thought or any(form in text for form in forms(leaf)) for leaf in mark(messages, lambda _: True).leaves
    )
    raise Unclear("template_unclear" if whole else "template_rewrites_text")


def _fault(
    messages: list[dict[str, Any]], marks: Sequence[Trained] | None, leaves: Sequence[Leaf], seen: Seen
) -> str | None:
    """What the template left out or changed; None where it shows all that it should."""
    shown_of = {leaf.message for n, leaf in enumerate(leaves) if n in seen.places}
    fault = None
    for n, leaf in enumerate(leaves):
        trains = marks is not None and _trains(marks[leaf.message], leaf)
        spots = seen.places.get(n)
        if spots is None:
            if trains:
                return "template_hides_trained_text"
            if leaf.thought:
                continue
            fault = fault or ("template_rewrites_text" if leaf.message in shown_of else "template_drops_turns")
        elif any(spot is None or seen.text[spot.start : spot.end] not in forms(leaf) for spot in spots):
            fault = fault or "template_rewrites_text"
    return fault or _unmarked_fault(messages, leaves, seen)


def _trains(trained: Trained, leaf: Leaf) -> bool:
    if not trained.weight:
        return False
    return any(
        span.part == leaf.part
        and span.call == leaf.call
        and (leaf.part == "call" or (span.start < leaf.end and leaf.start < span.end))
        for span in trained.spans
    )


def _unmarked_fault(messages: list[dict[str, Any]], leaves: Sequence[Leaf], seen: Seen) -> str | None:
    """Texts that bear no marks are looked for in the whole text."""
    bearing = {leaf.message for leaf in leaves}
    for i, message in enumerate(messages):
        core = message["content"].strip()
        leaf = Leaf(i, "content", None, 0, len(core), core)
        if (
            message["role"] != "assistant"
            and core
            and i not in bearing
            and not any(form in seen.text for form in forms(leaf))
        ):
            return "template_drops_turns"
    return None
