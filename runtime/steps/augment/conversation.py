"""One run as plain texts: what its turns and its record say, to be looked at and written anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from curatec.runtime.steps.augment.entities import Finder, cores, fold, plain, unfit

TURNS = ("content", "parts", "reasoning", "calls")
RECORD = ("gold_json", "meta_json")  # what of the record is exported besides its turns


@dataclass(frozen=True, slots=True)
class Conversation:
    """`turns` has the columns TURNS as lists, one value a turn; `record` the texts RECORD."""

    turns: Mapping[str, Sequence[Any]]
    record: Mapping[str, str | None]

    def edited(self, edit: Callable[[str], str]) -> Conversation:
        """With every text edited."""
        return Conversation(self._edited_turns(edit), {name: _some(text, edit) for name, text in self.record.items()})

    def _edited_turns(self, edit: Callable[[str], str]) -> dict[str, list[Any]]:
        def within(items: Sequence[dict[str, Any]] | None, *members: str) -> list[dict[str, Any]] | None:
            if not items:
                return None if items is None else []
            return [{**item, **{member: _some(item[member], edit) for member in members}} for item in items]

        return {
            "content": [_some(text, edit) for text in self.turns["content"]],
            "parts": [within(parts, "text") for parts in self.turns["parts"]],
            "reasoning": [_some(text, edit) for text in self.turns["reasoning"]],
            "calls": [within(calls, "args_json", "args_raw") for calls in self.turns["calls"]],
        }

    def said(self) -> list[str]:
        """All texts of the turns."""
        found: list[str] = []

        def look(text: str) -> str:
            found.append(text)
            return text

        self._edited_turns(look)
        return found


def _some(text: str | None, edit: Callable[[str], str]) -> str | None:
    return edit(text) if text else text


@dataclass(frozen=True, slots=True)
class Entities:
    """What a run says of the named arguments: their folded cores, where to find them, and all that the run says."""

    cores: tuple[str, ...]
    finder: Finder
    known: str  # every text, folded


def entities(run: Conversation, names: Sequence[str], tools: str) -> Entities | str:
    """The entities of a run, or why no copy of it would be consistent. `tools`: the schemas that it shows, as JSON."""
    calls = list(chain.from_iterable(run.turns["calls"]))
    found = cores((call["args_json"] for call in calls if call["args_json"]), names)
    if not found:
        return "no_entity"
    for reason in ("entity_too_short", "entity_is_word", "entity_is_number"):
        if reason in map(unfit, found):
            return reason
    folded = {fold(core) for core in found}
    finder = Finder.of(folded)
    if any(finder.holds(call["args_raw"]) for call in calls if call["args_raw"] and not call["args_json"]):
        return "entity_in_invalid_arguments"
    if finder.holds(tools):
        return "entity_in_tools"
    said, recorded = run.said(), [text for text in run.record.values() if text]
    if any(map(finder.parted, chain(said, recorded))) or any(a in b for a in folded for b in folded if a != b):
        return "entity_inside_word"
    spoken = "\n".join(map(plain, said))
    if any(fold(core) not in spoken for core in cores(filter(None, [run.record["gold_json"]]), names)):
        return "gold_disagrees"
    return Entities(tuple(sorted(folded)), finder, "\n".join((spoken, *map(plain, recorded), fold(tools))))
