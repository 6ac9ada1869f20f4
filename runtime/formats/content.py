"""A turn's content: text, a list of parts, null or absent, kept apart.

Parts are recognised by their own `type`, so one function serves the spellings of all formats: `text`/`value`,
`image_url`/`image`/`source`, `reasoning`/`thinking`, `tool_use`/`tool_call`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .json_text import Json, encode
from .model import Call, ContentKind, Part
from .values import MISSING, call_of, decode_text, text_of

_TEXT = frozenset({"text", "input_text", "output_text"})
_REASONING = frozenset({"reasoning", "thinking", "reasoning_text"})
_MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "audio_url": "audio",
    "file": "file",
    "input_file": "file",
    "document": "file",
}


@dataclass(slots=True)
class Content:
    """A content value taken apart. `reasoning` and `calls` are those that stood among the parts."""

    text: str | None
    kind: ContentKind
    parts: list[Part] | None = None
    reasoning: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def content_of(message: dict[str, Json], key: str, notes: set[str]) -> Content:
    """The content of a message under `key`."""
    if key not in message:
        return Content(None, "absent")
    value = message[key]
    if isinstance(value, str):
        return Content(value, "text")
    if value is None:
        return Content(None, "null")
    if isinstance(value, list) and all(isinstance(part, dict | str) for part in value):
        return _parts(value, notes)
    notes.add("content_not_text")
    return Content(encode(value), "text")


def _parts(values: list[Json], notes: set[str]) -> Content:
    content = Content(None, "parts", [])
    assert content.parts is not None
    for value in values:
        if isinstance(value, str):
            content.parts.append(Part("text", value))
            continue
        named = value.get("type")
        kind = named if isinstance(named, str) else None
        if kind in _REASONING:
            content.reasoning.append(_words(value) or "")
        elif kind == "tool_use":
            content.calls.append(call_of(value.get("name"), value.get("input"), value.get("id"), notes))
        elif kind == "tool_call":
            content.calls.extend(calls_of_text(_words(value) or "", notes))
        else:
            content.parts.append(_part(kind, value))
    texts = [part.text for part in content.parts if part.kind == "text" and part.text is not None]
    content.text = "\n\n".join(texts) if texts else None
    return content


def _words(part: dict[str, Json]) -> str | None:
    for key in ("text", "value", "thinking", "reasoning", "content"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return None


def _part(kind: str | None, part: dict[str, Json]) -> Part:
    if kind in _TEXT or (kind is None and isinstance(part.get("text"), str)):
        words = _words(part)
        return Part("text", words) if words is not None else Part("other", encode(part))
    if kind in _MEDIA:
        found = _reference(part)
        if found is not None:
            return Part(_MEDIA[kind], None, found[1], found[0])
    return Part("other", encode(part))


def _reference(part: dict[str, Json]) -> tuple[str, str | None] | None:
    """The path, URL or file id of a media part, and its media type; null for inline bytes."""
    for key in ("image_url", "audio_url", "source", "file", "value", "url", "path", "image", "audio"):
        held = part.get(key)
        if isinstance(held, str):
            return held, text_of(part.get("media_type"))
        if isinstance(held, dict):
            for inner in ("url", "path", "file_id"):
                if isinstance(held.get(inner), str):
                    return str(held[inner]), text_of(held.get("media_type"))
    return None


def calls_of_text(text: str, notes: set[str]) -> list[Call]:
    """Calls as JSON text, `{"name", "arguments"}` or a list of them; none, and `unparsed_call`, if it is neither."""
    value = decode_text(text)[0]
    found = value if isinstance(value, list) else [value]
    if value is MISSING or not found or not all(isinstance(item, dict) and "name" in item for item in found):
        notes.add("unparsed_call")
        return []
    return [call_of(item["name"], item.get("arguments"), item.get("id"), notes) for item in found]
