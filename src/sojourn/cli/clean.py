"""Text from models, tools and capsules made safe to show: no character acts on the terminal.

Escape sequences, bidirectional overrides and zero-width characters are shown as escapes, so a
person sees that they were there; a carriage return is dropped. Line feed and tab stay.
"""

import re
from typing import Final

UNSAFE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls, ESC and the 8-bit CSI among them
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible, or turning direction
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff"  # lone surrogates cannot be written at all
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags and selectors that can carry hidden text
    "]"
)
"""One character that could act on a terminal, or not be seen."""

PREVIEW: Final = 72
"""Characters of a one-line preview."""


def clean(text: str) -> str:
    """The text with every unsafe character shown as its escape, such as `\\x1b` or `\\u202e`."""
    return UNSAFE.sub(_shown, text)


def escaped_json(text: str) -> str:
    """JSON source text in which the unsafe characters, which stand in strings only, are escaped."""
    return UNSAFE.sub(_json_escape, text)


def one_line(text: str, limit: int = PREVIEW) -> str:
    """The first words of a text on one line, cut with an ellipsis at `limit` characters."""
    words = " ".join(text[: limit * 8].split())
    cut = len(words) > limit or len(text) > limit * 8
    return clean(words[: limit - 1] + "…" if cut and len(words) >= limit else words)


def _shown(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number == 0x0D:
        return ""
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
