"""A conversation as text, with the places that are trained, or why it is refused.

A template may do with texts what it likes. It is asked twice, once with marks around every text, and a row is taken
only if each of its texts is found where it should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from curatec.runtime.conversation.spans import Trained
from curatec.runtime.rendering.leaves import Leaf, Marked, Place, Seen, find, forms, mark, shown
from curatec.runtime.rendering.regions import Refused, trained_places
from curatec.runtime.rendering.rows import Refusal, Row
from curatec.runtime.rendering.shape import Shape
from curatec.runtime.rendering.template import Template, TemplateRaised


@dataclass(frozen=True, slots=True)
class Laid:
    """A rendered conversation before it is tokenized."""

    text: str
    places: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """`templates` and `shapes` by whether tools are shown. Lists of tools, which many rows share, are parsed once."""

    templates: Mapping[bool, Template]
    shapes: Mapping[bool, Shape]
    special: re.Pattern[str] | None
    _tools: dict[tuple[str, ...], list[Any]] = field(default_factory=dict)

    def __call__(self, row: Row) -> Laid | Refusal:
        try:
            laid = self._lay(row)
            laid.text.encode()
        except TemplateRaised as error:
            return Refusal("template_raises", str(error))
        except Refused as error:
            return Refusal(error.reason)
        except RecursionError:
            return Refusal("nested_too_deeply")
        except UnicodeEncodeError:  # JSON can say half of a character
            return Refusal("lone_surrogate")
        return laid

    def _lay(self, row: Row) -> Laid:
        if not row.messages:
            raise Refused("no_messages")
        messages = [shown(message) for message in row.messages]
        tools = None if row.tools is None else self._schemas(tuple(row.tools))
        self._refuse_special(messages)
        template, shape = self.templates[bool(tools)], self.shapes[bool(tools)]
        render = partial(template, tools=tools, prompt=row.prompt)
        marked, seen = _seen(render, messages)
        _check_texts(messages, row.marks, marked.leaves, seen)
        if row.marks is None:
            return Laid(seen.text)
        places = trained_places(messages, row.marks, marked.leaves, seen, shape, except_reasoning=row.except_reasoning)
        return Laid(seen.text, places)

    def _schemas(self, texts: tuple[str, ...]) -> list[Any]:
        if texts not in self._tools:
            parsed = [json.loads(text) for text in texts]
            self._refuse_special(parsed)
            self._tools[texts] = parsed
        return self._tools[texts]

    def _refuse_special(self, value: Any) -> None:
        if self.special is not None and any(self.special.search(text) for text in _texts(value)):
            raise Refused("special_token_in_text")


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


def _seen(render: Callable[..., str], messages: list[dict[str, Any]]) -> tuple[Marked, Seen]:
    """Where the texts went. Marks must not change what the template writes; one that looks at how a text begins or ends
    is asked again with marks in assistant messages only. Raises TemplateRaised, Refused."""
    text = render(messages)
    for marks in (lambda role: True, lambda role: role == "assistant"):
        marked = mark(messages, marks)
        seen = find(render(marked.messages, marks=marked.generation), marked)
        if seen.text == text:
            return marked, seen
    spoken = [leaf.text for leaf in mark(messages, lambda _: True).leaves if not leaf.thought]
    whole = all(any(form in text for form in forms(one)) for one in spoken)
    raise Refused("template_unclear" if whole else "template_rewrites_text")


def _check_texts(
    messages: list[dict[str, Any]], marks: Sequence[Trained] | None, leaves: Sequence[Leaf], seen: Seen
) -> None:
    """Raises Refused for what the template left out or changed. Reasoning that is not trained may be hidden."""
    shown_of = {leaf.message for n, leaf in enumerate(leaves) if n in seen.places}
    fault = None
    for n, leaf in enumerate(leaves):
        trains = marks is not None and _trains(marks[leaf.message], leaf)
        if marks is not None and marks[leaf.message].weight and not trains and not leaf.thought:
            raise Refused  # no rule of the language parts a message but at its reasoning
        spots = seen.places.get(n)
        if spots is None:
            if trains:
                raise Refused("template_hides_trained_text")
            if not leaf.thought:
                fault = fault or ("template_rewrites_text" if leaf.message in shown_of else "template_drops_turns")
        elif any(spot is None or seen.text[spot.start : spot.end] not in forms(leaf.text) for spot in spots):
            fault = fault or "template_rewrites_text"
    if fault is None and not _unmarked_are_shown(messages, leaves, seen):
        fault = "template_drops_turns"
    if fault is not None:
        raise Refused(fault)


def _trains(trained: Trained, leaf: Leaf) -> bool:
    if not trained.weight:
        return False
    return any(
        span.part == leaf.part
        and span.call == leaf.call
        and (leaf.part == "call" or (span.start < leaf.end and leaf.start < span.end))
        for span in trained.spans
    )


def _unmarked_are_shown(messages: list[dict[str, Any]], leaves: Sequence[Leaf], seen: Seen) -> bool:
    """Texts that bear no marks are looked for in the whole text."""
    bearing = {leaf.message for leaf in leaves}
    bare = [i for i, message in enumerate(messages) if message["role"] != "assistant" and i not in bearing]
    texts = (messages[i]["content"].strip() for i in bare)
    return all(any(form in seen.text for form in forms(text)) for text in texts)
