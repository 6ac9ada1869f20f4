"""Text of others, for a page or a terminal: shown as it is, and without any effect."""

from __future__ import annotations

import re

# Controls become pictures of themselves; what changes direction of text, or cannot be encoded, becomes its number.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HIDDEN = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without characters that a page cannot hold or that would change what stands beside it."""
    text = _CONTROL.sub(lambda m: _picture(ord(m[0])), text.replace("\r\n", "\n"))
    return _HIDDEN.sub(lambda m: f"⟨U+{ord(m[0]):04X}⟩", text)


def _picture(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
